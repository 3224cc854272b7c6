package registry_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/codec/registry"
)

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"schemaType":"JSON","schema":"{}"}`)
	}))
	defer server.Close()
	codec, err := registry.New(registry.Config{URLs: []string{server.URL}, Client: server.Client(),
		Codecs: map[registry.Kind]longshore.Codec{registry.JSON: longshore.JSON{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := longshore.Typed(codec, func(_ context.Context, v int, _ *longshore.Delivery) error {
		fmt.Println("paid", v)
		return nil
	})
	d := longshore.NewDelivery(context.Background(), nil, 1)
	d.Body = []byte("\x00\x00\x00\x00\x0742") // schema 7
	fmt.Println(handler.Handle(context.Background(), d))
	// Output:
	// paid 42
	// <nil>
}
