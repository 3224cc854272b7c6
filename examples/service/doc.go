// Command service is a consumer to copy: a handler, a configuration file, an image and a
// Kubernetes deployment. See README.md.
//
//	RABBIT_PASSWORD=guest go run ./examples/service
//
// In reading order: main.go, then handler.go and its test, then longshore.yaml.
package main
