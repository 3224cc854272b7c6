package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore/bridge/internal/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, dir string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func add(t *testing.T, l *ledger.Ledger, rs ...ledger.Record) {
	t.Helper()
	for _, r := range rs {
		if err := l.Add(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, dir string) (rs []ledger.Record, torn int64) {
	t.Helper()
	for r, err := range ledger.Read(dir, func(x ledger.Torn) { torn += x.Bytes }) {
		if err != nil {
			t.Fatal(err)
		}
		rs = append(rs, r)
	}
	return rs, torn
}

func TestRecordsComeBackAsTheyWere(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	long := strings.Repeat("ö", 200)
	add(t, l, ledger.Record{Kind: ledger.Taken, ID: "1", Digest: [16]byte{1, 2}, From: 3, To: 4, Pos: 6, Key: 5},
		ledger.Record{Kind: ledger.Confirmed, ID: long}, ledger.Record{Kind: ledger.Parked})
	rs, torn := read(t, dir)
	if len(rs) != 3 || torn != 0 {
		t.Fatalf("%d records, %d bytes torn", len(rs), torn)
	}
	if r := rs[0]; r.Kind != ledger.Taken || r.ID != "1" || r.Digest != [16]byte{1, 2} || r.From != 3 || r.To != 4 || r.Pos != 6 || r.Key != 5 || r.Seq != 1 || r.At == 0 {
		t.Errorf("%+v", r)
	}
	if r := rs[1]; r.ID != ledger.ShortID(long) || len(r.ID) != 255 || r.Seq != 2 {
		t.Errorf("a long identity: %d bytes", len(r.ID))
	}
	if ledger.ShortID(long) == ledger.ShortID(long+"x") {
		t.Error("two long identities are one")
	}
}

// What a killed process left at the end is ignored, whatever it was cut off at, and everything
// before it is read.
func TestATornTailIsIgnored(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	add(t, l, ledger.Record{Kind: ledger.Taken, ID: "one"}, ledger.Record{Kind: ledger.Taken, ID: "two"})
	names, _ := filepath.Glob(filepath.Join(dir, "*.ledger"))
	whole, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut < len(whole); cut++ {
		torn := t.TempDir()
		if err := os.WriteFile(filepath.Join(torn, "1.ledger"), whole[:len(whole)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(torn, "2.ledger"), whole, 0o600); err != nil {
			t.Fatal(err)
		}
		rs, _ := read(t, torn)
		if len(rs) < 2 || len(rs) > 3 || rs[len(rs)-1].ID != "two" {
			t.Fatalf("cut by %d: %d records", cut, len(rs))
		}
	}
	flipped := slices.Clone(whole)
	flipped[len(flipped)-6] ^= 1
	torn := t.TempDir()
	if err := os.WriteFile(filepath.Join(torn, "1.ledger"), flipped, 0o600); err != nil {
		t.Fatal(err)
	}
	if rs, bytes := read(t, torn); len(rs) != 1 || bytes == 0 {
		t.Errorf("a flipped bit: %d records, %d bytes torn", len(rs), bytes)
	}
}

func TestSomethingElseInTheDirectoryIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "1.ledger"), []byte(strings.Repeat("no ledger ", 9)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.Open(dir, time.Now); err == nil || !strings.Contains(err.Error(), "1.ledger") {
		t.Errorf("%v", err)
	}
}

// Many callers are written together, and each knows its record is on disk when Add returns.
func TestManyAddAtOnce(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for j := range 20 {
				if err := l.Add(context.Background(), ledger.Record{Kind: ledger.Taken, ID: fmt.Sprint(i, "-", j)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	rs, torn := read(t, dir)
	if len(rs) != 1000 || torn != 0 {
		t.Errorf("%d records, %d bytes torn", len(rs), torn)
	}
	for i, r := range rs {
		if r.Seq != uint64(i+1) {
			t.Fatalf("record %d has number %d", i, r.Seq)
		}
	}
}

func TestAddAfterCloseIsAnError(t *testing.T) {
	l := open(t, t.TempDir())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Add(t.Context(), ledger.Record{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// A message that came from the target is recognised, also by the process after this one; a
// repetition is not, and neither is another content under the same identity.
func TestWhatTheLedgerRecognises(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	there := ledger.Record{Kind: ledger.Confirmed, ID: "1", Digest: [16]byte{1}, From: 10, To: 20}
	logged := ledger.Record{Kind: ledger.Confirmed, ID: "3", From: 10, To: 20, Pos: 77}
	add(t, l, there, logged, ledger.Record{Kind: ledger.Parked, ID: "2", From: 10, To: 20, Key: 7})
	for _, l := range []*ledger.Ledger{l, open(t, dir)} {
		for name, like := range map[string]struct {
			r    ledger.Record
			want ledger.Known
		}{
			"the way back":             {ledger.Record{ID: "1", Digest: [16]byte{1}, From: 20, To: 10}, ledger.Loops},
			"the same way again":       {there, ledger.Unknown},
			"the next place":           {ledger.Record{ID: "1", Digest: [16]byte{1}, From: 20, To: 30}, ledger.Unknown},
			"another content":          {ledger.Record{ID: "1", Digest: [16]byte{2}, From: 20, To: 10}, ledger.Differs},
			"the same record of a log": {logged, ledger.Done},
			"another record of a log":  {ledger.Record{ID: "3", From: 10, To: 20, Pos: 78}, ledger.Unknown},
			"to another place":         {ledger.Record{ID: "3", From: 10, To: 30, Pos: 77}, ledger.Unknown},
			"another message":          {ledger.Record{ID: "9", Digest: [16]byte{1}, From: 20, To: 10}, ledger.Unknown},
			"without an identity":      {ledger.Record{Digest: [16]byte{1}, From: 20, To: 10}, ledger.Unknown},
			"only parked, no more":     {ledger.Record{ID: "2", From: 20, To: 10}, ledger.Unknown},
		} {
			if got := l.Ask(like.r); got != like.want {
				t.Errorf("%s: %d, want %d", name, got, like.want)
			}
		}
		held := func(from, to, key uint64) bool { return l.KeyParked(ledger.Record{From: from, To: to, Key: key}) }
		if !held(10, 20, 7) || held(20, 10, 7) || held(10, 20, 8) || held(10, 20, 0) {
			t.Error("not the key of the parked message is held on its way, and nothing else")
		}
	}
	parked := ledger.Record{From: 10, To: 20, Key: 7}
	if err := l.ReleaseKeys(t.Context()); err != nil || l.KeyParked(parked) || open(t, dir).KeyParked(parked) {
		t.Errorf("released: %v", err)
	}
}

func sequence(rs []ledger.Record) iter.Seq2[ledger.Record, error] {
	return func(yield func(ledger.Record, error) bool) {
		for _, r := range rs {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func TestTheAccount(t *testing.T) {
	taken := func(id string, key uint64) ledger.Record {
		return ledger.Record{Kind: ledger.Taken, ID: id, Key: key, To: 1}
	}
	confirmed := func(id string, key uint64) ledger.Record {
		return ledger.Record{Kind: ledger.Confirmed, ID: id, Key: key, To: 1}
	}
	changed := confirmed("a", 1)
	changed.Digest[0] = 1
	for name, like := range map[string]struct {
		records []ledger.Record
		want    ledger.Account
	}{
		"in order":        {[]ledger.Record{taken("a", 1), taken("b", 1), confirmed("a", 1), confirmed("b", 1)}, ledger.Account{Taken: 2, Confirmed: 2, Keys: 1}},
		"out of order":    {[]ledger.Record{taken("a", 1), taken("b", 1), confirmed("b", 1), confirmed("a", 1)}, ledger.Account{Taken: 2, Confirmed: 2, Keys: 1, Inversions: 1, Inverted: []string{"a"}}},
		"two keys":        {[]ledger.Record{taken("a", 1), taken("b", 2), confirmed("b", 2), confirmed("a", 1)}, ledger.Account{Taken: 2, Confirmed: 2, Keys: 2}},
		"a crash":         {[]ledger.Record{taken("a", 1), confirmed("a", 1), taken("a", 1), confirmed("a", 1)}, ledger.Account{Taken: 1, Confirmed: 1, Copies: 1, Keys: 1, Repeated: []string{"a"}}},
		"taken back":      {[]ledger.Record{taken("a", 1), taken("b", 1), confirmed("a", 1), confirmed("b", 1), {Kind: ledger.Taken, ID: "b", From: 1}, {Kind: ledger.Returned, ID: "b", From: 1}, {Kind: ledger.Taken, ID: "a", From: 1}, {Kind: ledger.Returned, ID: "a", From: 1}}, ledger.Account{Taken: 2, Returned: 2, Keys: 1}},
		"and on again":    {[]ledger.Record{taken("a", 1), taken("b", 1), confirmed("a", 1), confirmed("b", 1), {Kind: ledger.Returned, ID: "b", From: 1}, {Kind: ledger.Returned, ID: "a", From: 1}, taken("b", 1), taken("a", 1), confirmed("b", 1), confirmed("a", 1)}, ledger.Account{Taken: 2, Confirmed: 2, Returned: 2, Keys: 1}},
		"lost":            {[]ledger.Record{taken("a", 1), taken("b", 1), confirmed("b", 1)}, ledger.Account{Taken: 2, Confirmed: 1, Keys: 1, Missing: []string{"a"}}},
		"parked":          {[]ledger.Record{taken("a", 1), {Kind: ledger.Parked, ID: "a", Key: 1, To: 1}}, ledger.Account{Taken: 1, Parked: 1, Aside: []string{"a"}}},
		"parked, then on": {[]ledger.Record{{Kind: ledger.Parked, ID: "a", Key: 1, To: 1}, taken("a", 1), confirmed("a", 1)}, ledger.Account{Taken: 1, Confirmed: 1, Keys: 1}},
		"changed":         {[]ledger.Record{taken("a", 1), confirmed("a", 1), changed}, ledger.Account{Taken: 1, Confirmed: 1, Copies: 1, Keys: 1, Changed: []string{"a"}, Repeated: []string{"a"}}},
		"looped":          {[]ledger.Record{{Kind: ledger.Looped, ID: "a"}}, ledger.Account{Looped: 1, Round: []string{"a"}}},
		"anonymous":       {[]ledger.Record{taken("", 0), confirmed("", 0)}, ledger.Account{Anonymous: 1}},
	} {
		got, err := ledger.Sum(sequence(like.records))
		if err != nil || fmt.Sprint(got) != fmt.Sprint(like.want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", name, err, got, like.want)
		}
	}
}
