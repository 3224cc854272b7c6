package observe

import (
	"bufio"
	"encoding/json"
	"io"
	"math"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// scaledObject is what is read of the page's manifest here; KEDA's own types read it all.
type scaledObject struct {
	Spec struct {
		MinReplicaCount, MaxReplicaCount int
		Triggers                         []struct{ Metadata map[string]string }
	}
}

// keda is a program with KEDA's scaler in it, as the page's ScaledObject configures it.
type keda struct {
	t        *testing.T
	in       io.WriteCloser
	out      *bufio.Reader
	min, max int
}

// answer is what the scaler says at one moment.
type answer struct {
	Target float64
	Value  float64
	Active bool
	Error  string
}

// startKEDA starts it for a Prometheus server; change edits the trigger's query.
func startKEDA(t *testing.T, s *server, change func(query string) string) *keda {
	t.Helper()
	var object, autoscaler map[string]any
	manifest(t, "ScaledObject", &object)
	manifest(t, "HorizontalPodAutoscaler", &autoscaler)
	var page scaledObject
	raw, err := json.Marshal(object)
	must(t, err)
	must(t, json.Unmarshal(raw, &page))
	k := &keda{t: t, min: page.Spec.MinReplicaCount, max: page.Spec.MaxReplicaCount}
	query := page.Spec.Triggers[0].Metadata["query"]
	if queue, _ := notDone(t); strings.Join(strings.Fields(queue), " ") != strings.Join(strings.Fields(query), " ") {
		t.Errorf("the page's ScaledObject asks another question than the page:\n%s\n%s", query, queue)
	}
	trigger := object["spec"].(map[string]any)["triggers"].([]any)[0].(map[string]any)["metadata"].(map[string]any)
	trigger["serverAddress"], trigger["query"] = s.url, change(query)

	cmd := exec.Command(needed(t, "LONGSHORE_KEDA"))
	var log strings.Builder
	cmd.Stderr = &log
	k.in, err = cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	k.out = bufio.NewReader(out)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = k.in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("keda: %v: %s", err, log.String())
		}
	})
	must(t, json.NewEncoder(k.in).Encode(object))
	must(t, json.NewEncoder(k.in).Encode(autoscaler))
	return k
}

func (k *keda) ask() (a answer) {
	k.t.Helper()
	_, err := io.WriteString(k.in, "\n")
	must(k.t, err)
	line, err := k.out.ReadBytes('\n')
	must(k.t, err)
	must(k.t, json.Unmarshal(line, &a))
	return a
}

// replicas are what the HorizontalPodAutoscaler makes of an answer, by the formula of its
// documentation; an error leaves them.
func (k *keda) replicas(a answer, now int) int {
	k.t.Helper()
	if a.Error != "" || math.Abs(a.Value/(a.Target*float64(now))-1) <= 0.1 {
		return now
	}
	return min(max(int(math.Ceil(a.Value/a.Target)), k.min), k.max)
}

// until asks until the answer is right.
func (k *keda) until(what string, right func(a answer) bool) {
	k.t.Helper()
	late := time.Now().Add(patience)
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		a := k.ask()
		if right(a) {
			k.t.Logf("%s: %+v, %d replicas in place of 2", what, a, k.replicas(a, 2))
			return
		}
		if time.Now().After(late) {
			k.t.Fatalf("%s: %+v", what, a)
		}
	}
}

// never asks for a while: at no time may it scale out.
func (k *keda) never(what string, d time.Duration) {
	k.t.Helper()
	most, asked := 0.0, 0
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); <-tick.C {
		a := k.ask()
		most, asked = max(most, a.Value), asked+1
		if n := k.replicas(a, 2); n > 2 || a.Error != "" || a.Active {
			k.t.Errorf("%s: %+v, %d replicas in place of 2", what, a, n)
		}
	}
	k.t.Logf("%s: asked %d times, at most %v", what, asked, most)
}

// What is not done scales out; behind an open breaker, its trials and a throttle of 0
// nothing does, whatever waits.
func TestKEDAScalesByWhatIsNotDone(t *testing.T) {
	b := newBench(t)
	k := startKEDA(t, b.prom, func(query string) string { return query })
	waiting := func(what string) {
		t.Helper()
		b.shows(what, `max(longshore_backlog{longshore_container="orders"})`, some("", above(2000)))
	}
	k.until("idle", func(a answer) bool { return a.Error == "" && a.Value == 0 && !a.Active })
	b.site.orders.set(false, time.Second)
	must(t, send(t.Context(), b.pub.orders, "orders", 3600, "good"))
	k.until("much to do", func(a answer) bool { return a.Value > 3050 && a.Active && k.replicas(a, 2) == 4 })

	b.site.orders.set(true, 4*time.Second) // each trial is a call that times out
	k.until("the breaker opens", func(a answer) bool { return a.Error == "" && a.Value == 0 })
	k.never("the breaker is open, with trials", 45*time.Second)
	waiting("and the queue is full")
	b.site.orders.set(false, time.Second)
	k.until("it has closed", func(a answer) bool { return a.Value > 2000 && k.replicas(a, 2) >= 3 })

	for _, p := range b.progs {
		p.permits.SetPermits(0)
	}
	k.until("the throttle is 0", func(a answer) bool { return a.Error == "" && a.Value == 0 })
	k.never("the throttle is 0", 10*time.Second)
	waiting("and the queue is full")
	for _, p := range b.progs {
		p.permits.SetPermits(50)
	}
	k.until("no longer", func(a answer) bool { return a.Value > 2000 && k.replicas(a, 2) >= 3 })
	b.site.orders.set(false, 0)
	k.until("all done", func(a answer) bool { return a.Value == 0 && k.replicas(a, 2) == 1 })

	nobody := startKEDA(t, b.prom, func(query string) string { return strings.ReplaceAll(query, `"orders"`, `"nobody"`) })
	if a := nobody.ask(); a.Error == "" || nobody.replicas(a, 7) != 7 {
		t.Errorf("without series: %+v", a)
	}
}

// Behind a stuck record of a log nothing else counts as not done.
func TestAStuckRecordIsNoBacklog(t *testing.T) {
	b := newBench(t)
	must(t, send(t.Context(), b.pub.invoices, "invoices", 1, "head"))
	must(t, send(t.Context(), b.pub.invoices, "invoices", 4000, "good"))
	_, log := notDone(t)
	b.shows("the record and those of its key", log, some("", from(1, 201)))
	b.shows("consumed", `sum(messaging_client_consumed_messages_total{messaging_destination_name="invoices"})`, some("", above(3799)))
}
