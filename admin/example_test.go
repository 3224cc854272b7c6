package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

func Example() {
	broker := memory.New(memory.Config{})
	limit := throttle.NewPermits(20)
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}),
		longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }), container.Config{Throttle: limit})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := admin.New(admin.Config{
		Containers: []*container.ListenerContainer{c},
		Operators:  map[string]transport.Secret{"anna": transport.Static("anna's own token")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A service gives a and c to lifecycle.Main; here one request is enough.
	req := httptest.NewRequestWithContext(context.Background(), http.MethodPut, "http://localhost/api/containers/orders/throttle", strings.NewReader(`{"permits":5}`))
	req.Header.Set("Content-Type", "application/json")
	refused := httptest.NewRecorder()
	a.Handler().ServeHTTP(refused, req.Clone(req.Context()))
	fmt.Println(refused.Code)
	req.Header.Set("Authorization", "Bearer anna's own token")
	done := httptest.NewRecorder()
	a.Handler().ServeHTTP(done, req)
	fmt.Println(done.Code, limit.State().Permits)
	// Output:
	// 401
	// 200 5
}
