// Package config makes containers of a file, longshore.yaml, and the environment, so
// that the broker, its address and every setting can change without the code:
//
//	version: 1
//	containers:
//	  orders:
//	    source: "amqp://localhost/?queue=orders"   # or kafka://…, sqs://…, mem://…
//	    workers: {max: 50}
//	    dead_letter: {to: orders.dlq}
//
// The code has the handlers, by the names of the containers:
//
//	cfg, err := config.Load("longshore.yaml")
//	if err != nil {
//		log.Fatal(err) // everything that is wrong, each with file:line:column
//	}
//	m, err := cfg.Manager(config.Handlers{"orders": pay}, config.Code{})
//	if err != nil {
//		log.Fatal(err)
//	}
//	m.Main() // until Ctrl-C or SIGTERM, then drains and reports
//
// In an fx application package configfx does that, and takes the handlers from the
// graph; [Config.Container] makes a single container, [Config.Settings] the
// container.Config alone.
//
// A key has the name of its Go field in snake_case, and so has its variable: the
// Workers.Max of the container "orders" is workers.max in the file and
// LONGSHORE_CONTAINERS_ORDERS_WORKERS_MAX in the environment. The environment wins over
// the file, a container over defaults, and an unset value is the default of the code.
//
// Passwords and tokens are references, env:NAME or file:PATH, read at each connect. A
// variable such as LONGSHORE_BROKERS_R_PASSWORD may hold a reference too, or the password
// itself; write literal:VALUE for a password that begins with env:, file: or literal:.
// Problems, [Config.Show] and the command never print what they refer to.
//
// docs/reference/configuration.md lists every field; longshore config check finds all
// mistakes of a file.
package config
