package envelope_test

import (
	"fmt"
	"hash/crc32"
)

func sum(content string) string {
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(content), crc32.MakeTable(crc32.Castagnoli)))[:4]
}
