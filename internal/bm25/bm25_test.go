package bm25_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/bm25"
)

var shelf = []bm25.Doc{
	{Name: "pdf-reading", Description: "Read PDF files: extract text, tables and figures from a PDF, rasterize PDF pages."},
	{Name: "xlsx", Description: "Create and edit spreadsheets with formulas.", Body: "Also converts a workbook to PDF."},
	{Name: "pdf", Description: "Fill forms, merge and split documents."},
	{Name: "text-to-speech", Description: "Turn writing into voice.", Tags: []string{"audio", "Ton & Töne"}},
	{Name: "gitHubIssues", Description: "Triage the bug tracker; uses the HTTPServer class."},
	{Name: "数据分析", Description: "分析销售数据，生成图表。"},
	{Name: "k8s_deploy", Description: "Roll out to Kubernetes clusters."},
	{Name: "c-plus-plus", Description: "Review C++ for memory errors."},
	{Name: "csharp", Description: "Review C# for style."},
	{Name: "the-who", Description: "Rock band trivia."},
	{Name: "データ変換", Description: "Ｅｘｃｅｌのファイルを変換します。"},
	{Name: "", Description: "Nameless yet useful for haikus."},
}

func names(docs []bm25.Doc, hits []bm25.Hit) []string {
	out := []string{}
	for _, h := range hits {
		out = append(out, docs[h.Doc].Name)
	}
	return out
}

func TestSearch(t *testing.T) {
	x := bm25.New(slices.Values(shelf))
	for _, c := range []struct {
		about, query string
		want         string // names found, best first
	}{
		{"an exact name comes first", "pdf", "pdf pdf-reading xlsx"},
		{"whatever its case and signs", " $PDF! ", "pdf pdf-reading xlsx"},
		{"and however it is written", "k8s deploy", "k8s_deploy"},
		{"joined", "k8sDeploy", "k8s_deploy"},
		{"or run together", "texttospeech", "text-to-speech"},
		{"even if it is made of words that are not searched", "the who", "the-who"},
		{"the beginning of a name finds it", "gith", "gitHubIssues"},
		{"a part of a name does", "speech", "text-to-speech"},
		{"a name inside a longer query counts for more", "merge or extract pdf", "pdf pdf-reading"},

		{"endings do not matter", "merging document", "pdf"},
		{"nor on the other side", "extraction of a figure", "pdf-reading"},
		{"camelCase names are taken apart", "issue", "gitHubIssues"},
		{"and capitals from words", "http", "gitHubIssues"},
		{"camelCase is kept together", "githubissues", "gitHubIssues"},
		{"a camelCase word that nobody wrote is taken apart", "BugTracker", "gitHubIssues"},
		{"tags are searched", "audio", "text-to-speech"},
		{"accents do not matter", "tone", "text-to-speech"},
		{"nor on the other side", "clústers", "k8s_deploy"},
		{"nor does width", "excel", "データ変換"},
		{"bodies are searched, and come after descriptions", "workbook", "xlsx"},
		{"a mark alone does not", "\u0301 \u037a merge", "pdf"},
		{"nor an emoji", "⚠️ merge", "pdf"},
		{"languages with signs are words", "review C++", "c-plus-plus csharp"},
		{"all of them", "review C#", "csharp c-plus-plus"},
		{"a text without a name is found", "haiku", ""},

		{"unspaced writing is found by parts of it", "销售图表", "数据分析"},
		{"next to other writing", "用Excel变换", "データ変換"},
		{"by one character", "图", "数据分析"},
		{"across signs that join kana", "データ", "データ変換"},

		{"a misspelling is forgiven", "kuberentes", "k8s_deploy"},
		{"two in a long word", "spreadshets formullas", "xlsx"},
		{"none in a short one", "forn", "-"},
		{"the beginning of a word will do", "kube", "k8s_deploy"},
		{"a word nobody wrote is ignored", "triage qqqqqqqq", "gitHubIssues"},

		{"an empty query finds nothing", "", "-"},
		{"signs find nothing", "?! -- …", "-"},
		{"words that say nothing find nothing", "how to do this with an", "-"},
		{"unknown words find nothing", "zymurgy", "-"},
	} {
		want := strings.Fields(c.want)
		if c.want == "" {
			want = []string{""}
		} else if c.want == "-" {
			want = []string{}
		}
		if diff := cmp.Diff(want, names(shelf, x.Search(c.query, 10))); diff != "" {
			t.Errorf("%s: %q (-want +got)\n%s", c.about, c.query, diff)
		}
	}
}

func TestSearchLimit(t *testing.T) {
	var docs []bm25.Doc
	for i := range 50 {
		docs = append(docs, bm25.Doc{Name: fmt.Sprint("n", i), Description: "steam" + strings.Repeat(" engine", 1+i%7)})
	}
	x := bm25.New(slices.Values(docs))
	all := x.Search("steam engine", 1000)
	if len(all) != 50 {
		t.Fatalf("found %d of 50", len(all))
	}
	for _, limit := range []int{-1, 0, 1, 2, 7, 49, 50, 51} {
		want := all[:max(0, min(limit, len(all)))]
		if got := x.Search("steam engine", limit); !slices.Equal(got, want) {
			t.Errorf("limit %d: got %v, want %v", limit, got, want)
		}
	}
}

func TestWeakMatchesAreOmitted(t *testing.T) {
	docs := []bm25.Doc{
		{Name: "fuzzy-match", Description: "Fuzzy match vendor names."},
		{Name: "brand", Description: "Choose names and colours for a brand, and much else that is none of our business here."},
		{Name: "names", Description: "Choose names."},
	}
	got := names(docs, bm25.New(slices.Values(docs)).Search("fuzzy match of vendor names", 10))
	if want := []string{"fuzzy-match"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOnlyHeadOfBodyIsIndexed(t *testing.T) {
	body := strings.Repeat("é", bm25.BodyHead-7) + " early late"
	x := bm25.New(slices.Values([]bm25.Doc{{Name: "a", Body: body}, {Name: "b"}}))
	if got := x.Search("early", 1); len(got) != 1 {
		t.Error("the head is not read")
	}
	if got := x.Search("late", 1); len(got) != 0 {
		t.Error("more than the head is read")
	}
}

// TestBodiesCanBeAddedLater holds the contract for a caller that searches names and descriptions while bodies are read.
func TestBodiesCanBeAddedLater(t *testing.T) {
	bare := slices.Clone(shelf)
	for i := range bare {
		bare[i].Body = ""
	}
	x := bm25.New(slices.Values(bare))
	if diff := cmp.Diff([]string{"pdf", "pdf-reading"}, names(bare, x.Search("pdf", 10))); diff != "" {
		t.Error(diff)
	}
	if got := x.Search("workbook", 10); len(got) != 0 {
		t.Errorf("found %v by a body that was missing", got)
	}
}

func TestEqualTextsKeepTheirOrder(t *testing.T) {
	docs := slices.Repeat([]bm25.Doc{{Name: "same", Description: "alike"}}, 9)
	for _, query := range []string{"same", "alike"} {
		for i, h := range bm25.New(slices.Values(docs)).Search(query, 5) {
			if h.Doc != i {
				t.Errorf("%s: place %d holds text %d", query, i, h.Doc)
			}
		}
	}
}

func TestOrderOfTextsDoesNotMatter(t *testing.T) {
	docs := library(300)
	queries := []string{docs[7].Name, docs[8].Description, "w3 w5 w8 w12", "w1 w100 w200 w999"}
	x := bm25.New(slices.Values(docs))
	for seed := range uint64(5) {
		mixed := slices.Clone(docs)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		y := bm25.New(slices.Values(mixed))
		for _, q := range queries {
			want, got := scores(docs, x.Search(q, 1000)), scores(mixed, y.Search(q, 1000))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%q (-in order +mixed)\n%s", q, diff)
			}
		}
	}
}

// scores are the scores of texts by name.
func scores(docs []bm25.Doc, hits []bm25.Hit) map[string]float64 {
	m := map[string]float64{}
	for _, h := range hits {
		m[docs[h.Doc].Name] = h.Score
	}
	return m
}

func TestLongQueryIsTruncated(t *testing.T) {
	x := bm25.New(slices.Values(shelf))
	for _, c := range []struct{ about, unit string }{
		{"one word", "a"}, {"many words", "pdf forms "}, {"unknown words", "kubernates "}, {"camelCase", "aB"},
		{"unspaced", "数据"}, {"marks", "e\u0301"}, {"broken UTF-8", "\xff\xfe"},
	} {
		long := strings.Repeat(c.unit, 1<<20/len(c.unit))
		got, want := x.Search(long, 10), x.Search(long[:5000*len(c.unit)], 10)
		if !slices.Equal(got, want) {
			t.Errorf("%s: all of 1 MB is read: got %v, want %v", c.about, got, want)
		}
	}
}

func TestHostileTexts(t *testing.T) {
	long := strings.Repeat("word ", 1<<18)
	docs := []bm25.Doc{
		{Name: long, Description: long, Tags: slices.Repeat([]string{long}, 1000), Body: long},
		{Name: "\xff\x00", Description: strings.Repeat("\u0301", 1<<20)},
		{Name: strings.Repeat("ﷺ", 64)},
		{Name: "word"},
	}
	x := bm25.New(slices.Values(docs))
	if got := x.Search("word", 1); len(got) != 1 || got[0].Doc != 3 {
		t.Errorf("got %v, want the text of that name", got)
	}
}

func TestEmptyIndex(t *testing.T) {
	x := bm25.New(slices.Values([]bm25.Doc(nil)))
	if got := x.Search("anything", 5); got != nil || x.Len() != 0 {
		t.Errorf("found %v among %d", got, x.Len())
	}
}

func TestBodiesAreNotRetained(t *testing.T) {
	before := heap()
	x := bm25.New(func(yield func(bm25.Doc) bool) {
		for i := range 100 {
			if !yield(bm25.Doc{Name: fmt.Sprint("skill", i), Body: strings.Repeat("x", 1<<20)}) {
				return
			}
		}
	})
	if kept := heap() - before; kept > 10<<20 {
		t.Errorf("the index of 100 short names and 100 MB of bodies holds %d MB", kept>>20)
	}
	runtime.KeepAlive(x)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestConcurrentSearch(t *testing.T) {
	docs := library(200)
	x := bm25.New(slices.Values(docs))
	want := x.Search("w1 w2 w3", 20)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 100 {
				x.Search(docs[i].Name, 5)
				if got := x.Search("w1 w2 w3", 20); !slices.Equal(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
			}
		})
	}
	wg.Wait()
}

// library creates n texts whose words have a realistic distribution: few are common,
// most are rare.
func library(n int) []bm25.Doc {
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 8, 40_000)
	words := func(n int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "w%d ", zipf.Uint64())
		}
		return b.String()
	}
	docs := make([]bm25.Doc, n)
	for i := range docs {
		docs[i] = bm25.Doc{Name: fmt.Sprintf("%s%d", words(2), i), Description: words(50), Body: words(400)}
	}
	return docs
}

// FuzzSearch checks that hits are distinct, sorted and repeatable, and that a text with
// a word in its name ranks first for that word unless another text has the same name.
func FuzzSearch(f *testing.F) {
	f.Add("pdf", "Fill forms", "forms", "fill a form")
	f.Add("textToSpeech", "HTTPServer C++", "数据分析", "C# データ x")
	f.Add("é\u0301ﬁ", "\xff", "ǅ İ ß", "ﷺﷺ \u0e33")
	f.Fuzz(func(t *testing.T, name, description, tag, query string) {
		if len(name) > 60 {
			name = name[:60]
		}
		docs := append(slices.Clone(shelf), bm25.Doc{Name: name, Description: description, Tags: []string{tag}, Body: query})
		x := bm25.New(slices.Values(docs))
		for _, q := range []string{query, description, name} {
			hits := x.Search(q, 8)
			if again := x.Search(q, 8); !slices.Equal(hits, again) {
				t.Fatalf("%q: %v, then %v", q, hits, again)
			}
			if len(hits) > 8 {
				t.Fatalf("%q: %d hits", q, len(hits))
			}
			for i, h := range hits {
				if h.Doc < 0 || h.Doc >= len(docs) || !(h.Score > 0) {
					t.Fatalf("%q: hit %v", q, h)
				}
				if i > 0 && (h.Score > hits[i-1].Score || h.Score == hits[i-1].Score && h.Doc <= hits[i-1].Doc) {
					t.Fatalf("%q: %v after %v", q, h, hits[i-1])
				}
			}
		}
		own := x.Search(name, len(docs))
		if len(own) == 0 {
			return // no word in it
		}
		if first := own[0].Doc; first != len(docs)-1 {
			other := bm25.New(slices.Values(docs[len(docs)-1:])).Search(docs[first].Name, 1)
			if len(other) == 0 {
				t.Fatalf("%q found %q first", name, docs[first].Name)
			}
		}
	})
}

func BenchmarkNew(b *testing.B) {
	for _, n := range []int{1_500, 10_000} {
		docs := library(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bm25.New(slices.Values(docs))
			}
		})
	}
}

func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{1_500, 10_000, 50_000} {
		x := bm25.New(slices.Values(library(n)))
		for _, c := range []struct{ name, query string }{
			{"common", "w1 w2 w3 w4 w5 w6 w7 w8"},
			{"rare", "w1000 w2000 w3000 w4000 w5000"},
			{"unknown", "w12x345 wx1234567 w9999999x"},
			{"hostile", strings.Repeat("w1 w22 w333 w4444 w55555 w6x6x6x6x6 ", 1<<15)},
		} {
			b.Run(fmt.Sprint(n, "/", c.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					x.Search(c.query, 20)
				}
			})
		}
	}
}
