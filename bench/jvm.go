package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"go.uber.org/zap"
)

// jvmVariable has the class path of the program in jvm/, which scripts/bench-jvm
// builds.
const jvmVariable = "LONGSHORE_BENCH_JVM"

// jvmCases compare with what a Java service would use: Spring and Confluent's Parallel
// Consumer, each run in a new process. Both sides find the same filled queue, handle
// it with as many workers, and are measured behind the same warm-up: by then the
// virtual machine has compiled what is hot.
func jvmCases() []benchCase {
	return []benchCase{
		{"jvm/rabbit", jvmVariable, jvmRabbit},
		{"jvm/kafka", jvmVariable, kafkaGiven.run(jvmKafka)},
		{"jvm/sqs", jvmVariable, jvmSQS},
	}
}

// jvmJob is a filled queue or topic that is worked off.
type jvmJob struct {
	address, from, group string
	warm, n              int
	workers, prefetch    int
	work                 time.Duration
}

func (j jvmJob) all() int { return j.warm + j.n }

func (j jvmJob) title(where string) string {
	handler := "no-op handler"
	if j.work > 0 {
		handler = fmt.Sprintf("%v handler", j.work)
	}
	return fmt.Sprintf("%s beside the JVM: %s, %d at once, %d messages behind a warm-up of %d in the same process", where, handler, j.workers, j.n, j.warm)
}

// java runs the program in a mode of its own.
func (j jvmJob) java(mode string) (sample, error) {
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	defer stop()
	arg := func(name string, value any) string { return fmt.Sprintf("%s=%v", name, value) }
	cmd := exec.CommandContext(ctx, "java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", os.Getenv(jvmVariable), "bench.Main", mode,
		arg("address", j.address), arg("from", j.from), arg("group", j.group), arg("warm", j.warm), arg("messages", j.n),
		arg("workers", j.workers), arg("prefetch", j.prefetch), arg("work", j.work.Milliseconds()))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return sample{}, errors.Join(fmt.Errorf("java %s: %w", mode, err), ctx.Err())
	}
	var took struct {
		Messages  int
		Wall, CPU time.Duration
	}
	if err := json.Unmarshal(out, &took); err != nil {
		return sample{}, fmt.Errorf("java %s printed %q: %w", mode, out, err)
	}
	return sample{n: took.Messages, wall: took.Wall, cpu: took.CPU}, nil
}

// longshore runs a container that measures as the program does.
func (j jvmJob) longshore(src transport.Source, order container.Order) (sample, error) {
	w := &jvmWindow{warm: int64(j.warm), all: int64(j.all()), watch: startWatch(), done: make(chan struct{})}
	c, err := container.New(src, longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
		w.begin()
		if j.work > 0 {
			time.Sleep(j.work) //nolint:forbidigo // the handler's work
		}
		w.end()
		return nil
	}), container.Config{Workers: container.Workers{Min: j.workers, Max: j.workers}, Order: order,
		DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}, Logger: zap.NewNop()})
	if err != nil {
		return sample{}, err
	}
	if err := c.Start(context.Background()); err != nil {
		return sample{}, err
	}
	<-w.done
	return w.took, c.Stop(context.Background())
}

// withTimer adds what the handlers alone would do: as many goroutines that sleep, and no
// broker. A Go timer ends up to a millisecond late, one of the JVM earlier; where a
// handler only sleeps, more than this no Go program can reach.
func (j jvmJob) withTimer(vs []variant) []variant {
	if j.work == 0 {
		return vs
	}
	return append(vs, variant{"goroutines that sleep, no broker", func() (sample, error) {
		var taken atomic.Int64
		var all sync.WaitGroup
		w := startWatch()
		for range j.workers {
			all.Go(func() {
				for taken.Add(1) <= int64(j.n) {
					time.Sleep(j.work) //nolint:forbidigo // as the handlers do
				}
			})
		}
		all.Wait()
		return w.stop(j.n), nil
	}})
}

// jvmWindow measures from the end of the warm-up to the last message.
type jvmWindow struct {
	warm, all    int64
	begun, ended atomic.Int64
	watch        stopwatch
	took         sample
	done         chan struct{}
}

func (w *jvmWindow) begin() {
	if w.begun.Add(1) == w.warm+1 {
		w.watch.cpu, w.watch.begin = processCPU(), time.Now()
	}
}

func (w *jvmWindow) end() {
	if w.ended.Add(1) == w.all {
		w.took = w.watch.stop(int(w.all - w.warm))
		close(w.done)
	}
}

// jvmTable has Longshore first: a ratio says how it stands against the library.
func jvmTable(r *report, title string, vs []variant, ss [][]sample) {
	var rows [][]string
	for i, v := range vs {
		rows = append(rows, []string{v.name, spread(each(ss[i], sample.rate), "%.0f"), spread(ratios(ss[0], ss[i], sample.rate), "%.2f"),
			fmt.Sprintf("%.1f", median(each(ss[i], sample.cpuPer))/1000), spread(ratios(ss[0], ss[i], sample.cpuPer), "%.2f")})
	}
	r.table(title, []string{"variant", "msg/s min / median / max", "longshore's rate by its: min / median / max", "client CPU µs/msg", "longshore's CPU by its: min / median / max"}, rows)
}
