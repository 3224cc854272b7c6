package interop;

import com.acme.OrderCanceled;
import com.acme.OrderPaid;
import java.util.Map;
import org.springframework.amqp.rabbit.annotation.EnableRabbit;
import org.springframework.amqp.rabbit.annotation.RabbitHandler;
import org.springframework.amqp.rabbit.annotation.RabbitListener;
import org.springframework.amqp.rabbit.config.SimpleRabbitListenerContainerFactory;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.messaging.handler.annotation.Headers;
import org.springframework.messaging.handler.annotation.Payload;

/** Listeners as services have them: one by the class of its parameter, one that chooses by __TypeId__. */
final class RabbitReads {
    private RabbitReads() {}

    static void run(Map<String, String> given) throws Exception {
        Seen seen = new Seen(given);
        try (AnnotationConfigApplicationContext app = new AnnotationConfigApplicationContext()) {
            app.getEnvironment().getSystemProperties().putAll(given);
            app.registerBean(Seen.class, () -> seen);
            app.registerBean(CachingConnectionFactory.class, () -> {
                try {
                    return RabbitWrites.connections(given);
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            app.register(Config.class, ByParameter.class, ByType.class);
            app.refresh();
            seen.await();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableRabbit
    static class Config {
        @Bean
        SimpleRabbitListenerContainerFactory rabbitListenerContainerFactory(CachingConnectionFactory connections) {
            SimpleRabbitListenerContainerFactory f = new SimpleRabbitListenerContainerFactory();
            f.setConnectionFactory(connections);
            f.setMessageConverter(RabbitWrites.json());
            f.setDefaultRequeueRejected(false);
            return f;
        }
    }

    public static class ByParameter {
        private final Seen seen;

        public ByParameter(Seen seen) {
            this.seen = seen;
        }

        @RabbitListener(queues = "${parameter}")
        public void paid(@Payload OrderPaid order, @Headers Map<String, Object> headers) {
            seen.note("parameter", order, headers);
        }
    }

    @RabbitListener(queues = "${typed}")
    public static class ByType {
        private final Seen seen;

        public ByType(Seen seen) {
            this.seen = seen;
        }

        @RabbitHandler
        public void paid(@Payload OrderPaid order, @Headers Map<String, Object> headers) {
            seen.note("paid", order, headers);
        }

        @RabbitHandler
        public void canceled(@Payload OrderCanceled order, @Headers Map<String, Object> headers) {
            seen.note("canceled", order, headers);
        }

        @RabbitHandler(isDefault = true)
        public void other(@Payload Object payload, @Headers Map<String, Object> headers) {
            seen.note("other", payload, headers);
        }
    }
}
