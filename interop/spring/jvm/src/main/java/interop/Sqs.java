package interop;

import com.acme.OrderPaid;
import io.awspring.cloud.sqs.listener.MessageListener;
import io.awspring.cloud.sqs.listener.SqsMessageListenerContainer;
import io.awspring.cloud.sqs.operations.SqsTemplate;
import java.math.BigDecimal;
import java.net.URI;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sqs.SqsAsyncClient;

/** The template and the listener container of Spring Cloud AWS. */
final class Sqs {
    private Sqs() {}

    private static SqsAsyncClient client(Map<String, String> given) {
        return SqsAsyncClient.builder()
                .endpointOverride(URI.create(given.get("address")))
                .region(Region.EU_WEST_1)
                .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("x", "x")))
                .build();
    }

    static void write(Map<String, String> given) {
        SqsTemplate t = SqsTemplate.newTemplate(client(given));
        String queue = given.get("queue");
        t.send(o -> o.queue(queue).payload(new OrderPaid("o-1", 1250)).header("case", "class"));
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("case", "headers");
        all.put("string", "grüße");
        all.put("boolean", true);
        all.put("int", -70_000);
        all.put("long", 9_007_199_254_740_993L);
        all.put("double", 0.1);
        t.send(o -> o.queue(queue).payload(new OrderPaid("o-2", 1)).headers(all));
        Map<String, Object> more = new LinkedHashMap<>(); // SQS has room for ten, four of them Spring's own
        more.put("case", "more");
        more.put("decimal", new BigDecimal("12.50"));
        more.put("bytes", java.nio.ByteBuffer.wrap(new byte[] {0, (byte) 0xff}));
        more.put("uuid", UUID.fromString("00000000-0000-0000-0000-0000000000ff"));
        more.put("list", List.of("a", 1));
        t.send(o -> o.queue(queue).payload(new OrderPaid("o-3", 2)).headers(more));
        t.send(o -> o.queue(queue).payload("grüße").header("case", "text"));
    }

    static void read(Map<String, String> given) throws Exception {
        Seen seen = new Seen(given);
        SqsMessageListenerContainer<Object> c = SqsMessageListenerContainer.builder()
                .sqsAsyncClient(client(given))
                .queueNames(given.get("queue"))
                .messageListener((MessageListener<Object>) m -> seen.note("container", m.getPayload(), m.getHeaders()))
                .configure(o -> o.pollTimeout(Duration.ofSeconds(2))) // a stop waits for open polls
                .build();
        c.start();
        seen.await();
        c.stop();
    }
}
