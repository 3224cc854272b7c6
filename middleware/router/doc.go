// Package router is a handler that chooses among handlers by what a message is: its
// type, the topic it came from, its routing key.
//
//	r, err := router.New(router.Config{},
//		router.Type("order.paid", longshore.Typed(codec, paid)),
//		router.Type("order.canceled", longshore.Typed(codec, canceled)),
//		router.RoutingKey("audit.#", audit),
//	)
//	c, err := container.New(source, r, container.Config{})
//
// The first route that matches takes the message; types are found without looking at
// the others. What no route takes is logged with its type and follows
// Config.Unmatched: rejected, so that it ends where a person finds it, unless told
// otherwise.
package router
