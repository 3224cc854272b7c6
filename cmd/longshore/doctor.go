package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/doctor"
	"github.com/longshore-go/longshore/internal/table"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/urls"
)

// doctorCommand is `longshore doctor`.
type doctorCommand struct {
	*app

	db      database
	deadAt  string // TARGET of the dead letters
	ids     []string
	headers []string
	older   time.Duration
	again   time.Duration
	limit   int
	outbox  bool
	force   bool
	apply   bool

	management string
	handler    time.Duration
}

// doctorLine is a finding in JSON. Words instead of numbers: scripts compare them, and the order of the
// states in the code may change.
type doctorLine struct {
	ID         string  `json:"id"`
	Row        string  `json:"row"`
	Locked     string  `json:"locked"`
	Outbox     string  `json:"outbox"`
	DeadLetter string  `json:"dead_letter"`
	Queue      string  `json:"queue"`
	State      string  `json:"state"`
	Meaning    string  `json:"meaning"`
	Action     string  `json:"action"`
	Advice     string  `json:"advice"`
	Safe       bool    `json:"safe"`
	AgeSeconds float64 `json:"age_seconds,omitempty"`
	Holder     string  `json:"holder,omitempty"`
}

// doctorResult is the JSON document. Its lists are empty rather than null, so jq needs no special case.
type doctorResult struct {
	Checks   []checkLine  `json:"checks"`
	Findings []doctorLine `json:"findings"`
	Unknown  []string     `json:"unknown"`
	Changed  int          `json:"changed"`
	Rerun    int          `json:"rerun"`
	Deleted  int          `json:"deleted"`
}

// newDoctor asks the broker, and takes by flags what it cannot see there: the dead-letter queue
// that the code of a service names, and the table of its mutex ids.
func newDoctor(a *app) *cobra.Command {
	f := doctorCommand{app: a}
	cmd := &cobra.Command{
		Use:   "doctor TARGET",
		Short: "Check a queue's settings; explain mutex rows with the queue and its dead letters",
		Long: "doctor checks the settings that decide what happens to messages that fail, wait or take long: limits,\n" +
			"leases, retention, dead-letter destinations.\n\n" +
			"With a database it reads the mutex rows, the dead-letter queue and the queue, twice, and explains each\n" +
			"row. It reads only where reading is harmless; everything it cannot see is reported as unknown.\n" +
			"--apply carries out the safe actions: rerun a dead letter whose row exists, delete one\n" +
			"whose row is gone. Exit code 1: something needs attention.",
		Example: "  longshore doctor 'amqp://guest:guest@localhost/?queue=orders' --handler-time 10m\n" +
			"  longshore doctor 'amqp://guest:guest@localhost/?queue=orders' --dead 'amqp://guest:guest@localhost/?queue=orders.dlq'",
		Args: withTarget(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), args[0]) },
	}
	f.db.flags(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.deadAt, "dead", "", "dead-letter queue as a `TARGET`")
	fs.StringArrayVar(&f.ids, "id", nil, "explain only this mutex id; repeat for more")
	fs.StringArrayVar(&f.headers, "header", []string{mutex.HeaderMutex, "x-mutex-id"}, "header that holds the id; repeat for more")
	fs.DurationVar(&f.older, "older", 5*time.Minute, "skip rows younger than this")
	fs.DurationVar(&f.again, "again", 5*time.Second, "pause before the second look; 0 looks once")
	fs.IntVar(&f.limit, "limit", 1000, "look at no more than this many rows, and messages of each queue")
	fs.BoolVar(&f.outbox, "outbox", false, "the outbox is in the same database")
	fs.BoolVar(&f.force, "force", false, "look even if that changes the queue")
	fs.BoolVar(&f.apply, "apply", false, "carry out the safe actions")
	fs.DurationVar(&f.handler, "handler-time", 0, "longest time a handler takes; checked against leases")
	fs.StringVar(&f.management, "management", "", "`URL` of RabbitMQ's HTTP API (default: AMQP_MANAGEMENT if it belongs to the same cluster, or port 15672 of TARGET's host if TARGET has the standard port)")
	return cmd
}

// run checks the queue alone, or the mutex rows too if there is a database. An unreachable broker ends
// it only in the first case: rows can be explained without the queue's settings.
func (d *doctorCommand) run(ctx context.Context, target string) error {
	if d.limit < 1 {
		return &cli.UsageError{Text: "--limit must be at least 1", Hint: "it is the number of rows to look at"}
	}
	c, queue, dead, err := d.sources(target)
	if err != nil {
		return err
	}
	if d.apply && dead == nil {
		return &cli.UsageError{Text: "--apply needs --dead", Hint: "name the dead-letter queue"}
	}
	db, dialect, err := d.db.open(d.streams.Env)
	if errors.Is(err, errNoDatabase) && doctor.Checkable(queue) && !d.apply && len(d.ids) == 0 {
		checks, err := d.checkup(ctx, target, queue, dead)
		if err != nil {
			return err
		}
		return d.show(checks, doctor.Report{}, doctor.Applied{}, false)
	}
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if err := ping(ctx, d.app, db, &d.db); err != nil {
		return err
	}
	m, err := mutex.New(mutex.SQL(db, dialect), mutex.Config{Tables: d.db.tables, HasOutbox: d.outbox, Logger: zap.NewNop()})
	if err != nil {
		return &cli.CodeError{Code: cli.ExitUsage, Err: err}
	}
	checks, err := d.checkup(ctx, target, queue, dead)
	if err != nil {
		d.print.Notef("settings not checked: %v", err) // the rows can still be explained
	}
	c.Rows = m.Rows
	ctx, cancel := context.WithTimeout(ctx, 2*d.timeout+d.again)
	defer cancel()
	report, err := doctor.Examine(ctx, c)
	if err != nil {
		return err
	}
	var done doctor.Applied
	if d.apply {
		done, err = doctor.Apply(ctx, c, report.Found, dead, queue, 2*time.Second)
		if err != nil {
			return err
		}
	}
	return d.show(checks, report, done, true)
}

// sources opens the queue and its dead letters, those of --dead or of the container's configuration.
// A missing dead-letter queue is not an error here; rows are then explained without it.
func (d *doctorCommand) sources(target string) (c doctor.Case, queue, dead transport.Source, err error) { //nolint:revive // the two sources belong to the case
	c = doctor.Case{Headers: d.headers, Older: d.older, Limit: d.limit, IDs: d.ids, Again: d.again}
	look := urls.Options{BrowseCounts: d.force, NoConsumer: true}
	if queue, _, err = d.target(target, look); err != nil {
		return c, nil, nil, err
	}
	c.Queue, _ = queue.(transport.Browser)
	if d.deadAt != "" {
		dead, _, err = d.target(d.deadAt, look)
	} else if look.DeadLetters = true; isContainer(target) {
		dead, _, err = d.target(target, look)
		if errors.Is(err, longshore.CodeConfig) { // the file does not say
			err = nil
		}
	}
	if err != nil {
		return c, nil, nil, err
	}
	c.Dead, _ = dead.(transport.Browser)
	return c, queue, dead, nil
}

// show prints the settings, and the findings about the rows if they were asked for.
func (d *doctorCommand) show(checks []doctor.Check, r doctor.Report, done doctor.Applied, rows bool) error {
	res := doctorResult{Checks: checkLines(checks), Findings: []doctorLine{}, Unknown: r.Unknown, Changed: r.Changed, Rerun: done.Rerun, Deleted: done.Deleted}
	if res.Unknown == nil {
		res.Unknown = []string{}
	}
	left := -done.Rerun - done.Deleted
	t := d.print.Table(table.Column{Name: "id", Min: 12, Wrap: true}, table.Column{Name: "row"}, table.Column{Name: "dead"}, table.Column{Name: "queue"},
		table.Column{Name: "age", Right: true}, table.Column{Name: "meaning", Below: true}, table.Column{Name: "action"}, table.Column{Name: "safe"})
	for _, f := range r.Found {
		res.Findings = append(res.Findings, doctorLine{ID: f.ID, Row: f.Row.String(), Locked: f.Locked.String(), Outbox: f.Outbox.String(),
			DeadLetter: f.DeadLetter.String(), Queue: f.Queue.String(), State: string(f.State), Meaning: f.Meaning,
			Action: string(f.Action), Advice: f.Advice, Safe: f.Safe, AgeSeconds: f.Age.Seconds(), Holder: f.Holder})
		safe := "no"
		if f.Safe {
			safe = "yes"
		}
		t.Add(cli.Printable(f.ID), f.Row.String(), f.DeadLetter.String(), f.Queue.String(),
			f.Age.Round(time.Second).String(), strings.TrimSuffix(f.Meaning, "."), string(f.Action), safe)
		if f.Action != mutex.ActionNone && f.Action != mutex.ActionWait {
			left++
		}
	}
	if err := d.printAll(res, t, rows); err != nil {
		return err
	}
	if left > 0 || anyBad(checks) {
		return &cli.CodeError{Code: cli.ExitNo}
	}
	return nil
}

// printAll prints the settings first: a row that comes back again and again mostly has its cause there.
func (d *doctorCommand) printAll(res doctorResult, t *table.Table, rows bool) error {
	if d.print.JSON {
		return d.print.Document(res)
	}
	if err := d.printChecks(res.Checks); err != nil || !rows {
		return err
	}
	for _, why := range res.Unknown {
		d.print.Notef("not read: %s", why)
	}
	if res.Changed > 0 {
		d.print.Notef("%d rows changed between the two looks and are left out", res.Changed)
	}
	if t.Len() == 0 {
		return d.print.Printf("nothing outstanding\n")
	}
	text := strings.Join(t.Lines(), "\n") + "\n"
	if res.Rerun+res.Deleted > 0 {
		text += fmt.Sprintf("rerun %d, deleted %d\n", res.Rerun, res.Deleted)
	}
	return d.print.Printf("%s", text)
}
