package recipes

import (
	"context"
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/codec/registry"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport/kafka"
)

// Kafka records whose body names a schema of a registry (Confluent's wire format).
func TestSchemaRegistry(t *testing.T) {
	schemas := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"schemaType":"JSON","schema":"{}"}`))
	}))
	t.Cleanup(schemas.Close)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)

	codec, err := registry.New(registry.Config{URLs: []string{schemas.URL}, Client: schemas.Client(),
		Codecs: map[registry.Kind]longshore.Codec{registry.JSON: longshore.JSON{}}}) // registry.Protobuf, registry.Avro: a codec of yours
	if err != nil {
		t.Fatal(err)
	}
	type order struct{ ID string }
	got := make(chan string, 1)
	broker := kafka.New(cluster.ListenAddrs(), kafka.Config{}) // []string{"k1:9092"}
	c, err := container.New(broker.Group("billing", []string{"orders"}, kafka.GroupConfig{Declare: kafka.Declare{Partitions: 1, Replicas: 1}}),
		longshore.Typed(codec, func(_ context.Context, o order, _ *longshore.Delivery) error { got <- o.ID; return nil }),
		container.Config{DeadLetter: container.DeadLetter{To: "orders.dlt"}})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	body := append(binary.BigEndian.AppendUint32([]byte{0}, 7), `{"ID":"o-1"}`...) // a zero byte, schema 7, the value
	containertest.PublishMessages(t, c, &longshore.Message{Key: []byte("o-1"), Body: body})
	if id := <-got; id != "o-1" {
		t.Error(id)
	}
}
