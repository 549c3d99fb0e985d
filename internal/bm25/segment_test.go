package bm25_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/bm25"
)

// keyed yields docs with the keys from first on.
func keyed(first int, docs []bm25.Doc) iter.Seq2[uint64, bm25.Doc] {
	return func(yield func(uint64, bm25.Doc) bool) {
		for i, d := range docs {
			if !yield(uint64(first+i), d) {
				return
			}
		}
	}
}

const label = "label"

func encode(t testing.TB, s *bm25.Segment) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Write(&b, label); err != nil {
		t.Fatal(err)
	}
	if want := s.Size() + int64(len(label)); int64(b.Len()) != want {
		t.Fatalf("wrote %d bytes, want %d", b.Len(), want)
	}
	return b.Bytes()
}

func reopen(t testing.TB, s *bm25.Segment) *bm25.Segment {
	t.Helper()
	b := encode(t, s)
	saved, err := bm25.OpenSegment(bytes.NewReader(b), int64(len(b)), label)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

// randomDocs returns texts with few words, so that many are shared, and with
// names that are equal after normalization.
func randomDocs(r *rand.Rand, n int) []bm25.Doc {
	words := strings.Fields("pdf merge split invoice invoices table Tables chart HTTPServer gitHub C++ 数据分析 表格 データ " +
		"kubernetes kubectl deploy deployment review reviewer é clúster report reporting formula spreadsheet the")
	text := func(n int) string {
		var b strings.Builder
		for range n {
			w := words[min(r.IntN(len(words)), r.IntN(len(words)))]
			if r.IntN(8) == 0 {
				w = fmt.Sprintf("w%d", r.IntN(500))
			}
			b.WriteString(w + " ")
		}
		return b.String()
	}
	docs := make([]bm25.Doc, n)
	for i := range docs {
		docs[i] = bm25.Doc{Name: strings.ReplaceAll(strings.TrimSpace(text(r.IntN(3))), " ", "-_ "[i%3:i%3+1]), Description: text(r.IntN(12)), Body: text(r.IntN(60))}
		if r.IntN(4) == 0 {
			docs[i].Tags = []string{text(1), text(2)}
		}
		if r.IntN(20) == 0 {
			docs[i].Body = strings.Repeat(text(1), 200+r.IntN(200))
		}
	}
	return docs
}

func randomQueries(r *rand.Rand, docs []bm25.Doc) []string {
	queries := []string{"pdf", "p", "invoce", "kube", "deploymnt reviewr", "merge the tables", "数据", "c++ clúster", "w1 w2 w3", "httpserver", "spreadshet formula zzzzzzz"}
	for range 10 {
		d := docs[r.IntN(len(docs))]
		queries = append(queries, d.Name, d.Description)
	}
	return queries
}

// TestDivisionIntoSegmentsDoesNotMatter searches texts that are divided into
// segments in memory and in files, next to texts that the index omits, and
// texts that were merged.
func TestDivisionIntoSegmentsDoesNotMatter(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		docs := randomDocs(r, 1+r.IntN(120))
		used := r.Perm(len(docs))[:1+r.IntN(len(docs))] // position to text
		position := make([]int32, len(docs))
		for i := range position {
			position[i] = int32(slices.Index(used, i))
		}
		live := make([]bm25.Doc, len(used))
		for at, i := range used {
			live[at] = docs[i]
		}
		var parts []bm25.Part
		for from := 0; from < len(docs); {
			to := from + 1 + r.IntN(len(docs)-from)
			s := bm25.NewSegment(keyed(from, docs[from:to]))
			if r.IntN(2) == 0 {
				s = reopen(t, s)
			}
			parts = append(parts, bm25.Part{Segment: s, At: position[from:to]})
			from = to
		}
		whole := bm25.NewSegment(keyed(0, live))
		merged, err := bm25.Merge(len(used), parts...)
		if err != nil {
			t.Fatal(err)
		}
		identity := make([]int32, len(used))
		for i := range identity {
			identity[i] = int32(i)
		}
		want := bm25.New(slices.Values(live))
		for what, x := range map[string]*bm25.Index{
			"parts":  bm25.Combine(len(used), parts...),
			"merged": bm25.Combine(len(used), bm25.Part{Segment: merged, At: identity}),
			"saved":  bm25.Combine(len(used), bm25.Part{Segment: reopen(t, whole), At: identity}),
		} {
			if x.Len() != len(used) {
				t.Fatalf("seed %d, %s: %d texts, want %d", seed, what, x.Len(), len(used))
			}
			for _, q := range randomQueries(r, docs) {
				keep := func(doc int) bool { return doc%3 != 0 }
				if got, want := x.Search(q, 50), want.Search(q, 50); !slices.Equal(got, want) {
					t.Fatalf("seed %d, %s, %q: got %v, want %v", seed, what, q, got, want)
				}
				got, err := x.SearchAmong(q, 5, keep)
				if want, _ := want.SearchAmong(q, 5, keep); err != nil || !slices.Equal(got, want) {
					t.Fatalf("seed %d, %s, %q, restricted: got %v, %v, want %v", seed, what, q, got, err, want)
				}
			}
		}
	}
}

// TestSegmentBytesAreDeterministic merges the same texts in two ways.
func TestSegmentBytesAreDeterministic(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	docs := randomDocs(r, 200)
	want := encode(t, bm25.NewSegment(keyed(0, docs)))
	odd, even := bm25.Part{}, bm25.Part{}
	pick := func(rest int, p *bm25.Part) {
		p.Segment = bm25.NewSegment(func(yield func(uint64, bm25.Doc) bool) {
			for i, d := range docs {
				if i%2 == rest {
					p.At = append(p.At, int32(i))
					if !yield(uint64(i), d) {
						return
					}
				}
			}
		})
	}
	pick(1, &odd)
	pick(0, &even)
	odd.Segment = reopen(t, odd.Segment)
	for _, parts := range [][]bm25.Part{{odd, even}, {even, odd}} {
		merged, err := bm25.Merge(len(docs), parts...)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encode(t, merged), want) {
			t.Error("merging gives other bytes than indexing")
		}
	}
}

func TestSearchAmong(t *testing.T) {
	docs := []bm25.Doc{
		{Name: "pdf", Description: "Read, merge and split PDF documents."},
		{Name: "weak", Description: "Choose names and colours for a brand, and much else, such as one that is merged, that is none of our business here at all."},
		{Name: "merge-tables", Description: "Merge tables."},
	}
	x := bm25.New(slices.Values(docs))
	for _, tt := range []struct {
		query string
		keep  []string
		want  []string
	}{
		{"merge pdf", []string{"pdf", "weak", "merge-tables"}, []string{"pdf"}},
		{"merge pdf", []string{"weak", "merge-tables"}, []string{"merge-tables", "weak"}}, // no longer much worse than the best
		{"pdf", []string{"weak"}, []string{}},
		{"merge", []string{}, []string{}},
	} {
		got, err := x.SearchAmong(tt.query, 10, func(doc int) bool { return slices.Contains(tt.keep, docs[doc].Name) })
		if err != nil || !slices.Equal(names(docs, got), tt.want) {
			t.Errorf("%q among %q: %q, %v; want %q", tt.query, tt.keep, names(docs, got), err, tt.want)
		}
	}
}

func TestSegmentInFileIsWrittenOnlyAfterMerging(t *testing.T) {
	s := reopen(t, bm25.NewSegment(keyed(0, shelf)))
	if err := s.Write(&bytes.Buffer{}, label); err == nil {
		t.Error("a segment in a file was written")
	}
}

func TestOpenSegmentRejectsOthers(t *testing.T) {
	good := encode(t, bm25.NewSegment(keyed(0, shelf)))
	for what, b := range map[string][]byte{
		"empty": {}, "text": []byte(strings.Repeat("hello\n", 100)), "longer": append(slices.Clone(good), 0),
		"of another version": bytes.Replace(slices.Clone(good), []byte("loadout search 1"), []byte("loadout search 2"), 1),
	} {
		if _, err := bm25.OpenSegment(bytes.NewReader(b), int64(len(b)), label); !errors.Is(err, bm25.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, other := range []string{"", "labe", "Label", "labels"} {
		if _, err := bm25.OpenSegment(bytes.NewReader(good), int64(len(good)), other); !errors.Is(err, bm25.ErrDamaged) {
			t.Errorf("label %q: %v", other, err)
		}
	}
	for n := range len(good) {
		if _, err := bm25.OpenSegment(bytes.NewReader(good[:n]), int64(n), label); !errors.Is(err, bm25.ErrDamaged) {
			t.Fatalf("cut to %d of %d bytes: %v", n, len(good), err)
		}
	}
	saved, err := bm25.OpenSegment(bytes.NewReader(good[:len(good)-1]), int64(len(good)), label) // truncated since its size was read
	if err == nil {
		_, err = bm25.Combine(len(shelf), bm25.Part{Segment: saved, At: make([]int32, saved.Len())}).SearchAmong("pdf text tables", 9, nil)
	}
	if err != nil && !errors.Is(err, bm25.ErrDamaged) {
		t.Error(err)
	}
	unsorted := encode(t, bm25.NewSegment(func(yield func(uint64, bm25.Doc) bool) { _ = yield(2, shelf[0]) && yield(1, shelf[1]) }))
	if _, err := bm25.OpenSegment(bytes.NewReader(unsorted), int64(len(unsorted)), label); !errors.Is(err, bm25.ErrDamaged) {
		t.Errorf("unsorted keys: %v", err)
	}
}

// FuzzOpenSegment checks that a damaged segment is an error or gives the hits of
// the undamaged one, and that nothing that it contains causes a panic. Half of
// the runs repair the checksums, so that the content itself is read.
func FuzzOpenSegment(f *testing.F) {
	docs := randomDocs(rand.New(rand.NewPCG(3, 3)), 90)
	good := encode(f, bm25.NewSegment(keyed(0, docs)))
	want := bm25.New(slices.Values(docs))
	queries := randomQueries(rand.New(rand.NewPCG(4, 4)), docs)
	f.Add(uint32(0), []byte("x"), false)
	f.Add(uint32(20), []byte{0xff, 0xff, 0xff, 0xff}, true)
	for i := range uint32(40) {
		f.Add(i*uint32(len(good)/40), []byte{0xff, 0xff, 0xff, 0xff, 0x0f}, i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, at uint32, change []byte, repair bool) {
		b := slices.Clone(good)
		copy(b[int(at)%len(b):], change)
		if repair {
			bm25.RepairChecksums(b, len(label))
		}
		s, err := bm25.OpenSegment(bytes.NewReader(b), int64(len(b)), label)
		if err != nil {
			return
		}
		if s.Len() > len(b) {
			t.Fatalf("%d texts in %d bytes", s.Len(), len(b))
		}
		position := make([]int32, s.Len())
		for i := range position {
			position[i] = int32(i)
		}
		part := bm25.Part{Segment: s, At: position}
		x := bm25.Combine(s.Len(), part)
		for _, q := range queries {
			got, err := x.SearchAmong(q, 20, nil)
			if err == nil && !repair && !slices.Equal(got, want.Search(q, 20)) {
				t.Fatalf("%q: got %v, want %v", q, got, want.Search(q, 20))
			}
		}
		if merged, err := bm25.Merge(s.Len(), part); err == nil && !repair && !bytes.Equal(encode(t, merged), good) {
			t.Fatal("a damaged segment was merged")
		}
	})
}
