package sqstest

import (
	"fmt"
	"net/http"
)

// apiError is a refusal as the AWS JSON protocol writes it.
type apiError struct {
	shape   string // the part of __type after the #
	code    string // of the query protocol, which SDKs report
	status  int
	message string
	server  bool // our fault, not the caller's
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

// refuse makes the error of a modelled or unmodelled shape.
func refuse(shape, format string, args ...any) *apiError {
	e := &apiError{shape: shape, code: shape, status: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
	switch shape {
	case "QueueDoesNotExist":
		e.code = "AWS.SimpleQueueService.NonExistentQueue"
	case "QueueNameExists":
		e.code = "QueueAlreadyExists"
	case "QueueDeletedRecently", "EmptyBatchRequest", "TooManyEntriesInBatchRequest", "BatchEntryIdsNotDistinct",
		"InvalidBatchEntryId", "BatchRequestTooLong", "MessageNotInflight", "UnsupportedOperation":
		e.code = "AWS.SimpleQueueService." + shape
	case "PurgeQueueInProgress":
		e.code, e.status = "AWS.SimpleQueueService.PurgeQueueInProgress", http.StatusForbidden
	case "ReceiptHandleIsInvalid", "ResourceNotFoundException":
		e.status = http.StatusNotFound
	case "OverLimit", "RequestThrottled", "InvalidClientTokenId", "ExpiredToken", "AccessDenied", "MissingAuthenticationToken":
		e.status = http.StatusForbidden
	case "ServiceUnavailable":
		e.status, e.server = http.StatusServiceUnavailable, true
	case "InternalFailure":
		e.status, e.server = http.StatusInternalServerError, true
	}
	return e
}

func missing(parameter string) *apiError {
	return refuse("MissingParameter", "The request must contain the parameter %s.", parameter)
}

func badValue(value any, parameter, reason string) *apiError {
	return refuse("InvalidParameterValue", "Value %v for parameter %s is invalid. Reason: %s", value, parameter, reason)
}

// badReceipt is for a handle that this queue never gave out.
func badReceipt(receipt string) *apiError {
	return refuse("ReceiptHandleIsInvalid", "The input receipt handle %q is not a valid receipt handle.", receipt)
}
