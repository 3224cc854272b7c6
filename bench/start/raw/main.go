// Command raw is the README's program by the client alone: it handles one message and ends.
// The case start measures both.
package main

import (
	"encoding/json"
	"log"
	"os"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

type order struct{ ID string }

func main() {
	if err := run(os.Getenv("AMQP_URL"), os.Getenv("QUEUE")); err != nil {
		log.Fatal(err)
	}
}

func run(url, queue string) error {
	conn, err := amqp091.Dial(url)
	if err != nil {
		return err
	}
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if _, err := ch.QueueDeclare(queue, true, false, false, false, amqp091.Table{"x-queue-type": "quorum"}); err != nil {
		return err
	}
	if err := ch.Qos(10, 0, false); err != nil {
		return err
	}
	in, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	d := <-in
	var o order
	if err := json.Unmarshal(d.Body, &o); err != nil {
		return err
	}
	_, _ = os.Stdout.WriteString(o.ID + "\n") // the clock stops here
	if err := d.Ack(false); err != nil {
		return err
	}
	return conn.Close()
}
