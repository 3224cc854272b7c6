package interop;

import java.math.BigDecimal;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;

/** Headers of each kind that Spring AMQP and Spring for Apache Kafka write alike. */
final class Values {
    private Values() {}

    static Map<String, Object> all() {
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("string", "grüße \"q\"");
        all.put("empty", "");
        all.put("boolean", true);
        all.put("byte", (byte) -7);
        all.put("short", (short) -300);
        all.put("int", -70_000);
        all.put("long", 9_007_199_254_740_993L);
        all.put("float", 0.5f);
        all.put("double", 0.1);
        all.put("decimal", new BigDecimal("12.50"));
        all.put("bytes", new byte[] {0, (byte) 0xff});
        all.put("list", Arrays.asList("a", 1, true));
        all.put("map", Map.of("b", 2));
        all.put("uuid", UUID.fromString("00000000-0000-0000-0000-0000000000ff")); // text on the wire, as all that the protocols do not have
        all.put("enum", Thread.State.NEW);
        return all;
    }
}
