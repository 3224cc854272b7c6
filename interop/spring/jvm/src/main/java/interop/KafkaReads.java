package interop;

import java.util.Map;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.KafkaHandler;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.support.KafkaNull;
import org.springframework.messaging.handler.annotation.Headers;
import org.springframework.messaging.handler.annotation.Payload;

/** A listener that chooses by __TypeId__, as services have it. */
final class KafkaReads {
    private KafkaReads() {}

    static void run(Map<String, String> given) throws Exception {
        Seen seen = new Seen(given);
        try (App app = new App(given, seen, Config.class, Listener.class)) {
            seen.await();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableKafka
    static class Config {
        @Bean
        ConcurrentKafkaListenerContainerFactory<String, Object> kafkaListenerContainerFactory() {
            ConcurrentKafkaListenerContainerFactory<String, Object> f = new ConcurrentKafkaListenerContainerFactory<>();
            f.setConsumerFactory(new DefaultKafkaConsumerFactory<>(KafkaFails.config(
                    Map.of("address", System.getProperty("address"), "group", System.getProperty("group")))));
            return f;
        }
    }

    @KafkaListener(topics = "${topic}")
    public static class Listener extends ByType {
        public Listener(Seen seen) {
            super(seen);
        }

        @KafkaHandler
        public void gone(@Payload(required = false) KafkaNull nothing, @Headers Map<String, Object> headers) {
            seen.note("tombstone", null, headers);
        }
    }
}
