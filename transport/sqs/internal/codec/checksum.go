package codec

import (
	"crypto/md5" //nolint:gosec // the checksum that SQS sends
	"encoding/hex"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Intact reports whether the body is the one that SQS sent, as far as its checksum says.
func Intact(m *types.Message) bool {
	if m.Body == nil || m.MD5OfBody == nil {
		return true
	}
	sum := md5.Sum([]byte(*m.Body)) //nolint:gosec // see above
	return hex.EncodeToString(sum[:]) == *m.MD5OfBody
}
