package container

import (
	"encoding/binary"

	"github.com/longshore-go/longshore"
)

// Order says which deliveries are handled one after the other, in the order of
// their arrival: [Unordered], [ByKey], [ByPartition] or an [OrderFunc].
type Order interface {
	// String is "none", "key", "partition" or "func".
	String() string
	// laneKey appends the lane's name to buf; ok is false if the delivery has none
	// and may run beside everything.
	laneKey(buf []byte, d *longshore.Delivery) (key []byte, ok bool)
}

type fixedOrder uint8

// The orders that need no function.
const (
	// Unordered: everything beside everything.
	Unordered fixedOrder = iota
	// ByKey: one lane for each Message.Key; without a key (nil) unordered.
	ByKey
	// ByPartition: one lane for each topic and partition.
	ByPartition
)

// String names the order.
func (o fixedOrder) String() string {
	switch o {
	case ByKey:
		return "key"
	case ByPartition:
		return "partition"
	default:
		return "none"
	}
}

func (o fixedOrder) laneKey(buf []byte, d *longshore.Delivery) ([]byte, bool) {
	switch o {
	case ByKey:
		return d.Key, d.Key != nil
	case ByPartition:
		buf = append(buf[:0], d.Origin.Topic...)
		return binary.BigEndian.AppendUint32(buf, uint32(d.Origin.Partition)), true
	default:
		return nil, false
	}
}

// OrderFunc names the lane of a delivery; "" is none. It is called once for
// each delivery by whoever receives, so it must be quick. If it panics the
// delivery has failed like by a handler.
type OrderFunc func(d *longshore.Delivery) string

// String returns "func".
func (OrderFunc) String() string { return "func" }

func (f OrderFunc) laneKey(buf []byte, d *longshore.Delivery) ([]byte, bool) {
	key := f(d)
	return append(buf[:0], key...), key != ""
}

func isOrdered(o Order) bool { return o != nil && o != Order(Unordered) }
