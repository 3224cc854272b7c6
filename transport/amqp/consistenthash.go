package amqp

import (
	"fmt"
	"strconv"

	"github.com/longshore-go/longshore/internal/problem"
)

// checkHash refuses a binding to a consistent-hash exchange whose key is not a weight, and
// arguments for an exchange that is not declared. RabbitMQ would close the connection.
func (b *Binding) checkHash(l *problem.List, i int) {
	field := fmt.Sprintf("Declare.Bindings[%d]", i)
	if n, err := strconv.Atoi(b.Key); b.Kind == ConsistentHash && (err != nil || n < 1) {
		l.Add(problem.Range(field+".Key", strconv.Quote(b.Key), "the weight of the queue, a whole number from 1 on: a consistent-hash exchange gives it that share of the messages"))
	}
	if b.Kind == "" && len(b.ExchangeArguments) > 0 {
		l.Add(problem.Bad(field+".Kind", "set {"+field+".Kind}, or leave {"+field+".ExchangeArguments} out", "is not set, so {"+field+".ExchangeArguments} are not declared").OfKind(problem.Missing))
	}
}
