// Package urls makes a source from a URL, for programs that get their broker
// from the environment:
//
//	orders, err := urls.Source(os.Getenv("ORDERS"))
//
// These are the forms; [Schemes] lists them too:
//
//	amqp://user@host/vhost?queue=orders      RabbitMQ, amqps for TLS
//	amqp://user@host/vhost?queues=a,b        several queues at once
//	amqp://user@host/vhost?exchange=prices   everything of an exchange, to each instance
//	kafka://h1,h2/orders?group=billing       Kafka, kafkas for TLS
//	kafka://h1,h2/orders?share=billing       Kafka, a share group
//	kafka://h1/orders?group=a&transactional=a-0   Kafka, with transactions; true for a random id
//	sqs://orders?region=eu-west-1            SQS
//	mem://orders                             in this process
//
// User, password, names and values of parameters are percent-encoded, so that any character
// can be in them: + in a value is a space, and %2B a plus. In a list, as that of queues, commas
// separate the items, and %2C is a comma in one. Nothing else has a meaning of its own.
//
// A parameter that is not known is an error that names the nearest one that is.
//
// Every scheme is in one list in this package; nothing registers itself. A URL
// that cannot be used gives an error with the code config or bad-address that
// says what is known, and never shows the URL, which may hold a password.
package urls
