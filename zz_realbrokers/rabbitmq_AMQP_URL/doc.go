// Package rabbitmq shows whether the tests on a real RabbitMQ ran: see zz_realbrokers.
package rabbitmq
