package sqstest

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// requests are what SDKs send, and what is odd about JSON.
func requests() []string {
	return []string{
		`{"QueueUrl":"http://h/1/q","Entries":[{"Id":"0","MessageBody":"a"},{"Id":"1","MessageBody":"b","DelaySeconds":900}]}`,
		` { "Entries" : [ { "MessageBody" : "" , "Id" : "x" } ] , "QueueUrl" : "q" } ` + "\n",
		`{"QueueUrl":"q","Entries":[{"Id":"0","MessageBody":"{\"a\":\"\\\\ \/ \n\r\t\b\f\"}","MessageGroupId":"g","MessageDeduplicationId":"d"}]}`,
		`{"QueueUrl":"q","Entries":[{"Id":"0","MessageBody":"\u00e9\ud83d\ude00é😀"}]}`,
		`{"QueueUrl":"q","Entries":[{"Id":"0","MessageBody":"x","MessageAttributes":{"s":{"DataType":"String","StringValue":"v"},` +
			`"b":{"DataType":"Binary","BinaryValue":"AAEC/v8="},"e":{"DataType":"Binary","BinaryValue":""}},"MessageSystemAttributes":{"AWSTraceHeader":{"DataType":"String","StringValue":"r"}}}]}`,
		`{"QueueUrl":"q","Entries":[{"Id":"0","MessageBody":"x","MessageAttributes":{"b":{"DataType":"Binary","BinaryValue":"no base64"}}}]}`,
		`{"QueueUrl":"q","Entries":[{"Id":"0","ReceiptHandle":"r"},{"Id":"1","ReceiptHandle":"s","VisibilityTimeout":0},{"Id":"2","VisibilityTimeout":-1}]}`,
		`{"QueueUrl":"q","MaxNumberOfMessages":10,"WaitTimeSeconds":20,"VisibilityTimeout":30,"MessageAttributeNames":["All"],` +
			`"MessageSystemAttributeNames":["All"],"AttributeNames":[],"ReceiveRequestAttemptId":"a"}`,
		`{"QueueUrl":"q","MaxNumberOfMessages":1.5}`, `{"QueueUrl":"q","MaxNumberOfMessages":"1"}`, `{"QueueUrl":"q","MaxNumberOfMessages":01}`,
		`{"QueueUrl":"q","MaxNumberOfMessages":1e1}`, `{"QueueUrl":"q","MaxNumberOfMessages":99999999999}`, `{"QueueUrl":"q","MaxNumberOfMessages":-0}`,
		`{"queueurl":"q","Other":{"a":[1,true,null]}}`, `{"QueueUrl":null,"Entries":null}`, `{"QueueUrl":"a","QueueUrl":"b"}`,
		`{"QueueUrl":"q","Entries":[{"Id":"a"}],"Entries":[{"MessageBody":"b"}]}`,
		`{}`, `{ }`, `{"Entries":[]}`, `{"Entries":[ ]}`, `{"QueueUrl":"a` + "\x01" + `"}`, `{"QueueUrl":"a` + "\xff" + `"}`, `{"QueueUrl":"a\q"}`,
		`null`, `[]`, `"x"`, ``, `{`, `{"`, `{"QueueUrl`, `{"QueueUrl"`, `{"QueueUrl":`, `{"QueueUrl":"`, `{"QueueUrl":"q\`, `{"QueueUrl":"q"`, `{"QueueUrl":"q",}`,
		`{"QueueUrl":"q"} x`, `{"Entries":[{"Id":"0"},]}`, `{"Entries":[{]}`, `{"Entries":[{"Id":"0"}`, `{,}`, `{"QueueUrl":"q" "Entries":[]}`,
	}
}

func TestScannerReadsWhatJSONReads(t *testing.T) {
	for _, text := range requests() {
		sameAsJSON(t, text)
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range requests() {
		f.Add(text)
	}
	f.Fuzz(sameAsJSON)
}

// sameAsJSON: what the scanner reads is what encoding/json reads. It may give up.
func sameAsJSON(t *testing.T, text string) {
	for _, kind := range []reflect.Type{reflect.TypeFor[sendBatchInput](), reflect.TypeFor[handleBatchInput](), reflect.TypeFor[receiveInput]()} {
		quick, slow := reflect.New(kind).Interface(), reflect.New(kind).Interface()
		in, ok := quick.(scanned)
		if !ok {
			t.Fatalf("%v cannot be scanned", kind)
		}
		if !scan(in, []byte(text)) {
			continue
		}
		if err := json.Unmarshal([]byte(text), slow); err != nil {
			t.Errorf("%v of %q was read, json says %v", kind, text, err)
		} else if !reflect.DeepEqual(quick, slow) {
			t.Errorf("%v of %q is %+v, json reads %+v", kind, text, quick, slow)
		}
	}
}

// The common requests are read without encoding/json.
func TestScannerReadsTheCommonRequests(t *testing.T) {
	all := requests()
	for i, in := range map[int]scanned{0: &sendBatchInput{}, 1: &sendBatchInput{}, 2: &sendBatchInput{}, 4: &sendBatchInput{}, 6: &handleBatchInput{}, 7: &receiveInput{}} {
		if !scan(in, []byte(all[i])) {
			t.Errorf("%s was not read", all[i])
		}
	}
}

func TestWrittenAnswersAreWhatJSONWrites(t *testing.T) {
	text := "é😀 <&> \" \\ \n \t \r \u2028 end"
	value := "v" + text
	for _, out := range []written{
		sendBatchOutput{Successful: []sendResult{}},
		sendBatchOutput{Successful: []sendResult{{"a", sendOutput{MessageId: "m", MD5OfMessageBody: "b"}}, {"b", sendOutput{"m", "b", "c", "d", "e"}}},
			Failed: []failure{{"x", true, "Code", text}, {"y", false, "C", "m"}}},
		handleBatchOutput{Successful: []handleResult{{"1"}, {"2"}}, Failed: []failure{{Id: "3"}}},
		receiveOutput{},
		receiveOutput{Messages: []received{}},
		receiveOutput{Messages: []received{{MessageId: "m", ReceiptHandle: "r", MD5OfBody: "5", Body: text}, {Body: strings.Repeat("x", 300),
			Attributes: map[string]string{"SentTimestamp": "1", "AWSTraceHeader": text}, MD5OfMessageAttributes: "6",
			MessageAttributes: map[string]attribute{"s": {DataType: "String", StringValue: &value}, "b": {DataType: "Binary", BinaryValue: []byte{0, 255}}, "n": {DataType: "Number"}}}}},
	} {
		want, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if err := json.Unmarshal(out.append(nil), &a); err != nil {
			t.Errorf("%s: %v", out.append(nil), err)
		}
		if err := json.Unmarshal(want, &b); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("written %s, json %s", out.append(nil), want)
		}
	}
}
