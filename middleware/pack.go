package middleware

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/longshore-go/longshore"
)

// Pack is a codec that packs what another one writes, for publishers: with gzip,
// deflate or zstd, several in a row too, the first one first. It is what [Decode]
// unpacks; as a codec of a typed handler it unpacks as well, by the content encoding of
// the message, whatever that is. Bodies of less than atLeast bytes stay as they are.
//
// An unknown coding is an error of each Encode.
func Pack(codec longshore.Codec, atLeast int, codings ...string) longshore.Codec {
	return packer{codec: codec, least: atLeast, codings: codings, unpack: newDecoder(defaultMaxDecoded)}
}

type packer struct {
	codec   longshore.Codec
	least   int
	codings []string
	unpack  *decoder
}

func (p packer) Decode(ctx context.Context, m *longshore.Message, v any) error {
	plain, err := p.unpack.plain(m, nil)
	if err != nil {
		return err
	}
	return p.codec.Decode(ctx, plain, v)
}

func (p packer) Encode(ctx context.Context, v any, m *longshore.Message) error {
	if err := p.codec.Encode(ctx, v, m); err != nil {
		return err
	}
	if m.Body == nil || len(m.Body) < p.least { // none is not an empty one
		return nil
	}
	for _, name := range p.codings {
		body, err := pack(name, m.Body)
		if err != nil {
			return err
		}
		m.Body = body
		if m.ContentEncoding != "" {
			name = m.ContentEncoding + ", " + name
		}
		m.ContentEncoding = name
	}
	return nil
}

func pack(name string, body []byte) ([]byte, error) {
	var out bytes.Buffer
	var w io.WriteCloser
	switch strings.ToLower(name) {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "deflate":
		w = zlib.NewWriter(&out)
	case "zstd":
		z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		w = z
	default:
		return nil, &longshore.Error{Code: longshore.CodeConfig, Op: fmt.Sprintf("pack a message with %.40q", name), Hint: "use gzip, deflate or zstd"}
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
