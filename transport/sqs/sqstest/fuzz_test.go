package sqstest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// FuzzCalls: whatever a client sends, one call a line, gets an answer that is JSON: a
// result, or an error that is the client's. $Q and $F are URLs of queues, $R is the last
// receipt handle.
func FuzzCalls(f *testing.F) {
	for _, text := range requests() {
		for _, action := range []string{"SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch", "ReceiveMessage"} {
			f.Add(action + " " + strings.ReplaceAll(strings.ReplaceAll(text, "\n", " "), `"q"`, `"$Q"`))
		}
	}
	for _, calls := range [][]string{
		{`SendMessage {"QueueUrl":"$Q","MessageBody":"b","DelaySeconds":1}`, `ReceiveMessage {"QueueUrl":"$Q"}`, `DeleteMessage {"QueueUrl":"$Q","ReceiptHandle":"$R"}`},
		{`SendMessage {"QueueUrl":"$F","MessageBody":"b","MessageGroupId":"g","MessageDeduplicationId":"d"}`, `ReceiveMessage {"QueueUrl":"$F","MaxNumberOfMessages":10,"ReceiveRequestAttemptId":"a"}`,
			`ChangeMessageVisibility {"QueueUrl":"$F","ReceiptHandle":"$R","VisibilityTimeout":43200}`},
		{`CreateQueue {"QueueName":"n","Attributes":{"VisibilityTimeout":"1","RedrivePolicy":"{\"maxReceiveCount\":1,\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:000000000000:q\"}"},"tags":{"a":"b"}}`,
			`ListDeadLetterSourceQueues {"QueueUrl":"$Q"}`, `ListQueues {"QueueNamePrefix":"n","MaxResults":1,"NextToken":"x"}`, `GetQueueUrl {"QueueName":"n"}`},
		{`SetQueueAttributes {"QueueUrl":"$Q","Attributes":{"RedriveAllowPolicy":"{\"redrivePermission\":\"byQueue\",\"sourceQueueArns\":[]}","Policy":"{"}}`, `GetQueueAttributes {"QueueUrl":"$Q","AttributeNames":["All"]}`},
		{`TagQueue {"QueueUrl":"$Q","Tags":{"k":"v"}}`, `ListQueueTags {"QueueUrl":"$Q"}`, `UntagQueue {"QueueUrl":"$Q","TagKeys":["k"]}`, `PurgeQueue {"QueueUrl":"$Q"}`, `DeleteQueue {"QueueUrl":"$Q"}`},
		{`StartMessageMoveTask {"SourceArn":"arn:aws:sqs:us-east-1:000000000000:q","MaxNumberOfMessagesPerSecond":1}`, `ListMessageMoveTasks {"SourceArn":"a"}`, `CancelMessageMoveTask {"TaskHandle":"$R"}`},
	} {
		f.Add(strings.Join(calls, "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := New(t, Config{NoPort: true, VirtualClock: true, CallLog: -1})
		defer s.Close()
		urls := strings.NewReplacer("$Q", s.CreateQueue(t, "q", nil), "$F", s.CreateQueue(t, "q.fifo", map[string]string{"FifoQueue": "true"}), "$R", "$R")
		receipt := "none"
		for i, line := range strings.Split(text, "\n") {
			if i == 8 {
				return
			}
			action, body, _ := strings.Cut(line, " ")
			answer := called(t, s, action, strings.ReplaceAll(urls.Replace(body), "$R", receipt))
			var got struct {
				Messages []struct{ ReceiptHandle string }
			}
			if json.Unmarshal(answer, &got) == nil && len(got.Messages) > 0 {
				receipt = got.Messages[0].ReceiptHandle
			}
			s.Advance(time.Second)
		}
	})
}

// called makes one call. One that receives soon gives up: the clock stands still.
func called(t *testing.T, s *Server, action, body string) []byte {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if action == "ReceiveMessage" {
		defer time.AfterFunc(5*time.Millisecond, cancel).Stop()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	resp, err := s.HTTPClient().Do(r)
	if err != nil {
		if ctx.Err() == nil {
			t.Errorf("%s %q is not answered: %v", action, body, err)
		}
		return nil
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	var refused struct {
		Type string `json:"__type"`
	}
	switch {
	case !json.Valid(answer):
		t.Errorf("%s %q is answered by %q", action, body, answer)
	case resp.StatusCode != http.StatusOK && (resp.StatusCode >= http.StatusInternalServerError || json.Unmarshal(answer, &refused) != nil || refused.Type == ""):
		t.Errorf("%s %q is answered with status %d: %s", action, body, resp.StatusCode, answer)
	}
	return answer
}
