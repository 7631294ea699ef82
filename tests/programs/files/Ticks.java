import java.util.concurrent.*;

/** A ticker of the JDK, which makes garbage. */
public class Ticks {
    public static void main(String[] given) {
        ScheduledExecutorService pool = Executors.newScheduledThreadPool(1);
        pool.scheduleAtFixedRate(() -> new byte[100_000].hashCode(), 0, 5, TimeUnit.MILLISECONDS);
    }
}
