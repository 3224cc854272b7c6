// Package sqs shows whether the tests on a real SQS-compatible server ran: see zz_realbrokers.
package sqs
