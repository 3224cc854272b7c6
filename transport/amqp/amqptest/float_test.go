package amqptest

import (
	"math"
	"os"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// RabbitMQ ends the connection over a header that is no finite number (measured on
// 3.10 by this test, with AMQP_URL).
func TestAHeaderThatIsNoFiniteNumberEndsTheConnection(t *testing.T) {
	for name, url := range map[string]string{"amqptest": New(t).URL, "rabbitmq": os.Getenv("AMQP_URL")} {
		if url == "" {
			continue
		}
		for _, v := range []any{math.NaN(), math.Inf(1), math.Inf(-1), float32(math.Inf(1)), []any{math.NaN()}, amqp091.Table{"a": math.Inf(1)}} {
			conn := dial(t, url)
			closed := conn.NotifyClose(make(chan *amqp091.Error, 1))
			ch := open(t, conn)
			publish(t, ch, "", "nowhere", amqp091.Publishing{Headers: amqp091.Table{"x": v}})
			if err := next(t, closed); err == nil || err.Code != 541 || err.Reason != "INTERNAL_ERROR" {
				t.Errorf("%s, %v: %v", name, v, err)
			}
		}
	}
}
