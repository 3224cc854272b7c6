package amqp

import "strings"

// To is the destination for a publisher that means an exchange and a routing key,
// with any character in them. An empty exchange is the default one, where the
// routing key is the name of a queue.
//
//	pub.Publish(ctx, amqp.To("events", "order.paid"), msg)
func To(exchange, key string) string {
	if exchange == "" {
		return escapeDest(key, true)
	}
	return escapeDest(exchange, true) + "/" + escapeDest(key, false)
}

// escapeDest escapes what separates the parts of a destination; names in RabbitMQ may contain it.
func escapeDest(s string, slash bool) string {
	s = strings.ReplaceAll(s, "%", "%25")
	if slash {
		s = strings.ReplaceAll(s, "/", "%2F")
	}
	return s
}

// parseDest reads "queue" or "exchange/routing.key". %2F and %25 stand for / and
// %; any other % is itself.
func parseDest(dest string) (exchange, key string) {
	exchange, key, ok := strings.Cut(dest, "/")
	if !ok {
		return "", unescapeDest(dest)
	}
	return unescapeDest(exchange), unescapeDest(key)
}

// unescapeDest undoes escapeDest, and leaves every other percent sign alone.
func unescapeDest(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	return strings.NewReplacer("%2F", "/", "%2f", "/", "%25", "%").Replace(s)
}
