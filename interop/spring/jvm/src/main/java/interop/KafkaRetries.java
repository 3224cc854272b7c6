package interop;

import com.acme.OrderPaid;
import com.acme.StockException;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.BackOff;
import org.springframework.kafka.annotation.DltHandler;
import org.springframework.kafka.annotation.EnableKafkaRetryTopic;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.annotation.RetryableTopic;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.retrytopic.TopicSuffixingStrategy;
import org.springframework.kafka.support.serializer.JacksonJsonSerializer;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/** Two of @RetryableTopic: one retry topic for all attempts, which is the default, and one for each; then the dead-letter topic. */
final class KafkaRetries {
    private KafkaRetries() {}

    static void run(Map<String, String> given) throws Exception {
        Seen seen = new Seen(Map.of("messages", "2"));
        try (App app = new App(given, seen, Config.class, Listener.class)) {
            for (String topic : List.of("topic", "growing")) {
                app.bean(KafkaTemplate.class).send(given.get(topic), "k-1", new OrderPaid("r-1", 1)).get();
            }
            seen.await();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableKafkaRetryTopic
    static class Config extends KafkaReads.Config {
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
    }

    public static class Listener {
        private final Seen seen;

        public Listener(Seen seen) {
            this.seen = seen;
        }

        @RetryableTopic(attempts = "3", backOff = @BackOff(delay = 50), numPartitions = "1")
        @KafkaListener(id = "${topic}", topics = "${topic}")
        public void paid(OrderPaid order) {
            throw new StockException("no stock for " + order.id());
        }

        @RetryableTopic(attempts = "3", backOff = @BackOff(delay = 50, multiplier = 2), numPartitions = "1",
                topicSuffixingStrategy = TopicSuffixingStrategy.SUFFIX_WITH_INDEX_VALUE)
        @KafkaListener(id = "${growing}", topics = "${growing}")
        public void growing(OrderPaid order) {
            paid(order);
        }

        @DltHandler
        public void dead(OrderPaid order) {
            seen.count();
        }
    }
}
