// Package spring reads what Spring's producers write, so that a Go service can stand
// together with a Spring one on the same queue or topic:
//
//	Middleware: []longshore.Middleware{
//		spring.Batches(),                                                    // one message that holds many
//		spring.Headers(spring.HeadersConfig{Types: map[string]string{"com.acme.OrderPaid": "order.paid"}}),
//	}
//
// What Spring's recoverers write into dead letters is read by `longshore dlq`.
package spring
