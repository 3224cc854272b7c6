// Package amqp is the transport for RabbitMQ (AMQP 0-9-1), on
// github.com/rabbitmq/amqp091-go.
//
//	rabbit := amqp.New("amqps://rabbit.internal/shop", amqp.Config{User: "app", Password: transport.Env("RABBIT_PW")})
//	orders := rabbit.Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}})
//	c, err := container.New(orders, handler, container.Config{})
//
// A [Broker] is an address with two shared connections, one to consume and one
// to publish, opened by their first user and closed by their last. Connections
// and channels are never repaired: what broke is reported as lost and the
// container opens the source again, because a delivery tag means something else
// on every channel.
//
// # Which call returns which error
//
// Source.Open returns a *longshore.Error with one of these codes and never tries
// again by itself:
//
//   - bad-address, config: a configuration that cannot work; Check reports it without I/O.
//   - unreachable, tls: nobody answers, or the peer could not be verified.
//   - auth, vhost, forbidden: login refused; no such virtual host; no permission.
//   - not-found: the queue or an exchange does not exist.
//   - differs: it exists with other properties; the error wraps a [*Mismatch].
//   - exclusive: somebody else holds the queue or consumes from it exclusively.
//   - window: Prefetch is smaller than what the container wants to hold.
//
// An open consumer ends with ack-timeout, canceled, conn-lost, not-found,
// forbidden or refused, told to the observer and returned by Receive.
//
// Publish returns a *transport.PartialError whose errors have the codes
// unroutable, refused, too-large, bad-header, blocked, timeout, not-found,
// forbidden or conn-lost.
//
// [Requester] and [Replier] are request and reply by direct reply-to.
//
// # Native access
//
// Delivery.Native is an *amqp091.Delivery. It is for reading: settling it is
// refused, since tags belong to the transport. [Config.Client] changes the
// client's own configuration before each connect.
package amqp
