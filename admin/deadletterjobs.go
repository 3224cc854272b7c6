package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/dlq"
)

// letterFilter selects dead letters.
type letterFilter struct {
	IDs    []string `json:"ids"`
	Reason string   `json:"reason"`
	Key    *string  `json:"key"`
}

func (f *letterFilter) filter() dlq.Filter {
	return dlq.Filter{IDs: f.IDs, Reason: f.Reason, Key: f.Key}
}

// jobOrder is the body that starts a job.
type jobOrder struct {
	letterFilter

	Kind   string  `json:"kind"`
	To     string  `json:"to"`
	Rate   float64 `json:"rate"`
	Limit  int     `json:"limit"`
	Reason string  `json:"why"`
}

// check reports what is wrong with an order for the dead letters of c.
func (d *deadLetters) check(b *jobOrder, c *served) error {
	bad := func(text, hint string) error {
		return &longshore.Error{Code: longshore.CodeConfig, Err: errors.New(text), Hint: hint}
	}
	_, log := c.dead.(dlq.Log)
	switch {
	case b.Kind != "replay" && b.Kind != "purge" && b.Kind != "export":
		return bad("kind must be replay, export or purge", "see GET /api/openapi.json")
	case b.Rate < 0 || b.Limit < 0:
		return bad("rate and limit must not be negative", "leave them out for no limit")
	case b.Kind == "replay" && log && d.replayable[c.Name()] == nil:
		return &longshore.Error{Code: longshore.CodeUnsupported, Op: fmt.Sprintf("replay the dead letters of %q", c.Name()), Err: errors.New("a replay from a log needs a consumer group of its own to record what was put back"),
			Hint: "set admin.Config.DeadLetters, or use longshore dlq replay"}
	}
	return nil
}

// startJob begins a job and answers at once.
func (d *deadLetters) startJob(w http.ResponseWriter, r *http.Request) {
	var b jobOrder
	c := d.find(w, r)
	if c == nil || !read(w, r, &b) {
		return
	}
	if err := d.check(&b, c); err != nil {
		refuse(w, err)
		return
	}
	by := who(r.Context())
	j, ctx, err := d.jobs.begin(Job{Instance: d.containers.instance, Container: c.Name(), Kind: b.Kind, By: by, Reason: clip(b.Reason)})
	if err != nil {
		refuse(w, &longshore.Error{Code: longshore.CodeState, Op: b.Kind + " the dead letters of " + c.Name(), Err: err, Hint: "wait until it ends, or stop it"})
		return
	}
	d.journal.note(r, c.ListenerContainer, deed{verb: b.Kind, text: b.Kind + " of dead letters began", reason: b.Reason})
	do := dlq.Job{Source: c.dead, Filter: b.filter(), To: b.To, Rate: b.Rate, Limit: b.Limit,
		Progress: func(res dlq.Result) { d.jobs.update(j, func(v *Job) { v.count(res) }) }}
	if n := len(b.IDs); n > 0 && do.Limit == 0 {
		do.Limit = n
	}
	work := map[string]func(context.Context) (dlq.Result, error){
		"replay": func(ctx context.Context) (dlq.Result, error) { return dlq.Replay(ctx, do) },
		"purge":  func(ctx context.Context) (dlq.Result, error) { return dlq.Purge(ctx, do) },
		"export": func(ctx context.Context) (dlq.Result, error) {
			res, file, err := export(ctx, do, d.mask)
			d.jobs.exported(j, file)
			return res, err
		},
	}[b.Kind]
	d.jobs.run(ctx, j, work, func(res dlq.Result) { //nolint:contextcheck // a job goes on after its request
		d.journal.event(c.Name(), fmt.Sprintf("%s of dead letters ended: %d done, %d failed, %d stay", b.Kind, res.Done, res.Failed, res.Kept), "", by)
	})
	answer(w, http.StatusAccepted, d.jobs.now(j))
}

func (d *deadLetters) listJobs(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusOK, map[string]any{"jobs": d.jobs.shown(r.Context())})
}

// findJob returns the job of the path, or answers that there is none.
func (d *deadLetters) findJob(w http.ResponseWriter, r *http.Request) *job {
	j := d.jobs.find(r.PathValue("id"))
	if j == nil {
		fail(w, http.StatusNotFound, longshore.CodeNotFound, "no job "+clip(r.PathValue("id")), "see GET /api/jobs")
	}
	return j
}

func (d *deadLetters) showJob(w http.ResponseWriter, r *http.Request) {
	if j := d.findJob(w, r); j != nil {
		answer(w, http.StatusOK, d.jobs.now(j))
	}
}

func (d *deadLetters) stopJob(w http.ResponseWriter, r *http.Request) {
	if j := d.findJob(w, r); j != nil {
		j.cancel()
		answer(w, http.StatusOK, d.jobs.now(j))
	}
}

// download sends the file of an export.
func (d *deadLetters) download(w http.ResponseWriter, r *http.Request) {
	j := d.findJob(w, r)
	if j == nil {
		return
	}
	name := d.jobs.export(j)
	if name == "" {
		fail(w, http.StatusConflict, longshore.CodeState, "the job has no export that is done", "see GET /api/jobs/"+j.ID)
		return
	}
	f, err := os.Open(name)
	if err != nil {
		refuse(w, &longshore.Error{Code: longshore.CodeNotFound, Op: "read the export", Err: errors.New("its file is gone"), Hint: "export again"})
		return
	}
	defer func() { _ = f.Close() }()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(5 * time.Minute)) // it may be large; not every writer can
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="dead-letters-`+j.ID+`.jsonl"`)
	_, _ = io.Copy(w, f) // the client is gone
}

// export writes what is chosen to a temporary file, one JSON document a line. The caller
// removes the file; after an error, also that of a job that was stopped, there is none.
func export(ctx context.Context, d dlq.Job, hide []string) (res dlq.Result, file string, err error) {
	f, err := os.CreateTemp("", "longshore-export-*.jsonl")
	if err != nil {
		return res, "", err
	}
	w := bufio.NewWriter(f)
	size := 0
	_, lerr := dlq.Look(ctx, d.Source, 1<<31-1, func(l dlq.Letter) bool {
		if !d.Filter.Match(l.Delivery, l.Facts) {
			res.Kept++
			return ctx.Err() == nil
		}
		m := mask{names: hide, hidden: map[string]bool{}}
		var raw []byte
		if raw, err = json.Marshal(m.exported(&l)); err != nil {
			return false
		}
		if size += len(raw); size > mostExport {
			err = fmt.Errorf("the export is larger than %d MiB: choose fewer", mostExport>>20)
			return false
		}
		if _, err = w.Write(append(raw, '\n')); err != nil {
			return false
		}
		res.Done++
		d.Progress(res)
		return ctx.Err() == nil && (d.Limit == 0 || res.Done < d.Limit)
	})
	if err = errors.Join(err, lerr, ctx.Err(), w.Flush(), f.Close()); err != nil {
		return res, "", errors.Join(err, os.Remove(f.Name()))
	}
	return res, f.Name(), nil
}
