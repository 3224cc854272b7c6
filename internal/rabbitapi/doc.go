// Package rabbitapi reads RabbitMQ's management API over HTTP.
//
//	var q struct{ Messages int }
//	found, err := client.Get(ctx, &q, "queues", "/", "orders")
//	findings := rabbitapi.Judge(rabbitapi.Source, "orders", policy)
//
// In reading order: rabbitapi.go makes the calls, policies.go judges what they return.
package rabbitapi
