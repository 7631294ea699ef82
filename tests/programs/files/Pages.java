import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.file.*;

/** The JDK's own server: `java -m jdk.httpserver` needs JDK 18, Debian 12 has 17. */
public class Pages {
    public static void main(String[] given) throws Exception {
        int port = Integer.parseInt(given[0]);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/", asked -> {
            byte[] page = Files.readAllBytes(Path.of("/etc/services"));
            asked.sendResponseHeaders(200, page.length);
            asked.getResponseBody().write(page);
            asked.close();
        });
        server.start();
    }
}
