package interop;

import com.acme.OrderCanceled;
import com.acme.OrderPaid;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
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
        Map<String, Object> all = Values.all();
        all.put("case", name);
        all.put("contentType", "application/json");
        return MessageBuilder.withPayload(payload).copyHeaders(all)
                .setHeader(KafkaHeaders.TOPIC, topic).setHeader(KafkaHeaders.KEY, "k-5").setHeader(KafkaHeaders.PARTITION, 0)
                .build();
    }
}
