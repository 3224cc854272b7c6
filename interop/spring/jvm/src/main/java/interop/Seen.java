package interop;

import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import tools.jackson.databind.json.JsonMapper;

/** Prints what listeners got, and ends after as many messages as are awaited. */
public final class Seen {
    private static final JsonMapper JSON = new JsonMapper();

    private final CountDownLatch left;

    Seen(Map<String, String> given) {
        left = new CountDownLatch(Integer.parseInt(given.get("messages")));
    }

    /** @param listener which of the listeners it was */
    public void note(String listener, Object payload, Map<String, Object> headers) {
        note(listener, payload, headers, null);
    }

    /** @param tenant what a parameter of the listener has for the header of this name */
    public synchronized void note(String listener, Object payload, Map<String, Object> headers, String tenant) {
        Map<String, Object> out = new TreeMap<>();
        headers.forEach((name, value) -> {
            if (simple(value)) {
                out.put(name, typed(value));
            }
        });
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("listener", listener);
        line.put("payload", typed(payload));
        line.put("headers", out);
        line.put("tenant", tenant);
        System.out.println(JSON.writeValueAsString(line));
        left.countDown();
    }

    void count() {
        left.countDown();
    }

    void await() throws InterruptedException {
        if (!left.await(Main.PATIENCE.toSeconds(), TimeUnit.SECONDS)) {
            throw new IllegalStateException(left.getCount() + " messages are missing after " + Main.PATIENCE);
        }
    }

    private static Map<String, Object> typed(Object v) {
        Object shown = v instanceof byte[] b ? new String(b, StandardCharsets.UTF_8) : v;
        return Map.of("class", v == null ? "null" : v.getClass().getName(), "value", shown == null ? "" : shown);
    }

    /** Clients, containers and the like are in Spring's headers too. */
    private static boolean simple(Object v) {
        return v == null || v instanceof byte[] || v instanceof java.util.UUID || v.getClass().isEnum()
                || v.getClass().getName().startsWith("java.lang") || v.getClass().getName().startsWith("java.math")
                || v instanceof java.util.Date || v instanceof java.time.Instant
                || v instanceof java.util.Collection<?> c && c.stream().allMatch(Seen::simple)
                || v instanceof Map<?, ?> m && m.values().stream().allMatch(Seen::simple);
    }
}
