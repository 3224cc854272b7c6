package telemetry

import (
	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/transport"
)

// What happens now and then is counted under codes that are not known before. A series
// that begins with its first event is invisible: Prometheus's increase and rate are about
// changes, and one that is there all at once has not changed. So the usual codes are
// shown from the start, with 0.

// usualReasons are the codes under which messages are dead-lettered.
func usualReasons() []longshore.Code {
	return []longshore.Code{longshore.CodeHandler, longshore.CodePanic, longshore.CodeUndecodable, longshore.CodeNoHandler, longshore.CodeTimeout}
}

// usualReleases are those under which messages are given back uncounted.
func usualReleases() []longshore.Code {
	return []longshore.Code{longshore.CodeHandler, longshore.CodeBusy, longshore.CodeConnLost, longshore.CodeUnreachable, longshore.CodeTimeout}
}

// usualSettleFailures are those under which settlements fail later.
func usualSettleFailures() []longshore.Code {
	return []longshore.Code{longshore.CodeSettle, longshore.CodeConnLost, longshore.CodeLeaseLost, longshore.CodeAckTimeout, longshore.CodeFenced}
}

// usualReopens are those under which subscriptions end.
func usualReopens() []longshore.Code {
	return []longshore.Code{longshore.CodeConnLost, longshore.CodeCanceledBy, longshore.CodeFenced, longshore.CodeAckTimeout, longshore.CodeLeaseLost,
		longshore.CodeUnreachable, longshore.CodeTimeout}
}

// verdicts are all that a message can come to.
func verdicts() []longshore.Verdict {
	return []longshore.Verdict{longshore.VerdictAck, longshore.VerdictRetry, longshore.VerdictReject, longshore.VerdictDiscard, longshore.VerdictRelease, longshore.VerdictLost}
}

// usualSkips are all reasons for which messages are skipped.
func usualSkips() []transport.SkipReason {
	return []transport.SkipReason{transport.SkippedExpired, transport.SkippedTruncated, transport.SkippedGivenUp}
}

// usualMoves are the words of the policies for what happens to everybody.
func usualMoves() map[string][]string {
	return map[string][]string{"up": {autoscale.Demand, autoscale.Saturated}, "down": {autoscale.Idle, autoscale.FewerMay}}
}
