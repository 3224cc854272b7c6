package lifecyclefx

import (
	"cmp"
	"fmt"
	"slices"

	"go.uber.org/fx"

	"github.com/longshore-go/longshore"
)

// chainGroup is the fx value group of all middlewares.
const chainGroup = `group:"longshore.middleware"`

// Chain is what [ProvideMiddleware] added, the first one outermost. A container's
// constructor takes it as a parameter:
//
//	func NewOrders(b *amqp.Broker, chain lifecyclefx.Chain) (*container.ListenerContainer, error) {
//		return container.New(b.Queue("orders", amqp.QueueConfig{}), pay, container.Config{Middleware: chain})
//	}
//
// All containers get the same values; what counts for one container alone, as a breaker
// of its own, belongs into that container's constructor.
type Chain []longshore.Middleware

// ProvideMiddleware adds constructors of middlewares to the [Chain] of an fx application.
// The order of a value group is random and that of middlewares matters, so each
// call names a place: lower ones are further out, and those of one call follow each
// other. Two calls for one place are refused by fx. [Module] puts the chain together.
//
//	lifecyclefx.ProvideMiddleware(10, NewTrace, NewLog)
//	lifecyclefx.ProvideMiddleware(50, func(m *mutex.Mutex) longshore.Middleware { return m })
func ProvideMiddleware(place int, constructors ...any) fx.Option {
	opts := make([]fx.Option, 0, 2*len(constructors))
	for i, c := range constructors {
		name := fmt.Sprintf(`name:"longshore.middleware at place %d, number %d"`, place, i+1)
		opts = append(opts,
			fx.Provide(fx.Annotate(c, fx.As(new(longshore.Middleware)), fx.ResultTags(name))),
			fx.Provide(fx.Annotate(func(m longshore.Middleware) placed { return placed{m, place, i} }, fx.ParamTags(name), fx.ResultTags(chainGroup))))
	}
	return fx.Options(opts...)
}

// placed is a middleware and where it belongs.
type placed struct {
	longshore.Middleware
	place, number int // in the chain, and among those of one place
}

type links struct {
	fx.In
	All []placed `group:"longshore.middleware"`
}

func newChain(in links) Chain {
	slices.SortFunc(in.All, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.number, b.number))
	})
	chain := make(Chain, 0, len(in.All))
	for _, p := range in.All {
		chain = append(chain, p.Middleware)
	}
	return chain
}
