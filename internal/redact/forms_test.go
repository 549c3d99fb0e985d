package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/redact"
)

// Whatever encodes a value, one of its forms is in the result.
func TestForms(t *testing.T) {
	quoted := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, value := range []string{"hunter2-and-more", `p@ss "w0rd" & <more>/+`, "the köy of 𝄞 music", "line one\nline two"} {
		for what, text := range map[string]string{
			"plain":         "it is " + value + " here",
			"hex":           hex.EncodeToString([]byte(value)),
			"query":         "https://h/?x=" + url.QueryEscape(value),
			"path":          "https://h/" + url.PathEscape(value) + "/x",
			"lower escapes": strings.ReplaceAll(strings.ReplaceAll(url.QueryEscape(value), "%2F", "%2f"), "%3C", "%3c"),
			"JSON":          quoted(map[string]string{"key": value}),
			"JSON in JSON":  quoted(quoted(value)),
			"HTML":          html.EscapeString(value),
		} {
			// Other encoders leave other characters alone, but not these.
			if what == "lower escapes" && strings.ContainsAny(text, "ABCDEF") || what == "JSON in JSON" && strings.ContainsAny(value, "&<>") {
				continue
			}
			if !slices.ContainsFunc(redact.Forms(value), func(f string) bool { return strings.Contains(text, f) }) {
				t.Errorf("%q in %s is not found: %s", value, what, text)
			}
		}
		for before := range 4 {
			for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
				text := encoding.EncodeToString([]byte("user"[:before] + value + ":x"))
				if !slices.ContainsFunc(redact.Forms(value), func(f string) bool { return strings.Contains(text, f) }) {
					t.Errorf("%q after %d bytes is not found in %s", value, before, text)
				}
			}
		}
	}
	if got := redact.Forms("short"); got != nil {
		t.Errorf("forms of a short value: %q", got)
	}
	if got := redact.Forms(`the köy`); !slices.Contains(got, `the k\u00f6y`) {
		t.Errorf("%q lacks the form in ASCII", got)
	}
}

// Base64 text that is broken over lines contains the forms of a value once its lines are
// joined. Other text stays as it is.
func TestJoinLines(t *testing.T) {
	const value = "correct-horse-battery-staple"
	encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", 41) + value + strings.Repeat("y", 50)))
	has := func(text string) bool {
		return slices.ContainsFunc(redact.Forms(value), func(f string) bool { return strings.Contains(text, f) })
	}
	for _, newline := range []string{"\n", "\r\n", "\n    ", `\n`, `\r\n`} {
		text := "key:" + newline + encoded[:64] + newline + encoded[64:] + newline
		if got := redact.JoinLines(text, has); has(text) || !has(got) || !strings.HasPrefix(got, "key:"+newline) {
			t.Errorf("the lines of %q are %q", text, got)
		}
		if got := redact.JoinLines(text, func(string) bool { return false }); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	for _, text := range []string{"", "short\nlines", "one line of " + encoded} {
		if got := redact.JoinLines(text, func(string) bool { return true }); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// A finder finds what strings.Contains finds.
func TestFinder(t *testing.T) {
	values := []string{"secret-one", "secret-two", "secret", "short", "another", "secret-one-and-more"}
	for _, text := range []string{"", "secre", "secret", "a secret-one, and another", "secret-one-and-more short", "nothing"} {
		found := map[int]int{}
		redact.NewFinder(values...).Find(text, func(i int) { found[i]++ })
		for i, v := range values {
			want := 0
			if len(v) >= redact.MinLength {
				want = strings.Count(text, v)
			}
			if found[i] != want {
				t.Errorf("%q: found %q %d times, want %d", text, v, found[i], want)
			}
		}
	}
	redact.NewFinder().Find("no values", func(int) { t.Error("found something") })
}

func BenchmarkFinder(b *testing.B) {
	var values []string
	for i := range 10_000 {
		values = append(values, fmt.Sprintf("%d-of-ten-thousand", i))
	}
	f, text := redact.NewFinder(values...), strings.Repeat("the tides of the sea, ", 1<<16)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		f.Find(text, func(int) {})
	}
}

// Values with the same start are found as if they were compared one by one, and long ones
// that occur at each position are found once.
func TestFinderOfSameStarts(t *testing.T) {
	var values []string
	for n := range 30 {
		values = append(values, "aaaaaa"+strings.Repeat("a", n), strings.Repeat("a", 8+n%3)+"b", fmt.Sprintf("aaaaaa-%d", n))
	}
	values = append(values, strings.Repeat("a", 5000)+"b", strings.Repeat("a", 5000), strings.Repeat("a", 5001)+"c")
	f := redact.NewFinder(values...)
	for _, text := range []string{"", "aaaaaa", strings.Repeat("a", 12), "aaaaaa-1", "aaaaaa-29 aaaaaaaaab", "xx" + strings.Repeat("a", 5002) + "c", strings.Repeat("a", 20_000)} {
		var got []int
		f.Find(text, func(i int) { got = append(got, i) })
		slices.Sort(got)
		var want []int
		for i, v := range values {
			if strings.Contains(text, v) {
				want = append(want, i)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%.20q (%d): found %v, want %v", text, len(text), got, want)
		}
	}
}

// A text full of starts of many long values is searched in bounded time: comparing each
// of them at each position would take hours.
func TestFinderOfLongSameStarts(t *testing.T) {
	var values []string
	for n := range 200 {
		values = append(values, strings.Repeat("a", 60_000)+fmt.Sprint(n))
	}
	n := 0
	redact.NewFinder(values...).Find(strings.Repeat("a", 4<<20)+"7", func(int) { n++ })
	if n != 1 {
		t.Errorf("%d values are found", n)
	}
}
