package amqp_test

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp"
)

func ExampleBroker_Requester() {
	ctx := context.Background()
	rabbit := amqp.New("amqp://localhost", amqp.Config{})
	prices, err := rabbit.Requester(amqp.RequesterConfig{Timeout: 2 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	reply, err := prices.Request(ctx, "price-requests", &longshore.Message{Body: []byte(`{"item": 7}`)})
	if err == nil {
		fmt.Printf("%s\n", reply.Body)
	}
	_ = prices.Close(ctx)
}
