package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
)

// plainTurn makes requests without the SDK: they are ready, and of an answer only
// the receipts are looked for.
func plainTurn(e *sqsEnd, url string) (once func() (int, error), stop func()) {
	var entries []map[string]string
	for i := range 10 {
		entries = append(entries, map[string]string{"Id": strconv.Itoa(i), "MessageBody": strings.Repeat("x", 256)})
	}
	send, err := json.Marshal(map[string]any{"QueueUrl": url, "Entries": entries})
	receive := fmt.Appendf(nil, `{"QueueUrl":%q,"MaxNumberOfMessages":10}`, url)
	head := fmt.Appendf(nil, `{"QueueUrl":%q,"Entries":[`, url)
	var c *plainConn
	return func() (int, error) {
			if c == nil && err == nil {
				c, err = dialPlain(e.url)
			}
			if err != nil {
				return 0, err
			}
			if _, err := c.call("SendMessageBatch", send); err != nil {
				return 0, err
			}
			got, err := c.call("ReceiveMessage", receive)
			if err != nil {
				return 0, err
			}
			in, n := slices.Clone(head), 0
			for _, part := range bytes.Split(got, []byte(`"ReceiptHandle":"`))[1:] {
				receipt, _, _ := bytes.Cut(part, []byte{'"'})
				if n > 0 {
					in = append(in, ',')
				}
				in = append(append(append(in, `{"Id":"`...), byte('0'+n)), `","ReceiptHandle":"`...)
				in = append(append(in, receipt...), `"}`...)
				n++
			}
			if n == 0 {
				return 0, nil
			}
			_, err = c.call("DeleteMessageBatch", append(in, "]}"...))
			return n, err
		}, func() {
			if c != nil {
				_ = c.close() // nothing is under way
			}
		}
}

// plainConn is a connection on which one request follows the other.
type plainConn struct {
	conn net.Conn
	in   *bufio.Reader
	host string
	out  []byte
	body []byte
}

func dialPlain(url string) (*plainConn, error) {
	host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")
	conn, err := net.Dial("tcp", host)
	return &plainConn{conn: conn, in: bufio.NewReaderSize(conn, 16<<10), host: host}, err
}

// call returns the body of the answer, until the next call.
func (c *plainConn) call(action string, body []byte) ([]byte, error) {
	c.out = fmt.Appendf(c.out[:0], "POST / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Target: AmazonSQS.%s\r\nContent-Length: %d\r\n\r\n",
		c.host, action, len(body))
	if _, err := c.conn.Write(append(c.out, body...)); err != nil {
		return nil, err
	}
	status, length := "", -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		text := strings.TrimSpace(string(line))
		if text == "" {
			break
		}
		if status == "" {
			status = text
		}
		if name, value, _ := strings.Cut(text, ":"); strings.EqualFold(name, "Content-Length") {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return nil, err
			}
		}
	}
	if length < 0 {
		return nil, fmt.Errorf("%s: no length: %s", action, status)
	}
	c.body = slices.Grow(c.body[:0], length)[:length]
	_, err := io.ReadFull(c.in, c.body)
	if err == nil && (status != "HTTP/1.1 200 OK" || bytes.Contains(c.body, []byte(`"Failed":[{`))) {
		err = fmt.Errorf("%s: %s: %s", action, status, c.body)
	}
	return c.body, err
}

func (c *plainConn) close() error { return c.conn.Close() }
