package middleware

import (
	"bytes"
	"cmp"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/semaphore"

	"github.com/longshore-go/longshore"
)

// DecodeConfig is the configuration of [Decode]. Its zero value is ready for use.
type DecodeConfig struct {
	// MaxBytes is the largest body after decoding; 0 = 64 MiB. A small body may
	// unpack to any size.
	MaxBytes int64
	// MaxHeld is how many bytes the bodies that were unpacked may take together while
	// their handlers run; others wait for it. 0 = 256 MiB, and at least MaxBytes. Bodies
	// of less than 256 KiB do not count.
	MaxHeld int64
	// Codings adds content codings, or replaces ours: gzip (x-gzip), deflate, zstd,
	// bzip2, base64.
	// Names are in lower case. A reader that is an io.Closer is closed.
	Codings map[string]func(io.Reader) (io.Reader, error)
}

const (
	defaultMaxDecoded = 64 << 20
	defaultMaxHeld    = 256 << 20
	// direct is what is unpacked at once. What is larger is measured first, so that it has
	// its place and exactly as much memory as it needs.
	direct = 256 << 10
	// maxWindow is what a zstd frame may ask for as its window where MaxBytes is less: it
	// is allocated before the first byte. RFC 9659 allows 8 MiB; some encoders take more.
	maxWindow = 32 << 20
	// maxCodings in a row: each may unpack to the largest body.
	maxCodings = 16
)

// Decode unpacks bodies by their content encoding, several in a row too ("zstd,
// gzip" was packed with zstd first), also where that is a header in another spelling, and by
// the header compression of Celery. What follows in the chain sees the plain body
// and no encoding; a retry or a dead letter keeps what was received. Names of
// character sets, which some producers write there, are left alone, and so is a message
// without a body, as a tombstone of Kafka, whose headers may be those of all others.
//
// An encoding that is not known, a body that does not unpack ([longshore.CodeUndecodable])
// or becomes too large ([longshore.CodeTooLarge]) is rejected: retrying changes
// nothing. In a batch only those are, and the handler gets the others.
func Decode(cfg DecodeConfig) longshore.Middleware {
	limit := cfg.MaxBytes
	if limit <= 0 {
		limit = defaultMaxDecoded
	}
	d := newDecoder(limit)
	d.room = semaphore.NewWeighted(max(cmp.Or(max(cfg.MaxHeld, 0), defaultMaxHeld), limit))
	maps.Copy(d.codings, cfg.Codings)
	return d
}

type decoder struct {
	limit   int64
	room    *semaphore.Weighted // of the large bodies that handlers have
	codings map[string]func(io.Reader) (io.Reader, error)
}

func newDecoder(limit int64) *decoder {
	window := uint64(min(max(limit, maxWindow), zstd.MaxWindowSize)) //nolint:gosec // positive
	unzip := func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }
	return &decoder{limit: limit, codings: map[string]func(io.Reader) (io.Reader, error){
		"gzip": unzip, "x-gzip": unzip,
		"base64":  func(r io.Reader) (io.Reader, error) { return base64.NewDecoder(base64.StdEncoding, r), nil },
		"bzip2":   func(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil },
		"deflate": func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) },
		"zstd": func(r io.Reader) (io.Reader, error) {
			z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window))
			if err != nil {
				return nil, err
			}
			return z.IOReadCloser(), nil
		},
	}}
}

// plain are values that say nothing about packing: character sets and words that
// clients write there.
func plain(coding string) bool {
	switch coding {
	case "", "identity", "binary", "8bit", "7bit", "utf-8", "utf8", "us-ascii", "iso-8859-1":
		return true
	}
	return false
}

func (*decoder) Name() string { return nameDecode }

func (c *decoder) Wrap(next longshore.Handler) longshore.Handler {
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		h := holding{c: c}
		defer h.release()
		if err := h.decode(ctx, d); err != nil {
			return err
		}
		return next.Handle(ctx, d)
	})
}

func (c *decoder) WrapBatch(next longshore.BatchHandler) longshore.BatchHandler {
	return longshore.BatchHandlerFunc(func(ctx context.Context, ds []*longshore.Delivery) error {
		h := holding{c: c}
		defer h.release()
		return without(ctx, ds, func(d *longshore.Delivery) (bool, error) { return false, h.decode(ctx, d) }, next)
	})
}

// decode replaces the message, or returns the verdict on it.
func (h *holding) decode(ctx context.Context, d *longshore.Delivery) error {
	c := h.c
	if h.full { // those behind one that comes back come back too, in their order
		return longshore.Release(errNoRoom, roomDelay)
	}
	m, err := c.plain(&d.Message, func(n int64) error { return h.take(ctx, d, n) })
	h.keep()
	var u *unpackError
	switch {
	case errors.Is(err, errNoRoom):
		h.full = true
		return longshore.Release(err, roomDelay)
	case err != nil && ctx.Err() != nil:
		return longshore.Release(err, 0)
	case errors.As(err, &u):
		return longshore.Reject(c.failure(d, u.name, u.err))
	case m != &d.Message:
		d.Replace(*m) //nolint:contextcheck // counting a size waits for nothing
	}
	return nil
}

// unpackError says which coding it was.
type unpackError struct {
	name string
	err  error
}

func (e *unpackError) Error() string { return e.name + ": " + e.err.Error() }

func (e *unpackError) Unwrap() error { return e.err }

// plain returns the message unpacked, or itself if it is not packed.
func (c *decoder) plain(m *longshore.Message, take func(n int64) error) (*longshore.Message, error) {
	said := codingsOf(m)
	if said == "" || m.Body == nil {
		return m, nil
	}
	names := strings.FieldsFunc(strings.ToLower(said), func(r rune) bool { return r == ',' || r == ':' || r == ';' })
	if len(names) > maxCodings {
		return m, &unpackError{"content encoding", fmt.Errorf("more than %d in a row", maxCodings)}
	}
	body, packed := m.Body, false
	for _, name := range slices.Backward(names) {
		name = strings.TrimSpace(name)
		if plain(name) {
			continue
		}
		var err error
		if body, err = c.unpack(name, body, take); err != nil {
			return m, &unpackError{name, err}
		}
		packed = true
	}
	if !packed {
		return m, nil
	}
	out := *m
	out.Body, out.ContentEncoding = body, ""
	out.Headers = slices.DeleteFunc(slices.Clone(m.Headers), saysPacking)
	return &out, nil
}

// codingsOf is what a message says about its packing, the last coding last: the header of
// Celery, whose packing comes before the rest, then the property, or without it a header of
// that name in any spelling.
func codingsOf(m *longshore.Message) string {
	said, celery := m.ContentEncoding, ""
	for _, h := range m.Headers {
		text, _ := h.Value.(string)
		switch {
		case h.Name == celeryHeader:
			celery = celeryCoding(text)
		case said == "" && strings.EqualFold(h.Name, encodingHeader):
			said = text
		}
	}
	if celery == "" {
		return said
	}
	return celery + "," + said
}

// saysPacking reports whether a header says how the body is packed.
func saysPacking(h longshore.Header) bool {
	text, _ := h.Value.(string)
	return strings.EqualFold(h.Name, encodingHeader) || h.Name == celeryHeader && celeryCoding(text) != ""
}

const encodingHeader = "content-encoding"

// celeryHeader is where kombu says how a body is packed, by a media type of its own.
const celeryHeader = "compression"

// celeryCoding is the coding of kombu's media type; "" if it is none of them, and the
// header another's.
func celeryCoding(kind string) string {
	switch kind {
	case "application/x-gzip": // of zlib, whatever its name
		return "deflate"
	case "application/x-bz2":
		return "bzip2"
	case "application/zstd":
		return "zstd"
	case "application/x-brotli", "application/x-lzma":
		return strings.TrimPrefix(kind, "application/x-")
	}
	return ""
}

var errTooLarge = errors.New("too large")

func (c *decoder) unpack(name string, body []byte, take func(n int64) error) ([]byte, error) {
	r, done, err := c.open(name, body)
	if err != nil {
		return nil, err
	}
	defer func() { done() }()
	out, err := io.ReadAll(io.LimitReader(r, min(c.limit, direct)+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(out)) > c.limit:
		return nil, errTooLarge
	case len(out) <= direct:
		return out, nil
	}
	n, err := io.Copy(io.Discard, io.LimitReader(r, c.limit+1-int64(len(out))))
	if err != nil {
		return nil, err
	}
	if n += int64(len(out)); n > c.limit {
		return nil, errTooLarge
	}
	if take != nil {
		if err := take(n); err != nil {
			return nil, err
		}
	}
	done()
	if r, done, err = c.open(name, body); err != nil {
		return nil, err
	}
	out = make([]byte, n)
	_, err = io.ReadFull(r, out)
	return out, err
}

// open returns a reader of the unpacked body, and its closer.
func (c *decoder) open(name string, body []byte) (r io.Reader, done func(), err error) {
	open := c.codings[name]
	if open == nil {
		return nil, func() {}, fmt.Errorf("content encoding %.40q is not known, only %s", name, strings.Join(slices.Sorted(maps.Keys(c.codings)), ", "))
	}
	if r, err = open(bytes.NewReader(body)); err != nil {
		return nil, func() {}, err
	}
	if cl, ok := r.(io.Closer); ok {
		return r, func() { _ = cl.Close() }, nil // it has been read
	}
	return r, func() {}, nil
}

func (c *decoder) failure(d *longshore.Delivery, name string, err error) error {
	e := &longshore.Error{Code: longshore.CodeUndecodable, Op: fmt.Sprintf("unpack %q message %.64q", d.Origin.Source(), d.Received().ID), Source: d.Origin.Source(),
		Err: fmt.Errorf("%s: %w", name, err), Hint: "add the encoding to DecodeConfig.Codings, or correct the producer"}
	switch {
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		e.Code, e.Err, e.Hint = longshore.CodeTooLarge, fmt.Errorf("%s: its window is more than %d bytes", name, max(c.limit, maxWindow)), "raise DecodeConfig.MaxBytes, or let the producer use a smaller window"
	case errors.Is(err, errTooLarge):
		e.Code, e.Err, e.Hint = longshore.CodeTooLarge, fmt.Errorf("%s: more than %d bytes when unpacked", name, c.limit), "raise DecodeConfig.MaxBytes, or correct the producer"
	}
	return e
}
