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
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/dlq"
)

// Job is something that is done with dead letters. It goes on when nobody looks, and ends
// with the process: what was not sent by then is still where it was.
type Job struct {
	ID        string `json:"id"`
	Instance  string `json:"instance"`
	Container string `json:"container"`
	// Kind is replay, export or purge.
	Kind string `json:"kind"`
	// State is running, done, stopped or failed.
	State  string    `json:"state"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended,omitzero"`
	// Total is how many there are; 0: not known. Done are gone from there, or in the export;
	// Failed could not be sent and stay, Kept were not meant.
	Total  int64  `json:"total"`
	Done   int    `json:"done"`
	Failed int    `json:"failed"`
	Kept   int    `json:"kept"`
	Error  string `json:"error,omitempty"`
}

// Bare returns the job as it is shown without a token: without texts and people.
func (j Job) Bare() Job {
	j.By, j.Reason, j.Error = "", "", ""
	return j
}

const (
	jobRunning = "running"
	jobDone    = "done"
	jobStopped = "stopped"
	jobFailed  = "failed"

	keepJobs    = 20
	mostJobs    = 4 // at once
	mostExport  = 256 << 20
	progressGap = 500 * time.Millisecond
)

// jobs are those that run and the last ones that ended.
type jobs struct {
	mu   sync.Mutex
	ctx  context.Context //nolint:containedctx // ends when the server stops: a job outlives its request
	list []*job
	next int
	wg   sync.WaitGroup
}

// job is one of them. Its fields are guarded by jobs.mu.
type job struct {
	Job

	cancel context.CancelFunc
	file   string    // of an export that is done
	told   time.Time // when viewers heard of it last
}

// begin adds a job, or says why it may not begin now.
func (js *jobs) begin(v Job) (*job, context.Context, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if js.ctx == nil || js.ctx.Err() != nil {
		return nil, nil, errors.New("the admin server is not started")
	}
	running := 0
	for _, j := range js.list {
		if j.State != jobRunning {
			continue
		}
		if running++; j.Container == v.Container {
			return nil, nil, fmt.Errorf("a %s of its dead letters runs", j.Kind)
		}
	}
	if running >= mostJobs {
		return nil, nil, fmt.Errorf("%d jobs run", running)
	}
	js.next++
	v.ID, v.State, v.Began = strconv.FormatInt(time.Now().Unix(), 36)+"-"+strconv.Itoa(js.next), jobRunning, time.Now()
	ctx, cancel := context.WithCancel(js.ctx)
	j := &job{Job: v, cancel: cancel}
	js.list = append(js.list, j)
	for len(js.list) > keepJobs {
		i := slices.IndexFunc(js.list, func(j *job) bool { return j.State != jobRunning })
		js.list[i].forget()
		js.list = slices.Delete(js.list, i, i+1)
	}
	return j, ctx, nil
}

// forget removes the file of an export.
func (j *job) forget() {
	if j.file != "" {
		_ = os.Remove(j.file) // a temporary file: the system removes it else
	}
}

// start lets jobs begin; stop ends them, waits, and removes their files.
func (js *jobs) start(ctx context.Context) {
	js.mu.Lock()
	defer js.mu.Unlock()
	js.ctx = ctx
}

func (js *jobs) stop() {
	js.wg.Wait()
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.list {
		j.forget()
	}
	js.list = nil
}

func (js *jobs) all() []Job {
	js.mu.Lock()
	defer js.mu.Unlock()
	list := make([]Job, 0, len(js.list))
	for _, j := range js.list {
		list = append(list, j.Job)
	}
	return list
}

func (js *jobs) find(id string) *job {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.list {
		if j.ID == id {
			return j
		}
	}
	return nil
}

// update changes a job and hands it to the viewers, not too often while it runs.
func (s *Server) update(j *job, change func(*Job)) {
	now := time.Now()
	s.jobs.mu.Lock()
	change(&j.Job)
	tell := j.State != jobRunning || now.Sub(j.told) >= progressGap
	if tell {
		j.told = now
	}
	v := j.Job
	s.jobs.mu.Unlock()
	if tell {
		s.hub.status(frame{sse("job", 0, v), sse("job", 0, v.Bare())})
	}
}

func (s *Server) listJobs(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{"jobs": s.jobs.all()})
}

func (s *Server) showJob(w http.ResponseWriter, r *http.Request) {
	if j := s.findJob(w, r); j != nil {
		s.jobs.mu.Lock()
		v := j.Job
		s.jobs.mu.Unlock()
		answer(w, http.StatusOK, v)
	}
}

func (s *Server) findJob(w http.ResponseWriter, r *http.Request) *job {
	j := s.jobs.find(r.PathValue("id"))
	if j == nil {
		fail(w, http.StatusNotFound, longshore.CodeNotFound, "there is no job "+clip(r.PathValue("id")), "see GET /api/jobs")
	}
	return j
}

func (s *Server) stopJob(w http.ResponseWriter, r *http.Request) {
	if j := s.findJob(w, r); j != nil {
		j.cancel()
		s.showJob(w, r)
	}
}

// startJob begins a job and answers at once.
func (s *Server) startJob(w http.ResponseWriter, r *http.Request) { //nolint:contextcheck // a job goes on after its request
	var b struct {
		letterFilter

		Kind   string  `json:"kind"`
		To     string  `json:"to"`
		Rate   float64 `json:"rate"`
		Limit  int     `json:"limit"`
		Reason string  `json:"why"`
	}
	c, src := s.findDead(w, r)
	if src == nil || !read(w, r, &b) {
		return
	}
	do := map[string]func(context.Context, *job, dlq.Job) (dlq.Result, error){
		"replay": func(ctx context.Context, _ *job, d dlq.Job) (dlq.Result, error) { return dlq.Replay(ctx, d) },
		"purge":  func(ctx context.Context, _ *job, d dlq.Job) (dlq.Result, error) { return dlq.Purge(ctx, d) },
		"export": s.export,
	}[b.Kind]
	_, log := src.(dlq.Log)
	switch {
	case do == nil:
		fail(w, http.StatusBadRequest, longshore.CodeConfig, "kind is none of replay, export and purge", "see GET /api/openapi.json")
		return
	case b.Rate < 0 || b.Limit < 0:
		fail(w, http.StatusBadRequest, longshore.CodeConfig, "negative numbers are not obeyed", "")
		return
	case b.Kind == "replay" && log && s.cfg.DeadLetters[c.Name()] == nil:
		refuse(w, &longshore.Error{Code: longshore.CodeUnsupported, Op: fmt.Sprintf("replay the dead letters of %q", c.Name()), Err: errors.New("the replay of a log remembers in a consumer group of its own what it has put back"),
			Hint: "set admin.Config.DeadLetters, or use longshore dlq replay"})
		return
	}
	j, ctx, err := s.jobs.begin(Job{Instance: s.instance, Container: c.Name(), Kind: b.Kind, By: who(r.Context()), Reason: clip(b.Reason)})
	if err != nil {
		refuse(w, &longshore.Error{Code: longshore.CodeState, Op: b.Kind + " the dead letters of " + c.Name(), Err: err, Hint: "wait until it ends, or stop it"})
		return
	}
	s.note(r, c, deed{verb: b.Kind, text: b.Kind + " of dead letters began", reason: b.Reason})
	d := dlq.Job{Source: src, Filter: b.filter(), To: b.To, Rate: b.Rate, Limit: b.Limit, Progress: func(res dlq.Result) { s.update(j, func(v *Job) { v.count(res) }) }}
	if n := len(b.IDs); n > 0 && d.Limit == 0 {
		d.Limit = n
	}
	s.jobs.wg.Go(func() { s.runJob(ctx, c, j, d, do) })
	s.jobs.mu.Lock()
	v := j.Job
	s.jobs.mu.Unlock()
	answer(w, http.StatusAccepted, v)
}

func (s *Server) runJob(ctx context.Context, c *container.ListenerContainer, j *job, d dlq.Job, do func(context.Context, *job, dlq.Job) (dlq.Result, error)) {
	defer j.cancel()
	res, err := do(ctx, j, d)
	s.update(j, func(v *Job) {
		v.count(res)
		v.Ended, v.State = time.Now(), jobDone
		switch {
		case ctx.Err() != nil:
			v.State = jobStopped
		case err != nil:
			v.State, v.Error = jobFailed, cutAt(err.Error(), 512)
		case res.First != nil:
			v.Error = cutAt(res.First.Error(), 512)
		}
	})
	s.hub.add(Event{Time: time.Now(), Instance: s.instance, Container: c.Name(), Kind: "operator", By: j.By,
		Text: fmt.Sprintf("%s of dead letters ended: %d done, %d failed, %d stay", j.Kind, res.Done, res.Failed, res.Kept)})
}

func (j *Job) count(r dlq.Result) {
	j.Total, j.Done, j.Failed, j.Kept = r.Total, r.Done, r.Failed, r.Kept
}

// export writes what is chosen to a temporary file, one JSON document a line.
func (s *Server) export(ctx context.Context, j *job, d dlq.Job) (res dlq.Result, err error) {
	f, err := os.CreateTemp("", "longshore-export-*.jsonl")
	if err != nil {
		return res, err
	}
	w := bufio.NewWriter(f)
	size := 0
	_, lerr := dlq.Look(ctx, d.Source, 1<<31-1, func(l dlq.Letter) bool {
		if !d.Filter.Match(l.Delivery, l.Facts) {
			res.Kept++
			return ctx.Err() == nil
		}
		m := mask{names: s.cfg.Mask, hidden: map[string]bool{}}
		raw, merr := json.Marshal(m.exported(&l))
		if merr == nil {
			_, merr = w.Write(append(raw, '\n'))
		}
		if size += len(raw); merr == nil && size > mostExport {
			merr = fmt.Errorf("the export is larger than %d MiB: choose fewer", mostExport>>20)
		}
		if err = merr; err != nil {
			return false
		}
		res.Done++
		d.Progress(res)
		return ctx.Err() == nil && (d.Limit == 0 || res.Done < d.Limit)
	})
	err = errors.Join(err, lerr, w.Flush(), f.Close())
	if err != nil {
		return res, errors.Join(err, os.Remove(f.Name()))
	}
	s.jobs.mu.Lock()
	j.file = f.Name()
	s.jobs.mu.Unlock()
	return res, nil
}

// download sends the file of an export.
func (s *Server) download(w http.ResponseWriter, r *http.Request) {
	j := s.findJob(w, r)
	if j == nil {
		return
	}
	s.jobs.mu.Lock()
	name, done := j.file, j.State == jobDone
	s.jobs.mu.Unlock()
	if name == "" || !done {
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
	_, _ = io.Copy(w, f) // the client is gone: nobody to tell
}
