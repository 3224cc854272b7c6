package urls_test

import (
	"fmt"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/urls"
)

// The broker is chosen by a URL, for example from the environment. Nothing is connected yet.
func ExampleSource() {
	for _, url := range []string{
		"amqp://guest:guest@localhost/?queue=orders",
		"kafka://k1:9092,k2:9092/orders?group=billing",
		"sqs://orders?region=eu-west-1",
		"mem://orders",
	} {
		orders, err := urls.Source(url)
		if err != nil {
			fmt.Println(err)
			return
		}
		if d, ok := orders.(transport.Describer); ok {
			fmt.Println(d.Describe().Transport, d.Describe().Name)
		}
	}
	// Output:
	// rabbitmq orders
	// kafka orders
	// aws_sqs orders
	// memory orders
}
