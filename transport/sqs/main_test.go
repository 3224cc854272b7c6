package sqs_test

import (
	"testing"

	"github.com/longshore-go/longshore/internal/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m, brokertest.SQSServer) }
