package sqs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// altered changes answers on their way.
type altered struct {
	next   awssqs.HTTPClient
	change func([]byte) []byte
	quiet  atomic.Bool
}

func (a *altered) Do(r *http.Request) (*http.Response, error) {
	resp, err := a.next.Do(r)
	if err != nil || a.quiet.Load() {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	body = a.change(body)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// impatient ends requests that are silent for a while, as proxies do.
type impatient struct {
	next  awssqs.HTTPClient
	limit time.Duration
}

func (p impatient) Do(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), p.limit)
	defer cancel()
	resp, err := p.next.Do(r.WithContext(ctx))
	if err != nil && ctx.Err() != nil && r.Context().Err() == nil {
		return nil, io.EOF
	}
	return resp, err
}

// fussy is a server that refuses a call as a whole for one entry of it.
type fussy struct {
	next awssqs.HTTPClient

	mu  sync.Mutex
	bad string // what it does not like
}

func (f *fussy) refuse(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bad = text
}

func (f *fussy) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	bad := f.bad
	f.mu.Unlock()
	if !bytes.Contains(body, []byte(bad)) {
		r.Body = io.NopCloser(bytes.NewReader(body))
		return f.next.Do(r)
	}
	answer := `{"__type":"com.amazonaws.sqs#InvalidAttributeValue","message":"MessageTooLong"}`
	return &http.Response{StatusCode: http.StatusBadRequest, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Query-Error": {"InvalidAttributeValue;Sender"}},
		Body:   io.NopCloser(strings.NewReader(answer)), ContentLength: int64(len(answer))}, nil
}

func receiptOf(d *longshore.Delivery) string {
	m, _ := d.Native().(*types.Message)
	return aws.ToString(m.ReceiptHandle)
}

// partial is what an error of Publish says of single messages.
func partial(t testing.TB, err error) map[int]error {
	t.Helper()
	var p *transport.PartialError
	if err == nil {
		return nil
	}
	if !errors.As(err, &p) {
		t.Fatal(err)
	}
	return p.Failed
}

// told counts the events whose text holds something.
func (w *watcher) told(text string) (n int) {
	for _, e := range w.seen() {
		if strings.Contains(e.Text, text) {
			n++
		}
	}
	return n
}
