package interop;

import com.acme.OrderPaid;
import java.util.Map;
import org.springframework.amqp.rabbit.annotation.EnableRabbit;
import org.springframework.amqp.rabbit.annotation.RabbitHandler;
import org.springframework.amqp.rabbit.annotation.RabbitListener;
import org.springframework.amqp.rabbit.config.SimpleRabbitListenerContainerFactory;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.support.postprocessor.GUnzipPostProcessor;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.messaging.handler.annotation.Headers;
import org.springframework.messaging.handler.annotation.Payload;

/** Listeners as services have them: one by the class of its parameter, one that chooses by __TypeId__. */
final class RabbitReads {
    private RabbitReads() {}

    static void run(Map<String, String> given) throws Exception {
        Seen seen = new Seen(given);
        try (App app = new App(given, seen, Config.class, ByParameter.class, Chosen.class)) {
            seen.await();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableRabbit
    static class Config {
        @Bean
        CachingConnectionFactory connections() throws Exception {
            return RabbitWrites.connections(Map.of("address", System.getProperty("address")));
        }

        @Bean
        SimpleRabbitListenerContainerFactory rabbitListenerContainerFactory(CachingConnectionFactory connections) {
            SimpleRabbitListenerContainerFactory f = new SimpleRabbitListenerContainerFactory();
            f.setConnectionFactory(connections);
            f.setMessageConverter(RabbitWrites.json());
            f.setDefaultRequeueRejected(false);
            f.setAfterReceivePostProcessors(new GUnzipPostProcessor());
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
    public static class Chosen extends ByType {
        public Chosen(Seen seen) {
            super(seen);
        }

        @RabbitHandler(isDefault = true)
        public void other(@Payload Object payload, @Headers Map<String, Object> headers) {
            seen.note("other", payload, headers);
        }
    }
}
