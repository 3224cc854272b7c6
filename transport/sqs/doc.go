// Package sqs is the transport for Amazon SQS.
package sqs
