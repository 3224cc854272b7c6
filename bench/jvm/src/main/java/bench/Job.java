package bench;

import java.util.Map;

/** What is to be done, the handler of all libraries with it. */
final class Job {
    final String address;
    final String from; // queue or topic
    final String group;
    final int workers;
    final int prefetch;
    final Window window;
    private final long workMillis;

    Job(Map<String, String> given) {
        address = given.get("address");
        from = given.get("from");
        group = given.get("group");
        workers = Integer.parseInt(given.get("workers"));
        prefetch = Integer.parseInt(given.get("prefetch"));
        workMillis = Long.parseLong(given.get("work"));
        window = new Window(Long.parseLong(given.get("warm")), Long.parseLong(given.get("messages")));
    }

    void handle() {
        window.begin();
        if (workMillis > 0) {
            try {
                Thread.sleep(workMillis);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
        window.end();
    }
}
