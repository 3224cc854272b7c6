package admin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/longshore-go/longshore/internal/dlq"
)

// Job replays, exports or purges dead letters. It continues without viewers and ends with the
// process: dead letters that were not sent by then stay where they are.
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
	// Total is the number of dead letters; 0: not known. Done were sent, removed or exported;
	// Failed could not be sent and stay; Kept were not selected.
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

// jobs are the running jobs and the last ones that ended. They own the goroutines of the jobs
// and the files of exports.
type jobs struct {
	hub *hub // its viewers see the progress

	mu   sync.Mutex
	ctx  context.Context //nolint:containedctx // ends when the server stops: a job outlives its request
	list []*job
	next int
	wg   sync.WaitGroup // of the jobs that run; grows under mu
}

// job is one job. Its fields are guarded by jobs.mu.
type job struct {
	Job

	cancel context.CancelFunc
	file   string    // of an export that is done
	shown  time.Time // when viewers last got it
}

// begin adds a job, or returns why it cannot start now. The caller must call run with it: stop
// waits for that.
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
			return nil, nil, fmt.Errorf("a %s of its dead letters is running", j.Kind)
		}
	}
	if running >= mostJobs {
		return nil, nil, fmt.Errorf("%d jobs are running, the most at once", running)
	}
	js.next++
	v.ID, v.State, v.Began = strconv.FormatInt(time.Now().Unix(), 36)+"-"+strconv.Itoa(js.next), jobRunning, time.Now()
	ctx, cancel := context.WithCancel(js.ctx)
	j := &job{Job: v, cancel: cancel}
	js.wg.Add(1)
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

// run does the work of a job in a goroutine and calls ended with its result.
func (js *jobs) run(ctx context.Context, j *job, work func(context.Context) (dlq.Result, error), ended func(dlq.Result)) {
	go func() {
		defer js.wg.Done()
		defer j.cancel()
		res, err := work(ctx)
		js.update(j, func(v *Job) {
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
		ended(res)
	}()
}

// start lets jobs begin until ctx ends.
func (js *jobs) start(ctx context.Context) {
	js.mu.Lock()
	defer js.mu.Unlock()
	js.ctx = ctx
}

// stop lets no more jobs begin, waits for those that run, and removes their files. The
// context of start has ended.
func (js *jobs) stop() {
	js.mu.Lock()
	js.ctx = nil
	js.mu.Unlock()
	js.wg.Wait()
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.list {
		j.forget()
	}
	js.list = nil
}

// shown are the jobs as the caller may see them.
func (js *jobs) shown(ctx context.Context) []Job {
	js.mu.Lock()
	defer js.mu.Unlock()
	list := make([]Job, 0, len(js.list))
	for _, j := range js.list {
		list = append(list, shownTo(ctx, j.Job))
	}
	return list
}

// now is a job as it is.
func (js *jobs) now(j *job) Job {
	js.mu.Lock()
	defer js.mu.Unlock()
	return j.Job
}

// export is the file of an export that is done, "" for another job.
func (js *jobs) export(j *job) string {
	js.mu.Lock()
	defer js.mu.Unlock()
	if j.State != jobDone {
		return ""
	}
	return j.file
}

// exported takes over the file of an export.
func (js *jobs) exported(j *job, file string) {
	js.mu.Lock()
	defer js.mu.Unlock()
	j.file = file
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
func (js *jobs) update(j *job, change func(*Job)) {
	now := time.Now()
	js.mu.Lock()
	change(&j.Job)
	show := j.State != jobRunning || now.Sub(j.shown) >= progressGap
	if show {
		j.shown = now
	}
	v := j.Job
	js.mu.Unlock()
	if show {
		js.hub.status(frameOf("job", 0, v))
	}
}

func (j *Job) count(r dlq.Result) {
	j.Total, j.Done, j.Failed, j.Kept = r.Total, r.Done, r.Failed, r.Kept
}
