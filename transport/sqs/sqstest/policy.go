package sqstest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// redrivePolicy reads the policy; maxReceiveCount may be a number or a text.
func redrivePolicy(value string) (target string, maxReceives int, ok bool) {
	var p struct {
		DeadLetterTargetArn string          `json:"deadLetterTargetArn"`
		MaxReceiveCount     json.RawMessage `json:"maxReceiveCount"`
	}
	if json.Unmarshal([]byte(value), &p) != nil {
		return "", 0, false
	}
	n, err := strconv.Atoi(strings.Trim(string(p.MaxReceiveCount), `"`))
	return p.DeadLetterTargetArn, n, err == nil && n >= 1 && n <= 1000 && p.DeadLetterTargetArn != ""
}

// allowPolicy is the attribute RedriveAllowPolicy: who may use a queue as its
// dead-letter queue.
type allowPolicy struct {
	Permission string   `json:"redrivePermission"`
	Sources    []string `json:"sourceQueueArns"`
}

func legalAllowPolicy(value string) bool {
	var p allowPolicy
	if json.Unmarshal([]byte(value), &p) != nil {
		return false
	}
	switch p.Permission {
	case "allowAll", "denyAll":
		return len(p.Sources) == 0
	case "byQueue":
		return len(p.Sources) >= 1 && len(p.Sources) <= 10
	}
	return false
}

func allowsRedrive(value, sourceARN string) bool {
	var p allowPolicy
	if value == "" || json.Unmarshal([]byte(value), &p) != nil {
		return true // everybody, by default
	}
	return p.Permission == "allowAll" || p.Permission == "byQueue" && slices.Contains(p.Sources, sourceARN)
}

// checkRedrive: the dead-letter queue must exist, be of the same kind and allow
// the source.
func (s *Server) checkRedrive(name, policy string) *apiError {
	target, _, ok := redrivePolicy(policy)
	if !ok {
		return nil
	}
	dead := s.queues[nameOfARN(target)]
	if dead == nil {
		return badValue(policy, "RedrivePolicy", "Dead letter target does not exist.")
	}
	if dead.set.fifo != strings.HasSuffix(name, ".fifo") {
		return badValue(policy, "RedrivePolicy", "Dead-letter queue must be same type of queue as the source.")
	}
	if !allowsRedrive(dead.attrs["RedriveAllowPolicy"], s.arnOf(name)) {
		return badValue(policy, "RedrivePolicy", "The dead-letter queue's RedriveAllowPolicy does not allow this source queue.")
	}
	return nil
}
