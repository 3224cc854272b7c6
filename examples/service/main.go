package main

import (
	"log"
	"os"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/lifecycle"
)

func main() {
	path := "longshore.yaml"
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	m, err := service(path, &shop{paid: map[string]bool{}})
	if err != nil {
		log.Fatal(err) // every mistake, with file:line:column
	}
	m.Main() // until Ctrl-C or SIGTERM, then drains and reports
}

// service gives each container of the file its handler.
func service(path string, s *shop) (*lifecycle.Manager, error) {
	cfg, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	return cfg.Manager(config.Handlers{"orders": longshore.Typed(longshore.JSON{}, s.pay)}, config.Code{})
}
