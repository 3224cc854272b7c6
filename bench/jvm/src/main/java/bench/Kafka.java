package bench;

import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelConsumerOptions.ProcessingOrder;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.listener.ConcurrentMessageListenerContainer;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.MessageListener;

/** Spring for Apache Kafka, and Confluent's Parallel Consumer ordered by key. */
final class Kafka {
    private Kafka() {}

    private static Map<String, Object> config(Job job) {
        return Map.of(
                ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, job.address,
                ConsumerConfig.GROUP_ID_CONFIG, job.group,
                ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest",
                ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false,
                ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class,
                ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
    }

    /** Commits each poll's records (AckMode.BATCH), its default; one consumer for each worker. */
    static void spring(Job job) throws Exception {
        ContainerProperties p = new ContainerProperties(job.from);
        p.setMessageListener((MessageListener<byte[], byte[]>) record -> job.handle());
        ConcurrentMessageListenerContainer<byte[], byte[]> c =
                new ConcurrentMessageListenerContainer<>(new DefaultKafkaConsumerFactory<>(config(job)), p);
        c.setConcurrency(job.workers);
        c.start();
        job.window.await();
        c.stop();
    }

    /** Commits every 5 s without waiting, its default. */
    static void parallel(Job job) throws Exception {
        ParallelStreamProcessor<byte[], byte[]> p = ParallelStreamProcessor.createEosStreamProcessor(
                ParallelConsumerOptions.<byte[], byte[]>builder()
                        .consumer(new KafkaConsumer<>(config(job)))
                        .ordering(ProcessingOrder.KEY)
                        .maxConcurrency(job.workers)
                        .build());
        p.subscribe(List.of(job.from));
        p.poll(context -> job.handle());
        job.window.await();
        p.closeDrainFirst();
    }
}
