package bench;

import io.awspring.cloud.sqs.listener.SqsMessageListenerContainer;
import io.awspring.cloud.sqs.listener.MessageListener;
import java.net.URI;
import java.time.Duration;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sqs.SqsAsyncClient;

/** Spring Cloud AWS: deletes by ten or each second, its default. */
final class Sqs {
    private Sqs() {}

    static void spring(Job job) throws Exception {
        SqsAsyncClient client = SqsAsyncClient.builder()
                .endpointOverride(URI.create(job.address))
                .region(Region.US_EAST_1)
                .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("bench", "bench")))
                .build();
        SqsMessageListenerContainer<String> c = SqsMessageListenerContainer.<String>builder()
                .sqsAsyncClient(client)
                .queueNames(job.from)
                .messageListener((MessageListener<String>) message -> job.handle())
                .configure(o -> o.maxConcurrentMessages(job.workers)
                        .maxMessagesPerPoll(10)
                        .pollTimeout(Duration.ofSeconds(2))) // a stop waits for open polls
                .build();
        c.start();
        job.window.await();
        c.stop();
    }
}
