package usage

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What is read the quick way is what JSON says.
func FuzzPlainLines(f *testing.F) {
	for _, s := range []string{
		`{"time":"2026-03-01T09:00:00.123Z","face":"mcp","kind":"call","skill":"s","key":"here/s","tool":"s_x__y","tokens":5,"outcome":"ok","ms":10.25}`,
		`{"time":"2026-03-01T09:00:00+01:00"}`, `{"face":"a\u0041"}`, `{"face":"é"}`, `{"face":"a":"b"}`, `{"face":"a","face":"b"}`, `{"ms":1e3}`,
		`{"ms":01}`, `{"ms":0x1p4}`, `{"ms":1_0}`, `{"ms":.5}`, `{"tokens":+1}`, `{"tokens":1.0}`, `{"tokens":null}`, `{"tokens": 1}`, `{"Face":"a"}`, `{"usage":{"input":1}}`, `{"face":"a",}`, `{}`, `{"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := new(decoder).decodePlain(b)
		if !ok {
			return
		}
		var want logLine
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatalf("%q is not a line: %v", b, err)
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
			t.Errorf("%q (-want +got)\n%s", b, diff)
		}
	})
}

// What this package writes is read the quick way, but for models and odd names.
func TestOwnLinesAreReadQuickly(t *testing.T) {
	for _, u := range []Use{
		{Interface: "mcp", Kind: KindLoad, Skill: "pdf", Key: "user/pdf", Tokens: 100, Outcome: OK},
		{Interface: "mcp", Kind: KindCall, Tool: "a__b", Took: 1500 * time.Microsecond, Outcome: Failed},
		{Interface: "run", Kind: KindScript, Skill: "pdf", Key: "user/pdf", Tool: "scripts/a b.py", Took: 40 * time.Hour, Outcome: Refused},
	} {
		u.Time = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
		b, err := u.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := new(decoder).decodePlain(b[:len(b)-1]); !ok {
			t.Errorf("not %s", b)
		}
	}
}

func TestPlainText(t *testing.T) {
	for s, want := range map[string]bool{"": true, " a~": true, "a\\n": false, "a\n": false, "\x7f": false, "é": false, "\x1f": false} {
		if got := plainText([]byte(s)); got != want {
			t.Errorf("%q: %t", s, got)
		}
	}
}

// A line that ends early is not read, whatever its field.
func TestTruncatedLine(t *testing.T) {
	const line = `{"time":"2026-03-01T09:00:00Z","face":"mcp","kind":"load","skill":"pdf","key":"user/pdf","tokens":5,"outcome":"ok"}`
	if _, ok := new(decoder).decodePlain([]byte(line)); !ok {
		t.Fatal("the whole line is not read")
	}
	for n := range len(line) {
		if l, ok := new(decoder).decodePlain([]byte(line[:n])); ok {
			t.Errorf("%s: %+v", line[:n], l)
		}
	}
}

// A long name is cut between characters, and is valid UTF-8 whatever it was.
func TestTruncate(t *testing.T) {
	for _, tt := range []struct {
		in   string
		n    int
		want string
	}{
		{"", 0, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"aé", 2, "a"}, {"aé", 3, "aé"}, {"é", 1, ""}, {"日", 2, ""}, {"a\xffb", 5, "a\uFFFDb"}, {"a\xff", 3, "a"},
	} {
		if got := truncate(tt.in, tt.n); got != tt.want {
			t.Errorf("truncate(%q, %d) = %q, want %q", tt.in, tt.n, got, tt.want)
		}
	}
}

// A line is a use only if each number is one that a program can count.
func TestLinesWithImpossibleNumbers(t *testing.T) {
	const line = `{"time":"2026-03-01T09:00:00Z","face":"mcp","kind":"model","model":"m","outcome":"ok","usage":{"Input":1,"Output":2,"CacheRead":3,"CacheWrite":4}}`
	valid := func(text string) bool {
		var l logLine
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		_, err := l.validate()
		return err == nil
	}
	var l logLine
	if err := json.Unmarshal([]byte(line), &l); err != nil || l.Usage == nil {
		t.Fatal(l, err)
	}
	if !valid(line) {
		t.Error("the line is not valid")
	}
	for i := range 4 {
		bad := l
		u := *l.Usage
		*[]*int{&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite}[i] = -1
		bad.Usage = &u
		if _, err := bad.validate(); err == nil {
			t.Errorf("a negative number %d is valid", i)
		}
	}
	noModel, noUsage := l, l
	noModel.Model, noUsage.Usage = "", nil
	for _, bad := range []logLine{noModel, noUsage} {
		if _, err := bad.validate(); err == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
}
