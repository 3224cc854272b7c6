package sqs_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m, brokertest.SQSServer) }

func TestServerAnswers(t *testing.T) {
	brokertest.Presence(t, brokertest.SQSServer)
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(brokertest.SQS(t) + "/?Action=ListQueues")
	if err != nil {
		t.Fatalf("the server of SQS_ENDPOINT: %v", err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
}
