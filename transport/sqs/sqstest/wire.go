package sqstest

// The members of requests and answers, as the service model names them.

type onQueue struct{ QueueUrl string }

func (q *onQueue) queue() string { return nameOf(q.QueueUrl) }

// attribute is a message attribute or a message system attribute.
type attribute struct {
	DataType    string
	StringValue *string `json:",omitempty"`
	BinaryValue []byte  `json:",omitempty"`
}

type (
	createQueueInput struct {
		QueueName  string
		Attributes map[string]string
		Tags       map[string]string `json:"tags"`
	}
	queueURLInput  struct{ QueueName, QueueOwnerAWSAccountId string }
	queueURLOutput struct{ QueueUrl string }

	listQueuesInput struct {
		QueueNamePrefix, NextToken string
		MaxResults                 int
	}
	listQueuesOutput struct {
		QueueUrls []string `json:",omitempty"`
		NextToken string   `json:",omitempty"`
	}

	attributesInput struct {
		onQueue
		AttributeNames []string
	}
	attributesOutput struct {
		Attributes map[string]string `json:",omitempty"`
	}
	setAttributesInput struct {
		onQueue
		Attributes map[string]string
	}
	queueInput struct{ onQueue }

	sourcesInput struct {
		onQueue
		NextToken  string
		MaxResults int
	}
	sourcesOutput struct {
		QueueUrls []string `json:"queueUrls"`
		NextToken string   `json:",omitempty"`
	}

	tagInput struct {
		onQueue
		Tags map[string]string
	}
	untagInput struct {
		onQueue
		TagKeys []string
	}
	tagsOutput struct {
		Tags map[string]string `json:",omitempty"`
	}
)

type (
	outgoing struct {
		MessageBody             *string
		DelaySeconds            *int
		MessageAttributes       map[string]attribute
		MessageSystemAttributes map[string]attribute
		MessageDeduplicationId  string
		MessageGroupId          string
	}
	sendInput struct {
		onQueue
		outgoing
	}
	sendOutput struct {
		MessageId                    string
		MD5OfMessageBody             string
		MD5OfMessageAttributes       string `json:",omitempty"`
		MD5OfMessageSystemAttributes string `json:",omitempty"`
		SequenceNumber               string `json:",omitempty"`
	}
	sendEntry struct {
		Id string
		outgoing
	}
	sendBatchInput struct {
		onQueue
		Entries []sendEntry
	}
	sendBatchOutput struct {
		Successful []sendResult
		Failed     []failure `json:",omitempty"`
	}
	sendResult struct {
		Id string
		sendOutput
	}

	receiveInput struct {
		onQueue
		AttributeNames              []string
		MessageSystemAttributeNames []string
		MessageAttributeNames       []string
		MaxNumberOfMessages         *int
		VisibilityTimeout           *int
		WaitTimeSeconds             *int
		ReceiveRequestAttemptId     string
	}
	receiveOutput struct {
		Messages []received `json:",omitempty"`
	}
	received struct {
		MessageId              string
		ReceiptHandle          string
		MD5OfBody              string
		Body                   string
		Attributes             map[string]string    `json:",omitempty"`
		MD5OfMessageAttributes string               `json:",omitempty"`
		MessageAttributes      map[string]attribute `json:",omitempty"`
	}

	handleInput struct {
		onQueue
		ReceiptHandle     string
		VisibilityTimeout *int
	}
	handleEntry struct {
		Id                string
		ReceiptHandle     string
		VisibilityTimeout *int
	}
	handleBatchInput struct {
		onQueue
		Entries []handleEntry
	}
	handleBatchOutput struct {
		Successful []handleResult
		Failed     []failure `json:",omitempty"`
	}
	handleResult struct{ Id string }
	failure      struct {
		Id          string
		SenderFault bool
		Code        string
		Message     string
	}
)

type (
	moveInput struct {
		SourceArn, DestinationArn    string
		MaxNumberOfMessagesPerSecond *int
		MaxResults                   int
		TaskHandle                   string
	}
	startMoveOutput struct{ TaskHandle string }
	listMovesOutput struct{ Results []moveTask }
	moveTask        struct {
		TaskHandle                        string `json:",omitempty"`
		Status                            string
		SourceArn                         string
		DestinationArn                    string `json:",omitempty"`
		ApproximateNumberOfMessagesMoved  int
		ApproximateNumberOfMessagesToMove int
		StartedTimestamp                  int64
	}
)

type empty struct{}

func (in *createQueueInput) queue() string { return in.QueueName }
func (in *queueURLInput) queue() string    { return in.QueueName }
func (in *listQueuesInput) queue() string  { return "" }
func (in *moveInput) queue() string        { return nameOfARN(in.SourceArn) }
