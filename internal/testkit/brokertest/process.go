package brokertest

import "testing"

// process is a broker of scripts/brokers that a test may break.
type process struct {
	t      testing.TB
	name   string // of scripts/brokers
	script string
	undo   map[string]func() // what is broken now, and how to repair it
}

// take locks and starts brokers (start is what scripts/brokers calls them together).
func take(t testing.TB, start string, names ...string) []process {
	t.Helper()
	script, err := findScript()
	if err != nil {
		notRun(t, err.Error())
	}
	how := "start"
	for _, name := range names {
		if lock(t, name, script) == leftBroken {
			how = "restart"
		}
	}
	if _, err := output(script, how, start); err != nil {
		notRun(t, "no broker that may be broken: "+err.Error())
	}
	var all []process
	for _, name := range names {
		all = append(all, process{t: t, name: name, script: script, undo: make(map[string]func())})
	}
	return all
}

// Kill is kill -9. Durable data stays.
func (p *process) Kill() {
	p.t.Helper()
	p.undo["process"] = p.Start
	p.brokers("kill")
}

// Start starts the broker after Kill and returns when it takes connections.
func (p *process) Start() {
	p.t.Helper()
	p.brokers("start")
	for _, gone := range []string{"process", "app", "alarm", "timeout"} { // a new process has the defaults
		delete(p.undo, gone)
	}
}

// Restart stops the broker in good order and starts it.
func (p *process) Restart() {
	p.t.Helper()
	p.undo["process"] = p.Start
	p.brokers("stop")
	p.Start()
}

// Freeze stops the process without ending it: connections stand, nothing answers.
func (p *process) Freeze() {
	p.t.Helper()
	p.undo["frozen"] = p.Thaw
	p.brokers("freeze")
}

// Thaw ends Freeze.
func (p *process) Thaw() {
	p.t.Helper()
	p.brokers("thaw")
	delete(p.undo, "frozen")
}

// repair leaves the broker as every test expects it, whatever this one did.
func (p *process) repair() {
	for _, what := range []string{"process", "frozen", "app", "alarm", "timeout", "password"} {
		if undo := p.undo[what]; undo != nil {
			undo()
		}
	}
}
