package interop;

import com.acme.OrderCanceled;
import com.acme.OrderPaid;
import java.util.Map;
import org.springframework.amqp.rabbit.annotation.RabbitHandler;
import org.springframework.kafka.annotation.KafkaHandler;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.messaging.handler.annotation.Headers;
import org.springframework.messaging.handler.annotation.Payload;

/** What the listeners that choose by __TypeId__ have in common. */
public abstract class ByType {
    final Seen seen;

    ByType(Seen seen) {
        this.seen = seen;
    }

    @KafkaHandler
    @RabbitHandler
    public void paid(@Payload OrderPaid order, @Headers Map<String, Object> headers, @Header(name = "tenant", required = false) String tenant) {
        seen.note("paid", order, headers, tenant);
    }

    @KafkaHandler
    @RabbitHandler
    public void canceled(@Payload OrderCanceled order, @Headers Map<String, Object> headers, @Header(name = "tenant", required = false) String tenant) {
        seen.note("canceled", order, headers, tenant);
    }
}
