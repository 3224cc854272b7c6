// Package conn is one connection to RabbitMQ, from its address to its end. It knows no
// queue, no consumer and no message.
//
//	shared := conn.NewShared(settings, "consume", nodes, event)
//	session, err := shared.Acquire(ctx)    // the first user connects
//	defer shared.Release(ctx, session)     // the last one closes
//
// In reading order: address.go reads URLs and host names; settings.go is what a connection
// needs; dial.go connects, with TLS and login; errors.go explains why that failed;
// session.go is the open connection and what the broker says on it; tokenrefresh.go renews
// a login that expires; shared.go lets many users have one session; program.go names this
// program to the broker.
package conn
