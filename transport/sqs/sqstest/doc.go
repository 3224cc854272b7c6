// Package sqstest is an in-memory SQS server for tests, demos and trying out:
// the AWS JSON protocol over HTTP, or without a port.
//
//	func TestOrders(t *testing.T) {
//		server := sqstest.New(t)
//		server.CreateQueue(t, "orders", nil)
//		broker := sqs.New(server.Config())
//		// broker.Queue("orders", sqs.QueueConfig{}) …
//	}
//
// Every SDK works with it: give it [Server.URL] as the endpoint, any region and
// any credentials. With [Config.NoPort] and [Server.HTTPClient] no port is opened,
// and the server works inside testing/synctest.
//
// It is strict where emulators are lenient: all documented limits are enforced
// (sizes, characters, names, counts), receipts are those of one receive, deletes are
// idempotent, long polls wake for whatever makes a message visible, FIFO order
// holds over timeouts, a redrive policy acts at the next receive.
//
// [Server.Inject] makes calls fail in chosen ways, [Server.Calls] tells what was
// called, and a virtual clock lets hours pass at once.
//
// Left out: access policies, encryption, the rate of a message move task, and the
// weak counts of SQS (these are exact). Everything is in memory.
package sqstest
