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
//   - unreachable, tls: no response from the broker, or the peer could not be verified.
//   - auth, vhost, forbidden: login refused; no such virtual host; no permission.
//   - not-found: the queue or an exchange does not exist.
//   - mismatch: it exists with other properties; the error wraps a [*Mismatch].
//   - exclusive: another connection holds the queue or consumes from it exclusively.
//   - window: Prefetch is smaller than what the container wants to hold.
//
// An open consumer ends with ack-timeout, canceled, conn-lost, not-found,
// forbidden or refused. The observer gets the error, and Receive returns it.
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
//
// # Parts, in reading order
//
// Configuration: config.go and queue.go (public), settings.go, validate.go, tls.go.
// Public face: broker.go, source.go ([Queue]), broadcast.go, publisher.go with pubchannel.go,
// requester.go, replier.go, browse.go, scan.go, depth.go, errors.go.
//
// An open consumer is a wiring of parts that own their fields and do not know it:
//
//   - consumer.go, shutdown.go: opening, the public methods, the order of the end.
//   - deliveries.go, deliveries_settle.go: what is held, from arrival to confirmation;
//     endstate.go how far the consumer is on its way out; returnway.go how a message goes back.
//   - receive.go and pull.go take messages in; settle.go is what a delivery calls.
//   - settlewriter.go owns the channel (channel.go): the order of acks and of calls that wait
//     for an answer; quorumbacklog.go what the channel may keep for a slow queue.
//   - perworker.go, perworker_settings.go: several of them behind one, a consumer per worker.
//   - prefetch.go: the window; quiesce.go: when a cancel is safe; orderedwindow.go: the window
//     of ordered consumers.
//   - delayqueue.go publishes copies, keepalive.go keeps the queues they wait in; limit.go
//     knows when the broker gives a message up; stream.go keeps the place in a stream.
//   - liveness.go notices a forgotten consumer; failure.go explains why a consumer ended;
//     management.go and policies.go read what AMQP does not show.
//
// Below them: internal/tags (delivery tags, pure), internal/codec (message and frame),
// internal/conn (one connection's life) and internal/wire (below the client library).
package amqp
