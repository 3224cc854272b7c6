package interop;

import com.acme.OrderPaid;
import com.acme.StockException;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.KafkaOperations;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.ConcurrentMessageListenerContainer;
import org.springframework.kafka.listener.ConsumerAwareRecordRecoverer;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.DeadLetterPublishingRecoverer;
import org.springframework.kafka.listener.DefaultErrorHandler;
import org.springframework.kafka.listener.MessageListener;
import org.springframework.kafka.support.serializer.ErrorHandlingDeserializer;
import org.springframework.kafka.support.serializer.JacksonJsonDeserializer;
import org.springframework.kafka.support.serializer.JacksonJsonSerializer;
import org.springframework.util.backoff.FixedBackOff;

/** Listeners that fail, a record that is no JSON, and the dead letters of the DeadLetterPublishingRecoverer. */
final class KafkaFails {
    private KafkaFails() {}

    static Map<String, Object> config(Map<String, String> given) {
        Map<String, Object> config = new HashMap<>();
        config.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, given.get("address"));
        config.put(ConsumerConfig.GROUP_ID_CONFIG, given.get("group"));
        config.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        config.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class);
        config.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ErrorHandlingDeserializer.class);
        config.put(ErrorHandlingDeserializer.VALUE_DESERIALIZER_CLASS, JacksonJsonDeserializer.class);
        config.put(JacksonJsonDeserializer.TRUSTED_PACKAGES, "com.acme");
        config.put(JacksonJsonDeserializer.TYPE_MAPPINGS, "order.canceled:com.acme.OrderCanceled");
        config.put(JacksonJsonDeserializer.VALUE_DEFAULT_TYPE, OrderPaid.class.getName());
        return config;
    }

    static void run(Map<String, String> given) throws Exception {
        String topic = given.get("topic");
        KafkaTemplate<String, Object> json = KafkaWrites.template(given, StringSerializer.class, JacksonJsonSerializer.class);
        KafkaTemplate<String, Object> text = KafkaWrites.template(given, StringSerializer.class, StringSerializer.class);
        KafkaTemplate<String, Object> bytes = KafkaWrites.template(given, StringSerializer.class, ByteArraySerializer.class);
        json.send(topic, 0, "k-1", new OrderPaid("f-1", 1)).get();
        text.send(topic, 0, "k-2", "no json").get();

        Map<Class<?>, KafkaOperations<?, ?>> by = new LinkedHashMap<>();
        by.put(byte[].class, bytes);
        by.put(Object.class, json);
        DeadLetterPublishingRecoverer dead = new DeadLetterPublishingRecoverer(by, (record, e) -> new TopicPartition(given.get("dead"), 0));
        Seen seen = new Seen(Map.of("messages", "2"));
        DefaultErrorHandler errors = new DefaultErrorHandler((ConsumerAwareRecordRecoverer) (record, consumer, e) -> {
            dead.accept(record, consumer, e);
            seen.count();
        }, new FixedBackOff(0, 1));
        ContainerProperties p = new ContainerProperties(topic);
        p.setMessageListener((MessageListener<String, Object>) KafkaFails::fail);
        ConcurrentMessageListenerContainer<String, Object> c = new ConcurrentMessageListenerContainer<>(new DefaultKafkaConsumerFactory<>(config(given)), p);
        c.setCommonErrorHandler(errors);
        c.start();
        seen.await();
        c.stop();
    }

    private static void fail(ConsumerRecord<String, Object> record) {
        throw new IllegalStateException("while paying", new StockException("no stock for " + record.key()));
    }
}
