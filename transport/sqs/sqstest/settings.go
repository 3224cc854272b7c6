package sqstest

import (
	"encoding/json"
	"slices"
	"strconv"
)

// settings are a queue's attributes, read.
type settings struct {
	visibility, delay, wait, maxSize, retention int
	fifo, contentDedup                          bool
	perGroupDedup                               bool // DeduplicationScope = messageGroup
	maxReceives                                 int  // 0 = no redrive policy
	deadLetter                                  string
}

func defaultAttributes(fifo bool) map[string]string {
	a := map[string]string{
		"VisibilityTimeout": "30", "DelaySeconds": "0", "ReceiveMessageWaitTimeSeconds": "0",
		"MaximumMessageSize": strconv.Itoa(maxMessageBytes), "MessageRetentionPeriod": "345600",
		"SqsManagedSseEnabled": "true",
	}
	if fifo {
		a["FifoQueue"] = "true"
		a["ContentBasedDeduplication"] = "false"
		a["DeduplicationScope"] = "queue"
		a["FifoThroughputLimit"] = "perQueue"
	}
	return a
}

// settableNames are the attributes that can be given; those of FIFO queues last.
func settableNames() (both, fifoOnly []string) {
	return []string{"VisibilityTimeout", "DelaySeconds", "ReceiveMessageWaitTimeSeconds", "MaximumMessageSize", "MessageRetentionPeriod",
			"Policy", "RedrivePolicy", "RedriveAllowPolicy", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled"},
		[]string{"FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"}
}

func readableNames() []string {
	return []string{"QueueArn", "CreatedTimestamp", "LastModifiedTimestamp", "ApproximateNumberOfMessages",
		"ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"}
}

// checkSetting refuses an attribute that cannot be set to the value.
func checkSetting(name, value string, fifo bool) *apiError {
	both, fifoOnly := settableNames()
	if !slices.Contains(both, name) && (!fifo || !slices.Contains(fifoOnly, name)) {
		return refuse("InvalidAttributeName", "Unknown Attribute %s.", name)
	}
	bad := refuse("InvalidAttributeValue", "Invalid value for the parameter %s.", name)
	within := func(low, high int) *apiError {
		n, err := strconv.Atoi(value)
		if err != nil || n < low || n > high {
			return bad
		}
		return nil
	}
	oneOf := func(words ...string) *apiError {
		if !slices.Contains(words, value) {
			return bad
		}
		return nil
	}
	switch name {
	case "VisibilityTimeout":
		return within(0, maxVisibility)
	case "DelaySeconds":
		return within(0, maxDelay)
	case "ReceiveMessageWaitTimeSeconds":
		return within(0, maxWait)
	case "MaximumMessageSize":
		return within(1024, maxMessageBytes)
	case "MessageRetentionPeriod":
		return within(60, 1209600)
	case "KmsDataKeyReusePeriodSeconds":
		return within(60, 86400)
	case "FifoQueue", "ContentBasedDeduplication", "SqsManagedSseEnabled":
		return oneOf("true", "false")
	case "DeduplicationScope":
		return oneOf("queue", "messageGroup")
	case "FifoThroughputLimit":
		return oneOf("perQueue", "perMessageGroupId")
	case "RedrivePolicy":
		if _, _, ok := redrivePolicy(value); !ok && value != "" {
			return refuse("InvalidParameterValue", "Value %s for parameter RedrivePolicy is invalid. Reason: Redrive policy must name deadLetterTargetArn and maxReceiveCount, 1 to 1000.", value)
		}
	case "RedriveAllowPolicy":
		if value != "" && !legalAllowPolicy(value) {
			return bad
		}
	case "Policy":
		if value != "" && !json.Valid([]byte(value)) {
			return bad
		}
	}
	return nil
}

// checkTogether refuses attributes that exclude each other.
func checkTogether(attrs map[string]string) *apiError {
	if attrs["FifoThroughputLimit"] == "perMessageGroupId" && attrs["DeduplicationScope"] != "messageGroup" {
		return refuse("InvalidAttributeValue", "FifoThroughputLimit can be perMessageGroupId only if DeduplicationScope is messageGroup.")
	}
	return nil
}

// read turns checked attributes into settings.
func read(attrs map[string]string) settings {
	number := func(name string) int {
		n, _ := strconv.Atoi(attrs[name]) // checked
		return n
	}
	set := settings{
		visibility: number("VisibilityTimeout"), delay: number("DelaySeconds"), wait: number("ReceiveMessageWaitTimeSeconds"),
		maxSize: number("MaximumMessageSize"), retention: number("MessageRetentionPeriod"),
		fifo: attrs["FifoQueue"] == "true", contentDedup: attrs["ContentBasedDeduplication"] == "true",
		perGroupDedup: attrs["DeduplicationScope"] == "messageGroup",
	}
	if target, n, ok := redrivePolicy(attrs["RedrivePolicy"]); ok {
		set.deadLetter, set.maxReceives = nameOfARN(target), n
	}
	return set
}
