package config_test

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/transport"
)

func Example() {
	// A service reads its file: config.Load("longshore.yaml").
	cfg, err := config.Options{}.Parse("longshore.yaml", []byte(`
containers:
  orders:
    source: mem://orders      # or amqp://…, kafka://…, sqs://…
    workers: {max: 50}
    dead_letter: {to: orders.dlq}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	pay := longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		fmt.Printf("paid %s\n", d.Body)
		cancel()
		return nil
	})
	m, err := cfg.Manager(config.Handlers{"orders": pay}, config.Code{Logger: zap.NewNop()})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A service ends here with m.Main().
	if err := m.Start(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	if err := publish(cfg); err != nil {
		fmt.Println(err)
	}
	<-ctx.Done()
	fmt.Println("stopped:", m.Stop(context.Background()))
	// Output:
	// paid order 1
	// stopped: <nil>
}

// publish sends to where the container consumes, whichever broker the file names.
func publish(cfg *config.Config) error {
	src, err := cfg.Source("orders")
	if err != nil {
		return err
	}
	outlet, ok := src.(transport.Outlet)
	if !ok {
		return errors.New("this source cannot publish")
	}
	p, dest, err := outlet.Publisher(context.Background())
	if err != nil {
		return err
	}
	err = p.Publish(context.Background(), dest, &longshore.Message{Body: []byte("order 1")})
	return errors.Join(err, p.Close(context.Background()))
}

// Everything that is wrong is told at once, with its place.
func ExampleOptions_Parse() {
	_, err := config.Options{}.Parse("longshore.yaml", []byte(`
containers:
  orders:
    source: mem://orders
    workers: {min: 30, max: 1}
    ordr: by_key
`))
	fmt.Println(err)
	// Output:
	// longshore: longshore.yaml:5:15: workers.min is 30; must be at most workers.max, which is 1
	// longshore: longshore.yaml:6:5: unknown key `ordr`; did you mean `order`?
}
