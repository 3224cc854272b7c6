package longshore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
)

// received is a delivery as a transport makes one.
func received(m longshore.Message) *longshore.Delivery {
	d := longshore.NewDelivery(context.Background(), nil, 0)
	d.Message = m
	return d
}

type shopOrder struct{ ID string }

// Typed decodes the body. A body that does not decode never reaches the function.
func ExampleTyped() {
	pay := longshore.Typed(longshore.JSON{}, func(_ context.Context, o shopOrder, _ *longshore.Delivery) error {
		fmt.Println("paid", o.ID)
		return nil
	})
	ctx := context.Background()
	fmt.Println(pay.Handle(ctx, received(longshore.Message{Body: []byte(`{"ID":"o-1"}`)})))

	err := pay.Handle(ctx, received(longshore.Message{Body: []byte(`<order/>`)}))
	verdict, _ := longshore.VerdictOf(err)
	fmt.Println(longshore.CodeOf(err), verdict)
	// Output:
	// paid o-1
	// <nil>
	// undecodable reject
}

// A handler's error says what becomes of its message. Any other error is retried by the policy.
func ExampleVerdictOf() {
	failed := errors.New("the bank is busy")
	for _, err := range []error{nil, longshore.Retry(failed, 2*time.Second), longshore.Reject(failed), longshore.Discard(failed), longshore.Release(failed, time.Minute)} {
		verdict, delay := longshore.VerdictOf(err)
		fmt.Println(verdict, delay)
	}
	// Output:
	// ack 0s
	// retry 2s
	// reject 0s
	// discard 0s
	// release 1m0s
}

// A batch handler names the deliveries that failed; the others are acked.
func ExampleTypedBatch() {
	store := longshore.TypedBatch(longshore.JSON{}, func(_ context.Context, orders []shopOrder, _ []*longshore.Delivery) error {
		failed := longshore.BatchError{}
		for i, o := range orders {
			if o.ID == "" {
				failed[i] = longshore.Reject(errors.New("no id"))
			}
		}
		return failed
	})
	err := store(context.Background(), []*longshore.Delivery{
		received(longshore.Message{Body: []byte(`{"ID":"o-1"}`)}),
		received(longshore.Message{Body: []byte(`{}`)}),
	})
	var failed longshore.BatchError
	fmt.Println(errors.As(err, &failed), len(failed), failed[0], failed[1])
	// Output: true 1 <nil> no id
}

// One handler reads what several producers write.
func ExampleContentTypes() {
	codec := longshore.ContentTypes{
		Types:   map[string]longshore.Codec{"application/json": longshore.JSON{}},
		Default: longshore.JSON{}, // for messages without a content type
	}
	pay := longshore.Typed(codec, func(_ context.Context, o shopOrder, _ *longshore.Delivery) error {
		fmt.Println("paid", o.ID)
		return nil
	})
	ctx, body := context.Background(), []byte(`{"ID":"o-1"}`)
	fmt.Println(pay.Handle(ctx, received(longshore.Message{ContentType: "application/json; charset=utf-8", Body: body})))
	fmt.Println(longshore.CodeOf(pay.Handle(ctx, received(longshore.Message{ContentType: "text/csv", Body: body}))))
	// Output:
	// paid o-1
	// <nil>
	// undecodable
}

// On a compacted topic a record without a value deletes its key. A pointer is nil then.
func ExampleTombstone() {
	ctx, deleted := context.Background(), longshore.Message{Key: []byte("o-1")}
	save := longshore.Typed(longshore.JSON{}, func(_ context.Context, o *shopOrder, d *longshore.Delivery) error {
		fmt.Printf("%s deleted: %v\n", d.Key, o == nil)
		return nil
	})
	fmt.Println(save.Handle(ctx, received(deleted)))

	skip := longshore.Typed(longshore.JSON{}, func(context.Context, shopOrder, *longshore.Delivery) error {
		return errors.New("never called")
	}, longshore.SkipTombstone)
	fmt.Println(skip.Handle(ctx, received(deleted)))
	// Output:
	// o-1 deleted: true
	// <nil>
	// <nil>
}

// Publishers set longshore-id; an inbox, a mutex and Dedupe recognize copies by it.
func ExampleIdentity() {
	m := longshore.Message{}
	m.Headers.Set(longshore.HeaderID, "o-1/paid")
	fmt.Println(longshore.Identity(received(m)))
	// Output: o-1/paid
}

// Match errors by their code, never by their text.
func ExampleCode() {
	err := fmt.Errorf("start: %w", &longshore.Error{Code: longshore.CodeNotFound, Op: `open rabbitmq queue "orders"`, Hint: "create it, or set Declare"})
	fmt.Println(errors.Is(err, longshore.CodeNotFound), longshore.CodeOf(err))
	// Output: true not-found
}
