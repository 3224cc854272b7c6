package interop;

import com.acme.OrderPaid;
import com.acme.StockException;
import java.util.Map;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.BackOff;
import org.springframework.kafka.annotation.DltHandler;
import org.springframework.kafka.annotation.EnableKafkaRetryTopic;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.annotation.RetryableTopic;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.support.serializer.JacksonJsonSerializer;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/** A @RetryableTopic: two retry topics, then the dead-letter topic. */
final class KafkaRetries {
    private KafkaRetries() {}

    static void run(Map<String, String> given) throws Exception {
        Seen seen = new Seen(Map.of("messages", "1"));
        try (AnnotationConfigApplicationContext app = new AnnotationConfigApplicationContext()) {
            app.getEnvironment().getSystemProperties().putAll(given);
            app.registerBean(Seen.class, () -> seen);
            app.registerBean("given", Map.class, () -> given);
            app.register(Config.class, Listener.class);
            app.refresh();
            app.getBean(KafkaTemplate.class).send(given.get("topic"), "k-1", new OrderPaid("r-1", 1)).get();
            seen.await();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableKafkaRetryTopic
    static class Config {
        @Bean
        KafkaAdmin admin() {
            return new KafkaAdmin(Map.of("bootstrap.servers", System.getProperty("address")));
        }

        @Bean
        TaskScheduler scheduler() {
            return new ThreadPoolTaskScheduler();
        }

        @Bean
        KafkaTemplate<String, Object> defaultRetryTopicKafkaTemplate() {
            return KafkaWrites.template(Map.of("address", System.getProperty("address")), StringSerializer.class, JacksonJsonSerializer.class);
        }

        @Bean
        ConcurrentKafkaListenerContainerFactory<String, Object> kafkaListenerContainerFactory() {
            ConcurrentKafkaListenerContainerFactory<String, Object> f = new ConcurrentKafkaListenerContainerFactory<>();
            f.setConsumerFactory(new DefaultKafkaConsumerFactory<>(KafkaFails.config(
                    Map.of("address", System.getProperty("address"), "group", System.getProperty("group")))));
            return f;
        }
    }

    public static class Listener {
        private final Seen seen;

        public Listener(Seen seen) {
            this.seen = seen;
        }

        @RetryableTopic(attempts = "3", backOff = @BackOff(delay = 50), numPartitions = "1")
        @KafkaListener(topics = "${topic}")
        public void paid(OrderPaid order) {
            throw new StockException("no stock for " + order.id());
        }

        @DltHandler
        public void dead(OrderPaid order) {
            seen.count();
        }
    }
}
