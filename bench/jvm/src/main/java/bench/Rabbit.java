package bench;

import com.rabbitmq.client.ConnectionFactory;
import java.util.concurrent.Executors;
import org.springframework.amqp.core.MessageListener;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.listener.AbstractMessageListenerContainer;
import org.springframework.amqp.rabbit.listener.DirectMessageListenerContainer;
import org.springframework.amqp.rabbit.listener.SimpleMessageListenerContainer;

/** The two containers of Spring AMQP. The prefetch is of all consumers together. */
final class Rabbit {
    private Rabbit() {}

    /** Acks each message, its default. */
    static void simple(Job job) throws Exception {
        SimpleMessageListenerContainer c = new SimpleMessageListenerContainer(connections(job));
        c.setConcurrentConsumers(job.workers);
        run(c, job);
    }

    /** Runs handlers in the client's threads and acks up to as many as it may hold at once. */
    static void direct(Job job) throws Exception {
        DirectMessageListenerContainer c = new DirectMessageListenerContainer(connections(job));
        c.setConsumersPerQueue(job.workers);
        c.setMessagesPerAck(Math.max(1, job.prefetch / job.workers / 2)); // all of the prefetch would wait for the timeout
        run(c, job);
    }

    private static CachingConnectionFactory connections(Job job) throws Exception {
        ConnectionFactory client = new ConnectionFactory();
        client.setUri(job.address);
        client.setAutomaticRecoveryEnabled(false); // Spring has its own, and says so at length
        CachingConnectionFactory connections = new CachingConnectionFactory(client);
        connections.setExecutor(Executors.newFixedThreadPool(job.workers)); // else one thread for each core
        return connections;
    }

    private static void run(AbstractMessageListenerContainer c, Job job) throws Exception {
        c.setQueueNames(job.from);
        c.setPrefetchCount(Math.max(1, job.prefetch / job.workers));
        c.setMessageListener((MessageListener) message -> job.handle());
        c.afterPropertiesSet();
        c.start();
        job.window.await();
        c.stop();
    }
}
