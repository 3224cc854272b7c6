package sqs

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Config of a broker. The zero value is the SDK's own configuration.
type Config struct {
	Region      string
	Endpoint    string
	Credentials aws.CredentialsProvider
	HTTPClient  awssqs.HTTPClient
}
