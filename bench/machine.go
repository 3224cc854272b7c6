package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// machine says in a paragraph when, where and with what was measured.
func machine() string {
	kernel := strings.TrimSpace(file("/proc/sys/kernel/osrelease"))
	memory, _, _ := strings.Cut(strings.TrimPrefix(file("/proc/meminfo"), "MemTotal:"), "\n")
	load := strings.Fields(file("/proc/loadavg") + " ? ? ?")[:3]
	return fmt.Sprintf("%s, %d cores, memory %s, %s %s, load at the end %s. %s; %s.", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(),
		strings.TrimSpace(memory), runtime.GOOS, kernel, strings.Join(load, " "), runtime.Version(), strings.Join(append(clients(), brokers()...), ", "))
}

func file(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	return string(b)
}

func clients() []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	measured := []string{
		"github.com/rabbitmq/amqp091-go", "github.com/twmb/franz-go", "github.com/aws/aws-sdk-go-v2/service/sqs", "gocloud.dev", "gocloud.dev/pubsub/rabbitpubsub",
		"github.com/ThreeDotsLabs/watermill", "github.com/ThreeDotsLabs/watermill-amqp/v3", "github.com/ThreeDotsLabs/watermill-kafka/v3",
	}
	var out []string
	for _, d := range info.Deps {
		if slices.Contains(measured, d.Path) {
			out = append(out, strings.TrimPrefix(d.Path, "github.com/")+" "+d.Version)
		}
	}
	return out
}

// brokers asks RabbitMQ; Kafka and ElasticMQ tell no exact version.
func brokers() []string {
	url := os.Getenv("AMQP_URL")
	if url == "" {
		return nil
	}
	conn, err := amqp.Dial(url)
	if err != nil {
		return nil
	}
	defer func() { _ = conn.Close() }()
	return []string{fmt.Sprintf("RabbitMQ %v", conn.Properties["version"])}
}
