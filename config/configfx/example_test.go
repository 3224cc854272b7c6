package configfx_test

import (
	"context"
	"fmt"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/config/configfx"
)

// The file's service in an fx application. A service calls config.Load and Run.
func Example() {
	cfg, err := config.Options{}.Parse("longshore.yaml", []byte(`
version: 1
containers:
  orders: {source: "mem://orders", workers: {max: 50}, dead_letter: {to: orders.dlq}}
`))
	if err != nil {
		fmt.Println(err) // every mistake, with its line
		return
	}
	handlers := func() config.Handlers {
		return config.Handlers{"orders": longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil })}
	}
	app := fx.New(fx.NopLogger, fx.Provide(zap.NewNop, handlers), configfx.Module(cfg))
	ctx := context.Background()
	fmt.Println(app.Start(ctx))
	fmt.Println(app.Stop(ctx))
	// Output:
	// <nil>
	// <nil>
}
