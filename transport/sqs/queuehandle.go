package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// callTimeout bounds a call that does not wait for messages.
const callTimeout = 10 * time.Second

// queueHandle is a queue that was found: its client, URL and what its attributes say.
type queueHandle struct {
	b     *Broker        // whose client it uses; close gives it back
	api   *awssqs.Client // for the queue's region and endpoint
	url   string         // by which every call names it
	arn   string         // "" where the attributes may not be read
	fifo  bool           // by its name, which SQS makes end in .fifo
	lease time.Duration  // the queue's visibility timeout, or the configured one

	maxReceives int    // after which the redrive policy moves a message; 0: no policy
	deadURL     string // of the policy's queue; "" if it cannot be found
	notice      string // what an operator should know because it could not be read

	size sizeLimit // of one message, which the publisher reads when it needs it
}

func (l *queueHandle) close() { l.b.release() }

// handle finds the queue, and creates it where that is asked for.
func (s *queueSource) handle(ctx context.Context, opts transport.OpenOptions, declare bool) (*queueHandle, error) {
	if s.problem != nil {
		return nil, s.problem
	}
	p, err := s.place()
	if err != nil {
		return nil, err
	}
	api, err := s.b.acquire(p)
	if err != nil {
		return nil, err
	}
	l := &queueHandle{b: s.b, api: api, fifo: isFIFO(s.ref.name)}
	if err := s.establish(ctx, l, opts, declare); err != nil {
		l.close()
		return nil, s.failure(fmt.Sprintf("open %s in %s (from %s)", s.title(), p.region, p.regionFrom), err)
	}
	return l, nil
}

// establish finds the queue, and before that creates it and its dead-letter queue where Declare
// says so. What the queue's attributes say of its lease is read last, and VisibilityTimeout wins.
func (s *queueSource) establish(ctx context.Context, l *queueHandle, opts transport.OpenOptions, declare bool) error {
	if declare && s.cfg.Declare.Attributes != nil {
		if err := s.create(ctx, l); err != nil {
			return err
		}
		if d := opts.DeadLetter; d != "" && queueName(d) {
			if _, err := l.createQueue(ctx, d, nil, nil); err != nil {
				return fmt.Errorf("dead-letter queue %q: %w", d, err)
			}
		}
	}
	if l.url == "" {
		var err error
		if l.url, err = l.find(ctx, s.ref); err != nil {
			return err
		}
	}
	if err := l.read(ctx); err != nil {
		return err
	}
	if s.cfg.VisibilityTimeout > 0 {
		l.lease = s.cfg.VisibilityTimeout
	}
	return nil
}

// find asks for the URL of a queue, unless it was given.
func (l *queueHandle) find(ctx context.Context, ref reference) (string, error) {
	if ref.url != "" {
		return ref.url, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	in := &awssqs.GetQueueUrlInput{QueueName: aws.String(ref.name)}
	if ref.account != "" {
		in.QueueOwnerAWSAccountId = aws.String(ref.account)
	}
	out, err := l.api.GetQueueUrl(ctx, in)
	if err != nil {
		return "", err
	}
	return aws.ToString(out.QueueUrl), nil
}

// create makes the queue, or finds that it is as declared.
func (s *queueSource) create(ctx context.Context, l *queueHandle) error {
	url, err := l.createQueue(ctx, s.ref.name, s.cfg.Declare.Attributes, s.cfg.Declare.Tags)
	if code := codeOr(err); code == longshore.CodeMismatch {
		return s.difference(ctx, l, err)
	}
	if err == nil && s.ref.url == "" && s.ref.account == "" {
		l.url = url
	}
	return err
}

// codeOr is the code of an error; "" of none.
func codeOr(err error) longshore.Code {
	if err == nil {
		return ""
	}
	code, _ := codeOf(err)
	return code
}

// createQueue returns the URL of the queue. SQS answers for one that exists too, as long as the
// attributes are the same.
func (l *queueHandle) createQueue(ctx context.Context, name string, attrs, tags map[string]string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	attrs = maps.Clone(attrs)
	if isFIFO(name) {
		if attrs == nil {
			attrs = map[string]string{}
		}
		attrs["FifoQueue"] = "true"
	}
	out, err := l.api.CreateQueue(ctx, &awssqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attrs, Tags: tags})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.QueueUrl), nil
}

// difference says which attribute of a queue is not as declared.
func (s *queueSource) difference(ctx context.Context, l *queueHandle, cause error) error {
	wrong := &longshore.Error{Code: longshore.CodeMismatch, Op: "declare " + s.title(), Source: s.ref.name, Err: plain(cause),
		Hint: "change Declare, or leave it empty to use the queue as it is"}
	url, err := l.find(ctx, s.ref)
	if err != nil {
		return wrong
	}
	have, err := l.attributes(ctx, url, "All")
	if err != nil {
		return wrong
	}
	for _, name := range slices.Sorted(maps.Keys(s.cfg.Declare.Attributes)) {
		if want := s.cfg.Declare.Attributes[name]; want != have[name] {
			wrong.Err = fmt.Errorf("%s is %q there, %q here (%s)", name, have[name], want, apiCode(cause))
			return wrong
		}
	}
	return wrong
}

// attributes reads the named attributes of a queue; one that it does not have is left out.
func (l *queueHandle) attributes(ctx context.Context, url string, names ...types.QueueAttributeName) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := l.api.GetQueueAttributes(ctx, &awssqs.GetQueueAttributesInput{QueueUrl: aws.String(url), AttributeNames: names})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// read looks at the queue's timeout and redrive policy. Who may not read them gets
// the defaults, and a notice.
func (l *queueHandle) read(ctx context.Context) error {
	l.lease = defaultLease
	attrs, err := l.attributes(ctx, l.url, "VisibilityTimeout", "QueueArn", "RedrivePolicy")
	if codeOr(err) == longshore.CodeForbidden {
		l.notice = "the queue's attributes may not be read (sqs:GetQueueAttributes): its timeout is taken to be 30s, and a redrive policy is not seen"
		return nil
	}
	if err != nil {
		return err
	}
	l.arn = attrs["QueueArn"]
	if n, err := strconv.Atoi(attrs["VisibilityTimeout"]); err == nil && n > 0 {
		l.lease = time.Duration(n) * time.Second
	}
	var policy struct {
		Target string          `json:"deadLetterTargetArn"`
		Max    json.RawMessage `json:"maxReceiveCount"`
	}
	if json.Unmarshal([]byte(attrs["RedrivePolicy"]), &policy) != nil {
		return nil
	}
	l.maxReceives, _ = strconv.Atoi(strings.Trim(string(policy.Max), `"`))
	ref, err := parseReference(policy.Target)
	if err == nil {
		l.deadURL, err = l.find(ctx, ref)
	}
	if err != nil {
		if _, passing := codeOf(err); passing {
			return err
		}
		l.notice = fmt.Sprintf("the dead-letter queue of the redrive policy cannot be used: %v", plain(err))
	}
	return nil
}

// permanent distinguishes errors that end a consumer from those that pass.
func permanent(err error) bool {
	_, passing := codeOf(err)
	return !passing && !errors.Is(err, context.Canceled)
}
