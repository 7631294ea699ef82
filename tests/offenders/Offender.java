import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;

/** A thread `cycle` that commits one offence in each cycle: `save` or `block`. */
public class Offender {
	interface Body {
		void run() throws Exception;
	}

	static void save(RandomAccessFile log) throws Exception {
		log.seek(0);
		log.write(new byte[] { 'c', '\n' });
	}

	/** Without buffers between, which Java compiles, or not, at times of their own. */
	static void block(FileOutputStream to, FileInputStream from) throws Exception {
		to.write('\n');
		from.read();
	}

	static void start(String name, long ms, Body body) {
		new Thread(() -> {
			try {
				for (;;) {
					body.run();
					Thread.sleep(ms);
				}
			} catch (Exception end) {
				System.exit(4);
			}
		}, name).start();
	}

	public static void main(String[] args) throws Exception {
		String kind = args.length > 0 ? args[0] : "save";
		java.io.File file = java.io.File.createTempFile("offender", "");
		RandomAccessFile log = new RandomAccessFile(file, "rw");
		file.delete();
		if (kind.equals("block")) {
			Process other = new ProcessBuilder("cat").start();
			Runtime.getRuntime().addShutdownHook(new Thread(other::destroy));
			String pipes = "/proc/" + other.pid() + "/fd/";
			FileOutputStream to = new FileOutputStream(pipes + 0);
			FileInputStream from = new FileInputStream(pipes + 1);
			start("cycle", 20, () -> block(to, from));
		} else {
			start("cycle", 1, () -> save(log));
		}
	}
}
