package interop;

import com.acme.OrderPaid;
import com.acme.StockException;
import java.util.List;
import java.util.Map;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.core.MessageListener;
import org.springframework.amqp.rabbit.config.RetryInterceptorBuilder;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.amqp.rabbit.listener.SimpleMessageListenerContainer;
import org.springframework.amqp.rabbit.retry.MessageRecoverer;
import org.springframework.amqp.rabbit.retry.RejectAndDontRequeueRecoverer;
import org.springframework.amqp.rabbit.retry.RepublishMessageRecoverer;

/** Listeners that fail, and what Spring AMQP makes of it: republished, or rejected to the broker's exchange. */
final class RabbitFails {
    private RabbitFails() {}

    static void run(Map<String, String> given) throws Exception {
        CachingConnectionFactory connections = RabbitWrites.connections(given);
        RabbitTemplate t = new RabbitTemplate(connections);
        t.setMessageConverter(RabbitWrites.json());
        Seen seen = new Seen(Map.of("messages", "4"));
        String exchange = given.get("exchange");
        t.convertAndSend(exchange, given.get("queue"), new OrderPaid("f-1", 1));
        t.convertAndSend(exchange, given.get("queue"), new OrderPaid("f-2", 2), message -> {
            message.getMessageProperties().setHeader("traced", "yes");
            return message;
        });
        t.convertAndSend(exchange, given.get("queue"), new OrderPaid("f-4", 4), message -> {
            message.getMessageProperties().setHeader("traced", "much");
            return message;
        });
        t.convertAndSend(exchange, given.get("rejects"), new OrderPaid("f-3", 3));
        RepublishMessageRecoverer plain = new RepublishMessageRecoverer(new RabbitTemplate(connections), "", given.get("dead"));
        RepublishMessageRecoverer traced = new RepublishMessageRecoverer(new RabbitTemplate(connections), "", given.get("dead"))
                .includeStackTrace(true); // the default before 4.1
        MessageRecoverer republish = (message, cause) ->
                (message.getMessageProperties().getHeader("traced") == null ? plain : traced).recover(message, cause);
        List<SimpleMessageListenerContainer> running = List.of(
                start(connections, given.get("queue"), seen, republish),
                start(connections, given.get("rejects"), seen, new RejectAndDontRequeueRecoverer()));
        seen.await();
        running.forEach(SimpleMessageListenerContainer::stop);
        connections.destroy();
    }

    private static SimpleMessageListenerContainer start(CachingConnectionFactory connections, String queue, Seen seen, MessageRecoverer last) {
        SimpleMessageListenerContainer c = new SimpleMessageListenerContainer(connections);
        c.setQueueNames(queue);
        MessageRecoverer counted = (message, cause) -> {
            seen.count();
            last.recover(message, cause);
        };
        c.setAdviceChain(RetryInterceptorBuilder.stateless().maxRetries(1).backOffOptions(1, 1, 1).recoverer(counted).build());
        c.setMessageListener((MessageListener) RabbitFails::fail);
        c.afterPropertiesSet();
        c.start();
        return c;
    }

    static void fail(Message message) {
        String text = "no stock";
        if ("much".equals(message.getMessageProperties().getHeader("traced"))) {
            text = "no stock ".repeat(20_000); // more than a frame holds: Spring cuts it
        }
        throw new IllegalStateException("while paying", new StockException(text));
    }
}
