package offsets

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// sealed is the text of a payload, with its checksum.
func sealed(payload ...byte) string {
	raw := binary.LittleEndian.AppendUint32(nil, crc32.Checksum(payload, castagnoli))
	return prefix + base64.RawURLEncoding.EncodeToString(append(raw, payload...))
}

// headed is sealed with everything before the attempts: of a topic 7 at place 9.
func headed(kind byte, base uint64, epoch int64, rest ...byte) string {
	b := []byte{kind, 7, 0, 0, 0, 9, 0, 0, 0}
	b = binary.AppendVarint(binary.AppendUvarint(b, base), epoch)
	return sealed(append(b, rest...)...)
}

var testMark = Mark{topic: 7, place: 9}

// uvarints writes numbers one after the other.
func uvarints(ns ...uint64) (b []byte) {
	for _, n := range ns {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// F-C05: text that is sealed well and says what cannot be is refused whole; what lies just
// within the bounds is not.
func TestImpossibleTextIsRefused(t *testing.T) {
	t.Parallel()
	const most = 1 << 62
	list := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"runs":                          {headed(kindRuns, 100, 4, uvarints(0, 1, 5)...), true},
		"no runs":                       {headed(kindRuns, 100, 4, 0), true},
		"an epoch of none":              {headed(kindRuns, 100, -1, 0), true},
		"an epoch below none":           {headed(kindRuns, 100, -2, 0), false},
		"the last epoch":                {headed(kindRuns, 100, math.MaxInt32, 0), true},
		"an epoch beyond the last":      {headed(kindRuns, 100, math.MaxInt32+1, 0), false},
		"another base":                  {headed(kindRuns, 101, 4, 0), false},
		"a base beyond all":             {headed(kindRuns, 1<<63, 4, 0), false},
		"another kind":                  {headed(4, 100, 4, 0), false},
		"no attempts":                   {headed(kindRuns, 100, 4), false},
		"a cut head":                    {sealed(kindRuns, 7, 0, 0, 0, 9, 0, 0), false},
		"no base":                       {sealed(kindRuns, 7, 0, 0, 0, 9, 0, 0, 0), false},
		"a base without end":            {sealed(kindRuns, 7, 0, 0, 0, 9, 0, 0, 0, 0x80), false},
		"no epoch":                      {sealed(kindRuns, 7, 0, 0, 0, 9, 0, 0, 0, 100), false},
		"an epoch without end":          {sealed(kindRuns, 7, 0, 0, 0, 9, 0, 0, 0, 100, 0x80), false},
		"the most attempts":             {headed(kindRuns, 100, 4, list(uvarints(MaxRetried), slices.Repeat([]byte{1, 2}, MaxRetried))...), true},
		"too many attempts":             {headed(kindRuns, 100, 4, list(uvarints(MaxRetried+1), slices.Repeat([]byte{1, 2}, MaxRetried+1))...), false},
		"fewer attempts than said":      {headed(kindRuns, 100, 4, 2, 1, 2), false},
		"half an attempt":               {headed(kindRuns, 100, 4, 1, 1), false},
		"the farthest attempt":          {headed(kindRuns, 100, 4, list([]byte{1}, uvarints(most, 2))...), true},
		"an attempt beyond it":          {headed(kindRuns, 100, 4, list([]byte{1}, uvarints(most+1, 2))...), false},
		"attempt 0":                     {headed(kindRuns, 100, 4, 1, 1, 0), false},
		"the last attempt":              {headed(kindRuns, 100, 4, list([]byte{1}, uvarints(1, 1<<30))...), true},
		"an attempt beyond the last":    {headed(kindRuns, 100, 4, list([]byte{1}, uvarints(1, 1<<30+1))...), false},
		"half a run":                    {headed(kindRuns, 100, 4, 0, 1), false},
		"a run without end":             {headed(kindRuns, 100, 4, 0, 1, 0x80), false},
		"a skip without end":            {headed(kindRuns, 100, 4, 0, 0x80), false},
		"an empty run":                  {headed(kindRuns, 100, 4, 0, 1, 0), false},
		"the farthest run":              {headed(kindRuns, 100, 4, list([]byte{0}, uvarints(most-101, 1))...), true},
		"a run beyond it":               {headed(kindRuns, 100, 4, list([]byte{0}, uvarints(most-100, 1))...), false},
		"a skip beyond it":              {headed(kindRuns, 100, 4, list([]byte{0}, uvarints(most-99, 1))...), false},
		"a skip beyond all":             {headed(kindRuns, 100, 4, list([]byte{0}, uvarints(most+1, 1))...), false},
		"the longest run":               {headed(kindRuns, 100, 4, list([]byte{0}, uvarints(1, most-101))...), true},
		"a longer run":                  {headed(kindRuns, 100, 4, list([]byte{0}, uvarints(1, most-100))...), false},
		"a run longer than all":         {headed(kindRuns, 100, 4, list([]byte{0}, uvarints(0, most+1))...), false},
		"the farthest list":             {headed(kindUndone, 100, 4, list([]byte{0}, uvarints(most-100), []byte{0, 0})...), true},
		"a list beyond it":              {headed(kindUndone, 100, 4, list([]byte{0}, uvarints(most-99), []byte{0, 0})...), false},
		"a list longer than all":        {headed(kindUndone, 100, 4, list([]byte{0}, uvarints(most+1), []byte{0, 0})...), false},
		"a list without a length":       {headed(kindUndone, 100, 4, 0), false},
		"a list with the largest":       {headed(kindUndone, 100, 4, 0, 30, maxShift-1, 0), true},
		"a list with too much shift":    {headed(kindUndone, 100, 4, 0, 30, maxShift, 0), false},
		"a list that says too much":     {headed(kindUndone, 100, 4, 0, 30, 0, 9, 0), false},
		"a list that ends too early":    {headed(kindUndone, 100, 4, 0, 30, 0, 3, 0b1111_0111), false},
		"a list that fills its bytes":   {headed(kindUndone, 100, 4, 0, 30, 0, 8, 0), true},
		"an open offset at the end":     {headed(kindUndone, 100, 4, 0, 2, 0, 1, 0b011), false},
		"an open offset before it":      {headed(kindUndone, 100, 4, 0, 2, 0, 1, 0b01), true},
		"without a list":                {headed(kindUndone, 100, 4, 0, 30, 1), false},
		"a count without end":           {headed(kindUndone, 100, 4, 0, 30, 1, 0x80), false},
		"a wrong checksum":              {prefix + base64.RawURLEncoding.EncodeToString([]byte("12341234567890123")), false},
		"not base64":                    {prefix + "!", false},
		"a list whose bits are missing": {headed(kindUndone, 100, 4, 0, 30, 3, 1, 0b0001_1111), false},
	} {
		s, ok := Decode(c.text, testMark, 100)
		if ok != c.ok {
			t.Errorf("%s: read %t, want %t", name, ok, c.ok)
		}
		if !ok && (s.runs != nil || s.attempts != nil) {
			t.Errorf("%s: refused, and says %+v", name, s)
		}
	}
}

// naive is what a list of runs means, one offset after the other.
func naive(runs []span) []int64 {
	var all []int64
	for _, r := range runs {
		for o := r.from; o < r.to; o++ {
			all = append(all, o)
		}
	}
	return all
}

// F-C05: each format says the same as the offsets one after the other, and what does not fit
// is left out from the end on.
func TestFormatsSayTheSame(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 11))
		base := r.Int64N(1000)
		var runs []span
		var open []int64
		at := base
		for range 1 + r.IntN(40) {
			for range 1 + r.IntN(4) {
				open = append(open, at)
				at++
			}
			n := 1 + r.IntN(1+r.IntN(30))
			runs = append(runs, span{from: at, to: at + int64(n), n: n})
			at += int64(n)
		}
		want := naive(runs)
		room := r.IntN(120)
		for name, body := range map[string]func() ([]byte, int, []span, bool){
			"runs": func() ([]byte, int, []span, bool) {
				b, n := runsBody(runs, base, room)
				got, ok := readRuns(b, base)
				return b, n, got, ok
			},
			"bitmap": func() ([]byte, int, []span, bool) {
				b, n := bitmapBody(runs, base, room)
				return b, n, readBitmap(b, base), true
			},
			"list": func() ([]byte, int, []span, bool) {
				b, n := undoneBody(runs, slices.Values(open), base, room)
				if b == nil {
					return nil, n, nil, true
				}
				got, ok := readUndone(b, base)
				return b, n, got, ok
			},
		} {
			b, covered, got, ok := body()
			if !ok || len(b) > max(room, 0) {
				t.Fatalf("seed %d: %s: read %t, %d bytes of %d", seed, name, ok, len(b), room)
			}
			for i := 1; i < len(got); i++ {
				if got[i].from <= got[i-1].to {
					t.Fatalf("seed %d: %s: %v are not apart", seed, name, got)
				}
			}
			said := naive(got)
			if covered > len(said) || !slices.Equal(said[:covered], want[:covered]) {
				t.Fatalf("seed %d: %s: covers %d of %v, says %v", seed, name, covered, want, said)
			}
			for _, o := range open {
				if slices.Contains(said, o) {
					t.Fatalf("seed %d: %s: %d is open and said to be done", seed, name, o)
				}
			}
			if whole := room > 90 && name != "list"; whole && at-base < 90*8 && covered != len(want) && len(runs)*2 < 90 {
				t.Fatalf("seed %d: %s: %d of %d covered in %d bytes", seed, name, covered, len(want), room)
			}
		}
		checkBest(t, seed, runs, open, base, room)
	}
}

// checkBest: no format covers more than the one that is chosen.
func checkBest(t *testing.T, seed uint64, runs []span, open []int64, base int64, room int) {
	t.Helper()
	kind, body, covered := bestBody(runs, slices.Values(open), base, room)
	asRuns, inRuns := runsBody(runs, base, room)
	bitmap, inBitmap := bitmapBody(runs, base, min(room, int(runs[len(runs)-1].to-base+7)/8))
	_, inList := undoneBody(runs, slices.Values(open), base, room)
	if covered != max(inRuns, inBitmap, inList) {
		t.Fatalf("seed %d: kind %d covers %d, the formats cover %d, %d and %d in %d bytes", seed, kind, covered, inRuns, inBitmap, inList, room)
	}
	if covered == inRuns && len(body) > len(asRuns) || covered == inBitmap && len(body) > len(bitmap) {
		t.Fatalf("seed %d: kind %d takes %d bytes, the formats take %d and %d", seed, kind, len(body), len(asRuns), len(bitmap))
	}
	if kind == kindUndone && (covered == inRuns || covered == inBitmap) {
		t.Fatalf("seed %d: a list, which earlier versions do not know, where another format suffices", seed)
	}
}

// The shift of a list is the best there is for the records that are open.
func TestListsAreAsShortAsTheyCanBe(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 12))
		open := 1 + r.IntN(1<<r.IntN(17))
		span := int64(open) + r.Int64N(1<<r.IntN(40))
		least := int64(math.MaxInt64)
		for s := range maxShift {
			least = min(least, int64(open)*int64(1+s)+span>>s)
		}
		if bits, shift := undoneBits(open, span); bits != least || int64(open)*int64(1+shift)+span>>shift != bits {
			t.Fatalf("%d open in %d offsets: %d bits with shift %d, want %d", open, span, bits, shift, least)
		}
	}
	if _, shift := undoneBits(0, 1<<61); shift >= maxShift {
		t.Errorf("a shift of %d, which no reader takes", shift)
	}
	// The offset at the end of the last run is open, and not one of the list.
	for n := int64(3); n < 3000; n++ {
		runs := []span{{from: 2, to: n, n: int(n - 2)}}
		body, covered := undoneBody(runs, slices.Values([]int64{0, 1, n}), 0, 100)
		_, want := undoneBits(2, n)
		length, k := binary.Uvarint(body)
		if covered != int(n-2) || int64(length) != n || int(body[k]) != want || body[k+1] != 2 { //nolint:gosec // small
			t.Fatalf("2 open in %d: %v covers %d, want shift %d", n, body, covered, want)
		}
	}
	runs := []span{{from: 1, to: 2, n: 1}}
	for room, want := range map[int]bool{undoneHead: false, undoneHead + 1: true} {
		if body, _ := undoneBody(runs, slices.Values([]int64{0}), 0, room); (body != nil) != want {
			t.Errorf("%v in %d bytes", body, room)
		}
	}
	if body, n := undoneBody(nil, slices.Values([]int64{0}), 0, 100); body != nil || n != 0 {
		t.Errorf("%v of no runs", body)
	}
	if body, n := undoneBody(runs, nil, 0, 100); body != nil || n != 0 {
		t.Errorf("%v of no list", body)
	}
	counted := 0
	endless := iter.Seq[int64](func(yield func(int64) bool) {
		for o := int64(0); yield(o); o++ {
			counted++
		}
	})
	if undoneBody([]span{{from: 1 << 40, to: 1<<40 + 1, n: 1}}, endless, 0, 20); counted > 2*(20*8+2) {
		t.Errorf("%d offsets were looked at for 20 bytes", counted)
	}
}

// F-N35, F-C05: the texts as they are written: a later version reads what this one wrote, and
// this one what an earlier one wrote.
func TestTextsAsTheyAre(t *testing.T) {
	t.Parallel()
	mark := Mark{topic: 0x01020304, place: 0x0a0b0c0d}
	every := func(from, to, step int64) (runs []span, open []int64) {
		for o := from; o < to; o += step {
			open = append(open, o)
			runs = append(runs, span{from: o + 1, to: o + step, n: int(step - 1)})
		}
		return runs, open
	}
	long, longOpen := every(1000, 60000, 50)
	dense, denseOpen := every(1000, 1300, 3)
	for name, c := range map[string]struct {
		runs     []span
		open     []int64
		attempts []retried
		mark     Mark
		budget   int
		covered  int
		want     string // the text, or its length
	}{
		"nothing":                  {mark: Mark{topic: 1}, budget: 4000, want: ""},
		"nothing but the place":    {mark: mark, budget: 4000, want: "ls2.8OQ-dwEEAwIBDQwLCugHBgA"},
		"no room":                  {mark: mark, budget: 20, want: ""},
		"attempts":                 {mark: Mark{topic: 1}, budget: 4000, attempts: []retried{{1000, 2}, {1500, 300}}, want: "ls2.l_cLKAEBAAAAAAAAAOgHBgIAAvQDrAI"},
		"one run":                  {runs: []span{{from: 1001, to: 1100, n: 99}}, open: []int64{1000}, mark: mark, budget: 4000, covered: 99, want: "ls2.dull8AEEAwIBDQwLCugHBgABYw"},
		"dense":                    {runs: dense, open: denseOpen, mark: mark, budget: 4000, covered: 200, want: "ls2.sCxUwAIEAwIBDQwLCugHBgC2bdu2bdu2bdu2bdu2bdu2bdu2bdu2bdu2bdu2bdu2bdu2bdu2DQ"},
		"dense, with little room":  {runs: dense, open: denseOpen, mark: mark, budget: 60, covered: 132, want: "ls2.NrTXbQIEAwIBDQwLCugHBgC2bdu2bdu2bdu2bdu2bdu2bdu2bdu2bds2"},
		"long, as runs":            {runs: long, open: longOpen, mark: mark, budget: 4000, covered: 1180 * 49, want: "len 3174"},
		"long, as a list":          {runs: long, open: longOpen, mark: mark, budget: 2000, covered: 1180 * 49, want: "len 1412"},
		"long, with little room":   {runs: long, open: longOpen, mark: mark, budget: 100, covered: 40 * 49, want: "len 86"},
		"attempts after the runs":  {runs: dense, open: denseOpen, attempts: []retried{{1000, 2}}, mark: mark, budget: 60, covered: 132, want: "ls2.NrTXbQIEAwIBDQwLCugHBgC2bdu2bdu2bdu2bdu2bdu2bdu2bdu2bds2"},
		"attempts beside the runs": {runs: []span{{from: 1001, to: 1100, n: 99}}, open: []int64{1000}, attempts: []retried{{1000, 2}}, mark: mark, budget: 4000, covered: 99, want: "ls2.kqV1uwEEAwIBDQwLCugHBgEAAgFj"},
	} {
		text, covered := encode(c.runs, c.attempts, header{mark: c.mark, base: 1000, epoch: 3, undone: slices.Values(c.open)}, c.budget)
		got := text
		if strings.HasPrefix(c.want, "len ") {
			got = fmt.Sprintf("len %d", len(text))
		}
		if got != c.want || covered != c.covered || len(text) > c.budget {
			t.Errorf("%s: covers %d: %q", name, covered, got)
		}
	}
}

// F-C05, F-E07: what tells a position in a deleted topic from one in the topic that has its
// name now.
func TestMarksTellTopicsApart(t *testing.T) {
	t.Parallel()
	old, now := [16]byte{1}, [16]byte{2}
	if m := MarkOf("cluster", [16]byte{}, "orders"); m.place != 0 || m == MarkOf("cluster", [16]byte{}, "refunds") {
		t.Errorf("a topic without an identity is %+v", m)
	}
	if m := MarkOf("", old, "orders"); m.place != 0 || m.topic == 0 {
		t.Errorf("a cluster without an identity: %+v", m)
	}
	was, is := MarkOf("cluster", old, "orders"), MarkOf("cluster", now, "orders")
	if was.place == 0 || was.place != is.place || was.topic == is.topic || is.place == MarkOf("other", now, "orders").place || is.place == MarkOf("cluster", now, "refunds").place {
		t.Errorf("%+v and %+v", was, is)
	}
	tr := New(100, 3)
	text := tr.Snapshot(DefaultBudget, was).Saved
	for name, c := range map[string]struct {
		text   string
		mark   Mark
		offset int64
		want   bool
	}{
		"deleted":                  {text, is, 100, true},
		"the same topic":           {text, was, 100, false},
		"moved by hand":            {text, is, 99, false},
		"another name":             {text, MarkOf("cluster", now, "refunds"), 100, false},
		"another cluster":          {text, MarkOf("other", now, "orders"), 100, false},
		"topics without identity":  {headed(kindRuns, 100, 3, 0), Mark{topic: 8}, 100, false},
		"both without identity":    {sealed(kindRuns, 7, 0, 0, 0, 0, 0, 0, 0, 100, 6, 0), Mark{topic: 8}, 100, false},
		"text of another program":  {"kgo-1", is, 100, false},
		"nothing beside an offset": {"", is, 100, false},
	} {
		if got := FromDeletedTopic(c.text, c.mark, c.offset); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// F-C08: what lies beyond the cut of a log is forgotten, and nothing before it.
func TestCutForgetsWhatIsGone(t *testing.T) {
	t.Parallel()
	read := func() Saved {
		text, _ := encode([]span{{from: 101, to: 110, n: 9}, {from: 120, to: 130, n: 10}}, []retried{{100, 2}, {111, 3}, {115, 4}},
			header{mark: testMark, base: 100, epoch: 3}, DefaultBudget)
		s, ok := Decode(text, testMark, 100)
		if !ok {
			t.Fatal("the text cannot be read")
		}
		return s
	}
	for cut, want := range map[int64]string{
		100: "[] map[]", 101: "[] map[100:2]", 105: "[{101 105 0 0}] map[100:2]", 110: "[{101 110 0 0}] map[100:2]", 112: "[{101 110 0 0}] map[100:2 111:3]",
		120: "[{101 110 0 0}] map[100:2 111:3 115:4]", 121: "[{101 110 0 0} {120 121 0 0}] map[100:2 111:3 115:4]", 200: "[{101 110 0 0} {120 130 0 0}] map[100:2 111:3 115:4]",
	} {
		s := read()
		s.Cut(cut)
		if got := fmt.Sprint(s.runs, s.attempts); got != want {
			t.Errorf("cut at %d: %s, want %s", cut, got, want)
		}
	}
	s := read()
	for offset := int64(100); offset < 140; offset++ {
		done := offset > 100 && offset < 110 || offset >= 120 && offset < 130
		if s.Has(offset, 3) != done {
			t.Errorf("offset %d: done %t", offset, !done)
		}
	}
	s = read()
	if s.Has(101, 4) || !s.Has(102, 2) || s.Attempt(111, 3) != 3 || s.Attempt(111, 4) != 1 || s.Attempt(112, 3) != 1 {
		t.Error("a record of a later epoch is another record")
	}
}

// Attempts that take exactly the room that is left are written.
func TestAttemptsFillTheirRoom(t *testing.T) {
	t.Parallel()
	list := []retried{{offset: 101, attempt: 2}, {offset: 500, attempt: 3}}
	all := uvarints(1, 2, 400, 3)
	for room, want := range map[int][]byte{
		len(all):     append(uvarints(2), all...),
		len(all) - 1: append(uvarints(1), uvarints(1, 2)...),
		1:            uvarints(0),
	} {
		if got := appendAttempts(nil, list, 100, room); !slices.Equal(got, want) {
			t.Errorf("room %d: %v, want %v", room, got, want)
		}
	}
}

// Offsets without a record, as compaction and transactions leave them, belong to the run
// before them: nothing of them can come again.
func TestARunReachesToTheNextOpenRecord(t *testing.T) {
	t.Parallel()
	tr := New(10, -1)
	tr.Add(10, 1, nil)
	tr.Ack(tr.Add(20, 1, nil))
	tr.Ack(tr.Add(30, 1, nil))
	tr.Add(40, 1, nil)
	tr.Ack(tr.Add(50, 1, nil))
	runs := tr.runs()
	if len(runs) != 2 || runs[0].from != 11 || runs[0].to != 40 || runs[0].n != 2 || runs[1].from != 41 || runs[1].to != 51 {
		t.Errorf("%+v", runs)
	}
}

// A run that goes on in the next word of the bitmap is one run.
func TestARunAcrossWordsIsOne(t *testing.T) {
	t.Parallel()
	tr := New(0, -1)
	for o := range int64(200) {
		if seq := tr.Add(o, 1, nil); o != 0 && o != 199 {
			tr.Ack(seq)
		}
	}
	if runs := tr.runs(); len(runs) != 1 || runs[0].from != 1 || runs[0].to != 199 || runs[0].n != 198 {
		t.Errorf("%+v", runs)
	}
}
