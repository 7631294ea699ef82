/** A thread `cycle` that shares a monitor, or a queue, with `holder`; it is ordinary. */
public class Locks {
	static final Object monitor = new Object();
	static final java.util.concurrent.SynchronousQueue<Integer> work =
		new java.util.concurrent.SynchronousQueue<>();
	static long sum;

	static void step(boolean queue) throws InterruptedException {
		if (queue) {
			sum += work.take();
			return;
		}
		synchronized (monitor) {
			sum++;
		}
	}

	static void hold(boolean queue) throws InterruptedException {
		if (queue) {
			work.put(1);
			return;
		}
		synchronized (monitor) {
			for (long end = System.nanoTime() + 3000000; System.nanoTime() < end;)
				sum++;
		}
	}

	interface Body {
		void run() throws InterruptedException;
	}

	static Thread start(String name, long ms, Body body) {
		Thread thread = new Thread(() -> {
			try {
				for (;;) {
					body.run();
					Thread.sleep(ms);
				}
			} catch (InterruptedException end) {
			}
		}, name);
		thread.start();
		return thread;
	}

	public static void main(String[] args) {
		boolean queue = args.length > 0 && args[0].equals("queue");
		start("holder", 4, () -> hold(queue));
		start("cycle", 1, () -> step(queue));
	}
}
