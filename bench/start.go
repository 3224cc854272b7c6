package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// startCases measure how long the README's program takes from its start to its first delivery,
// beside the client alone, and how large both are.
func startCases() []benchCase { return []benchCase{{"start", "AMQP_URL", coldStart}} }

const startQueue = "longshore-bench-start"

func coldStart(o options, r *report) error {
	url := os.Getenv("AMQP_URL")
	dir, err := os.MkdirTemp("", "longshore-start-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is a temporary one
	conn, err := amqp091.Dial(url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // the queues are deleted before
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	// The queues exist, as they do in any start but the very first.
	for _, q := range []string{startQueue, startQueue + ".dlq"} {
		if _, err := ch.QueueDeclare(q, true, false, false, false, amqp091.Table{"x-queue-type": "quorum"}); err != nil {
			return err
		}
		defer func() { _, _ = ch.QueueDelete(q, false, false, false) }() // the next run makes them new
	}
	programs := []string{"raw", "longshore"}
	sizes := make([]int64, len(programs))
	vs := make([]variant, len(programs))
	for i, name := range programs {
		to := filepath.Join(dir, name)
		if out, err := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", to, "./start/"+name).CombinedOutput(); err != nil { //nolint:gosec // one of ours
			return fmt.Errorf("build %s: %w: %s", name, err, out)
		}
		info, err := os.Stat(to)
		if err != nil {
			return err
		}
		sizes[i] = info.Size()
		vs[i] = variant{name, func() (sample, error) { return started(ch, to, url) }}
	}
	ss, err := interleave(3*o.rounds, vs)
	if err != nil {
		return err
	}
	ms := func(s sample) float64 { return s.wallPer() / 1e6 }
	var rows [][]string
	for i, v := range vs {
		rows = append(rows, []string{v.name, spread(each(ss[i], ms), "%.1f"), spread(ratios(ss[i], ss[0], ms), "%.2f"), fmt.Sprintf("%.1f", float64(sizes[i])/1e6)})
	}
	r.table("Cold start of the README's program, RabbitMQ: process to first delivery; binary with `-ldflags '-s -w'`", []string{"program", "ms min / median / max", "ratio", "MB"}, rows)
	ratio := median(ratios(ss[1], ss[0], ms))
	r.bar("cold start", fmt.Sprintf("%.2f × the client alone", ratio), "≤ 1.2 ×", ratio <= 1.2)
	r.bar("binary with one transport", fmt.Sprintf("%.1f MB", float64(sizes[1])/1e6), "≤ 9 MB", sizes[1] <= 9_000_000)
	return nil
}

// started runs the program until it names the first delivery.
func started(ch *amqp091.Channel, program, url string) (sample, error) {
	if _, err := ch.QueuePurge(startQueue, false); err != nil { // what the run before has left unsettled
		return sample{}, err
	}
	if err := ch.PublishWithContext(context.Background(), "", startQueue, false, false, amqp091.Publishing{Body: []byte(`{"ID":"o-17"}`)}); err != nil {
		return sample{}, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "AMQP_URL="+url, "QUEUE="+startQueue)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return sample{}, err
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return sample{}, err
	}
	_, err = bufio.NewReader(out).ReadString('\n')
	s := sample{n: 1, wall: time.Since(begin)}
	_ = cmd.Process.Kill() // it would wait for more
	_ = cmd.Wait()         // it was killed
	if err != nil {
		return sample{}, errors.Join(fmt.Errorf("%s ended before its first delivery", filepath.Base(program)), err)
	}
	return s, nil
}
