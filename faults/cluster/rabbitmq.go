//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// rabbitCluster has a quorum queue on three nodes, with a single active consumer, which is
// what an order by key needs.
type rabbitCluster struct {
	hosts  []string
	unsafe bool // a classic queue, on one node
}

func (b rabbitCluster) address() string { return strings.Join(b.hosts, ",") }

func (b rabbitCluster) source() transport.Source {
	return amqp.New("amqp://guest:guest@"+strings.Join(b.hosts, ":5672,")+":5672/", amqp.Config{Heartbeat: 2 * time.Second}).
		Queue(place, amqp.QueueConfig{SingleActive: true})
}

// dial connects to the first node that answers.
func (b rabbitCluster) dial(first int) (conn *amqp091.Connection, err error) {
	for i := range b.hosts {
		host := b.hosts[(first+i)%len(b.hosts)]
		conn, err = amqp091.DialConfig("amqp://guest:guest@"+host+":5672/", amqp091.Config{
			Heartbeat: 2 * time.Second, Dial: func(network, addr string) (net.Conn, error) {
				c, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(context.Background(), network, addr)
				if err == nil { // the handshake has a time, too: a frozen node accepts and says nothing
					err = c.SetDeadline(time.Now().Add(4 * time.Second))
				}
				return c, err
			}})
		if err == nil {
			return conn, nil
		}
	}
	return nil, err
}

func (b rabbitCluster) prepare(context.Context) error {
	conn, err := b.dial(0)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the declaration was answered
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if _, err := ch.QueueDelete(place, false, false, false); err != nil {
		return err
	}
	args := amqp091.Table{"x-queue-type": "quorum", "x-quorum-initial-group-size": int32(3), "x-single-active-consumer": true, "x-delivery-limit": int32(-1)}
	if b.unsafe {
		args = amqp091.Table{"x-single-active-consumer": true}
	}
	_, err = ch.QueueDeclare(place, true, false, false, false, args)
	return err
}

func (b rabbitCluster) sender(confirms bool) sender { return &rabbitSender{b: b, confirms: confirms} }

// rabbitSender has a connection of its own, which it makes again when it fails.
type rabbitSender struct {
	b        rabbitCluster
	confirms bool
	conn     *amqp091.Connection
	ch       *amqp091.Channel
	returns  chan amqp091.Return // what no queue took: RabbitMQ confirms it all the same
	dials    int                 // a node that does not answer is not asked first again
}

var errNacked = errors.New("the broker refused it")

func (s *rabbitSender) send(ctx context.Context, key, body string) error {
	err := s.publish(ctx, key, body)
	if err != nil {
		s.close()
	}
	return err
}

func (s *rabbitSender) publish(ctx context.Context, key, body string) error {
	for s.ch == nil {
		if err := s.open(); err == nil {
			break
		} else if wait := pause(ctx, 300*time.Millisecond); wait != nil {
			return err // nothing was sent, and nobody has to know that
		}
	}
	done, err := s.ch.PublishWithDeferredConfirmWithContext(ctx, "", place, true, false, amqp091.Publishing{
		Body: []byte(body), MessageId: body, Headers: amqp091.Table{"longshore-key": key}, DeliveryMode: amqp091.Persistent})
	if err != nil || !s.confirms {
		return err
	}
	taken, err := done.WaitContext(ctx)
	if err == nil && !taken {
		err = errNacked
	}
	select {
	case <-s.returns: // it comes before the confirm
		err = errNacked
	default:
	}
	return err
}

func (s *rabbitSender) open() (err error) {
	s.dials++
	if s.conn, err = s.b.dial(s.dials); err != nil {
		return err
	}
	if s.ch, err = s.conn.Channel(); err == nil && s.confirms {
		err = s.ch.Confirm(false)
	}
	if err != nil {
		s.close()
		return err
	}
	s.returns = s.ch.NotifyReturn(make(chan amqp091.Return, 1))
	return nil
}

func (s *rabbitSender) close() {
	if s.conn != nil {
		_ = s.conn.CloseDeadline(time.Now().Add(time.Second))
	}
	s.conn, s.ch = nil, nil
}

// left empties the queue.
func (b rabbitCluster) left(context.Context) (ids []string, err error) {
	conn, err := b.dial(0)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // all was read
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	q, err := ch.QueueDeclarePassive(place, true, false, false, false, nil)
	if err != nil {
		return nil, err
	}
	got, err := ch.Consume(place, "", true, false, false, false, nil)
	if err != nil {
		return nil, err
	}
	for len(ids) < q.Messages {
		select {
		case d, open := <-got:
			if !open {
				return ids, fmt.Errorf("the channel ended after %d of %d messages", len(ids), q.Messages)
			}
			ids = append(ids, string(d.Body))
		case <-time.After(10 * time.Second):
			return ids, fmt.Errorf("%d of %d messages came", len(ids), q.Messages)
		}
	}
	return ids, nil
}
