// A loop of 1 ms that allocates, writes, and waits for a monitor.
public class Control {
    static final Object MONITOR = new Object();
    static String kept = "";

    static void step(int number) {
        synchronized (MONITOR) {
            kept = "cycle " + number;
        }
        if (number % 10 == 0) {
            System.out.println(kept);
        }
    }

    static void hold() {
        while (true) {
            synchronized (MONITOR) {
                long begin = System.nanoTime();
                while (System.nanoTime() - begin < 4_000_000) { }
            }
            try { Thread.sleep(10); } catch (InterruptedException ended) { return; }
        }
    }

    public static void main(String[] words) throws InterruptedException {
        new Thread(Control::hold).start();
        for (int number = 0; ; number++) {
            step(number);
            Thread.sleep(1);
        }
    }
}
