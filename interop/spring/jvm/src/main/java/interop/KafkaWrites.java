package interop;

import com.acme.OrderCanceled;
import com.acme.OrderPaid;
import java.math.BigDecimal;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.support.JsonKafkaHeaderMapper;
import org.springframework.kafka.support.KafkaHeaders;
import org.springframework.kafka.support.converter.MessagingMessageConverter;
import org.springframework.kafka.support.serializer.JacksonJsonSerializer;
import org.springframework.messaging.Message;
import org.springframework.messaging.support.MessageBuilder;

/** What the templates, serializers and header mappers of Spring for Apache Kafka write, each case once. */
final class KafkaWrites {
    private KafkaWrites() {}

    static <K> KafkaTemplate<K, Object> template(Map<String, String> given, Class<? extends Serializer<?>> key, Class<? extends Serializer> value) {
        Map<String, Object> config = new HashMap<>();
        config.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, given.get("address"));
        config.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, key);
        config.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, value);
        config.put(JacksonJsonSerializer.TYPE_MAPPINGS, "order.canceled:" + OrderCanceled.class.getName());
        return new KafkaTemplate<>(new DefaultKafkaProducerFactory<>(config));
    }

    static void run(Map<String, String> given) throws Exception {
        String topic = given.get("topic");
        KafkaTemplate<String, Object> t = template(given, StringSerializer.class, JacksonJsonSerializer.class);
        t.send(record(topic, "class", "k-1", new OrderPaid("o-1", 1250))).get();
        t.send(record(topic, "mapped", "k-2", new OrderCanceled("o-2", "late"))).get();
        t.send(record(topic, "list", "k-3", new java.util.ArrayList<>(List.of(new OrderPaid("o-3", 1))))).get();
        t.send(record(topic, "tombstone", "k-4", null)).get();
        t.send(headers(topic, "headers", new OrderPaid("o-5", 2))).get();
        MessagingMessageConverter quoting = new MessagingMessageConverter();
        JsonKafkaHeaderMapper quotes = new JsonKafkaHeaderMapper();
        quotes.setEncodeStrings(true);
        quoting.setHeaderMapper(quotes);
        t.setMessageConverter(quoting);
        t.send(headers(topic, "quoted", new OrderPaid("o-6", 3))).get();
        KafkaTemplate<Long, Object> numbered = template(given, LongSerializer.class, StringSerializer.class);
        numbered.send(record(topic, "text", 7L, "grüße")).get();
    }

    private static <K> ProducerRecord<K, Object> record(String topic, String name, K key, Object value) {
        ProducerRecord<K, Object> r = new ProducerRecord<>(topic, 0, key, value);
        r.headers().add("case", name.getBytes());
        return r;
    }

    /** Through spring-messaging, so that the header mapper writes. */
    private static Message<?> headers(String topic, String name, Object payload) {
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("case", name);
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
        all.put("uuid", UUID.fromString("00000000-0000-0000-0000-0000000000ff"));
        all.put("enum", Thread.State.NEW);
        all.put("contentType", "application/json");
        return MessageBuilder.withPayload(payload).copyHeaders(all)
                .setHeader(KafkaHeaders.TOPIC, topic).setHeader(KafkaHeaders.KEY, "k-5").setHeader(KafkaHeaders.PARTITION, 0)
                .build();
    }
}
