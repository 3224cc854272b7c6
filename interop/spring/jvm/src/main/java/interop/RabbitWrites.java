package interop;

import com.acme.OrderCanceled;
import com.acme.OrderPaid;
import com.rabbitmq.client.ConnectionFactory;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.springframework.amqp.core.MessageDeliveryMode;
import org.springframework.amqp.core.MessagePostProcessor;
import org.springframework.amqp.rabbit.batch.SimpleBatchingStrategy;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.core.BatchingRabbitTemplate;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.amqp.support.converter.DefaultJacksonJavaTypeMapper;
import org.springframework.amqp.support.converter.JacksonJsonMessageConverter;
import org.springframework.amqp.support.converter.SimpleMessageConverter;
import org.springframework.amqp.support.postprocessor.GZipPostProcessor;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/** What the templates and converters of Spring AMQP write, each case once. */
final class RabbitWrites {
    private final CachingConnectionFactory connections;
    private final String queue;

    private RabbitWrites(Map<String, String> given) throws Exception {
        connections = connections(given);
        queue = given.get("queue");
    }

    static CachingConnectionFactory connections(Map<String, String> given) throws Exception {
        ConnectionFactory client = new ConnectionFactory();
        client.setUri(given.get("address"));
        client.setAutomaticRecoveryEnabled(false); // Spring has its own, and says so at length
        return new CachingConnectionFactory(client);
    }

    static void run(Map<String, String> given) throws Exception {
        RabbitWrites w = new RabbitWrites(given);
        w.types();
        w.headers();
        w.packed();
        w.connections.destroy();
    }

    /** Classes are named themselves, except those that have an id. */
    static JacksonJsonMessageConverter json() {
        DefaultJacksonJavaTypeMapper types = new DefaultJacksonJavaTypeMapper();
        types.setIdClassMapping(Map.of("order.canceled", OrderCanceled.class));
        types.setTrustedPackages("com.acme");
        JacksonJsonMessageConverter json = new JacksonJsonMessageConverter();
        json.setJavaTypeMapper(types);
        return json;
    }

    private RabbitTemplate template() {
        RabbitTemplate t = new RabbitTemplate(connections);
        t.setMessageConverter(json());
        return t;
    }

    private static MessagePostProcessor named(String name) {
        return message -> {
            message.getMessageProperties().setHeader("case", name);
            return message;
        };
    }

    private void types() {
        RabbitTemplate t = template();
        t.convertAndSend("", queue, new OrderPaid("o-1", 1250), named("class"));
        t.convertAndSend("", queue, new OrderCanceled("o-2", "late"), named("mapped"));
        t.convertAndSend("", queue, new ArrayList<>(List.of(new OrderPaid("o-3", 1))), named("list"));
        t.convertAndSend("", queue, new LinkedHashMap<>(Map.of("o-4", new OrderPaid("o-4", 2))), named("map"));
        RabbitTemplate simple = new RabbitTemplate(connections);
        simple.setMessageConverter(new SimpleMessageConverter());
        simple.convertAndSend("", queue, "grüße", named("text"));
        simple.convertAndSend("", queue, new byte[] {0, 1, (byte) 0xff}, named("bytes"));
        simple.convertAndSend("", queue, new OrderPaid("o-5", 3), named("serialized"));
    }

    private void headers() {
        Map<String, Object> all = Values.all();
        all.put("date", Date.from(Instant.parse("2026-01-02T03:04:05Z")));
        all.put("nothing", null);
        template().convertAndSend("", queue, new OrderPaid("o-6", 4), message -> {
            all.forEach(message.getMessageProperties()::setHeader);
            return named("headers").postProcessMessage(message);
        });
        template().convertAndSend("", queue, new OrderPaid("o-7", 5), message -> {
            var p = message.getMessageProperties();
            p.setMessageId("m-7");
            p.setCorrelationId("c-7");
            p.setType("order.own");
            p.setAppId("shop");
            p.setPriority(3);
            p.setExpiration("3600000");
            p.setReplyTo("answers");
            p.setTimestamp(Date.from(Instant.parse("2026-01-02T03:04:05Z")));
            p.setDeliveryMode(MessageDeliveryMode.NON_PERSISTENT);
            return named("properties").postProcessMessage(message);
        });
    }

    private void packed() {
        RabbitTemplate zip = template();
        zip.setBeforePublishPostProcessors(new GZipPostProcessor());
        zip.convertAndSend("", queue, new OrderPaid("o-8", 6), named("gzip"));
        batch("batch");
        batch("batch-gzip", new GZipPostProcessor());
    }

    private void batch(String name, MessagePostProcessor... before) {
        ThreadPoolTaskScheduler clock = new ThreadPoolTaskScheduler();
        clock.initialize();
        BatchingRabbitTemplate t = new BatchingRabbitTemplate(connections, new SimpleBatchingStrategy(3, 100_000, 60_000), clock);
        t.setMessageConverter(json());
        if (before.length > 0) {
            t.setBeforePublishPostProcessors(before);
        }
        for (int i = 0; i < 3; i++) {
            t.convertAndSend("", queue, new OrderPaid("b-" + i, i), named(name));
        }
        clock.shutdown();
    }
}
