// Command longshore is the README's program: it handles one message and is killed. The case
// start measures both.
package main

import (
	"context"
	"log"
	"os"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/transport/amqp"
)

type order struct{ ID string }

func handle(_ context.Context, o order, _ *longshore.Delivery) error {
	_, err := os.Stdout.WriteString(o.ID + "\n") // the clock stops here
	return err
}

func main() {
	orders := amqp.New(os.Getenv("AMQP_URL"), amqp.Config{}).Queue(os.Getenv("QUEUE"), amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}})
	dlq := container.DeadLetter{To: os.Getenv("QUEUE") + ".dlq"}
	c, err := container.New(orders, longshore.Typed(longshore.JSON{}, handle), container.Config{DeadLetter: dlq})
	if err != nil {
		log.Fatal(err)
	}
	lifecycle.Main(c)
}
