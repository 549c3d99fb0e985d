package seal_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/seal"
	"github.com/loadout-dev/loadout/sandbox"
)

func redactor(t testing.TB, values ...string) *seal.Redactor {
	t.Helper()
	var secrets []sandbox.Secret
	for i, v := range values {
		secrets = append(secrets, sandbox.NewSecret(string(rune('A'+i)), v))
	}
	r, err := seal.NewRedactor(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// inPieces is what becomes of a text that is written a few bytes at a time.
func inPieces(t testing.TB, r *seal.Redactor, text string, size int) string {
	t.Helper()
	var out bytes.Buffer
	w := r.Writer(&out)
	for piece := range slices.Chunk([]byte(text), size) {
		if n, err := w.Write(piece); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestSecretsAreReplacedHoweverTheyCome(t *testing.T) {
	r := redactor(t, "ABCDEF", "EFGHIJ", "xxABCDEFyy", "short", "aaaaaa", "ABCDEF")
	for text, want := range map[string]string{
		"":                         "",
		"nothing":                  "nothing",
		"-ABCDEF-":                 "-[secret A]-",
		"ABCDEF":                   "[secret A]",
		"ABCDEFABCDEF":             "[secret A][secret A]",
		"-ABCDEFGHIJ-":             "-[secret A]-", // both, as one has the beginning of the other
		"-xxABCDEFyy-":             "-[secret C]-",
		"-xxABCDEFy-":              "-xx[secret A]y-",
		"-xxABCDEFGHIJ":            "-xx[secret A]",
		"ABCDEFEFGHIJ":             "[secret A][secret B]",
		"-ABCDE":                   "-ABCDE",
		"ABCDABCDEF":               "ABCD[secret A]",
		"short":                    "short",
		"baaaaaab":                 "b[secret E]b",
		"baaaaab":                  "baaaaab",
		strings.Repeat("a", 1000):  "[secret E]",
		"é\xffABCDEF\x00\xff":      "é\xff[secret A]\x00\xff",
		"aaaaaaABCDEFGHIJxxABCDEF": "[secret E][secret A]xx[secret A]",
	} {
		if got := r.Text(text); got != want {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
		for size := 1; size <= len(text); size++ {
			if got := inPieces(t, r, text, size); got != want {
				t.Errorf("%.40q in pieces of %d: %q, want %q", text, size, got, want)
			}
		}
	}
}

func TestWhatMayBeASecretAloneIsHeldBack(t *testing.T) {
	var out bytes.Buffer
	w := redactor(t, "ABCDEF").Writer(&out)
	for _, step := range [][2]string{{"one AB", "one "}, {"C two", "one ABC two"}, {"ABCDE", "one ABC two"}, {"F", "one ABC two[secret A]"}, {"A", "one ABC two[secret A]"}} {
		if _, err := w.Write([]byte(step[0])); err != nil || out.String() != step[1] {
			t.Errorf("after %q: %q, want %q, %v", step[0], out.String(), step[1], err)
		}
	}
	if err := w.Close(); err != nil || !strings.HasSuffix(out.String(), "]A") {
		t.Errorf("closed: %q, %v", out.String(), err)
	}
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("a closed writer takes more")
	}
}

// A secret that goes on for ever takes no memory.
func TestASecretWithoutEndIsDropped(t *testing.T) {
	var out bytes.Buffer
	w := redactor(t, "aaaaaa").Writer(&out)
	piece := bytes.Repeat([]byte("a"), 1<<20)
	for range 3 {
		if _, err := w.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Write([]byte("b")); err != nil || out.String() != "[secret A]b" {
		t.Errorf("%.40q, %v", out.String(), err)
	}
}

func TestEncodedSecretsAreReplaced(t *testing.T) {
	for _, value := range []string{"hunter22", "p&ss<w>\"o\\r/d ü+=\n", `ends with "`, "~tilde(and)*stars*'", "\xfe\xff\xfe\xff\xfe\xff?>?>"} {
		r := redactor(t, value)
		js, err := json.Marshal(map[string]string{"v": value})
		if err != nil {
			t.Fatal(err)
		}
		basic := http.Header{}
		req := http.Request{Header: basic}
		req.SetBasicAuth("user", value)
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", value)
		texts := map[string]string{
			"JSON": string(js), "log": log.String(), "query": url.Values{"v": {value}}.Encode(), "path": url.PathEscape(value),
			"lower": strings.ToLower(url.QueryEscape("ü"+value)) + url.QueryEscape(value), "Basic": basic.Get("Authorization"),
			"browser": strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(url.QueryEscape(value)),
		}
		for before := range 6 {
			for after := range 4 {
				whole := []byte("uvwxyz"[:before] + value + "1234"[:after])
				for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
					texts["base64 "+enc.EncodeToString(whole)] = enc.EncodeToString(whole)
				}
			}
		}
		for name, text := range texts {
			if got := r.Text(text); !strings.Contains(got, "[secret A]") {
				t.Errorf("%s of %q: %q", name, value, got)
			}
		}
	}
}

func TestRedactorIsBounded(t *testing.T) {
	if _, err := seal.NewRedactor(sandbox.NewSecret("A", strings.Repeat("x", 1<<20))); err == nil {
		t.Error("any length is taken")
	}
	r, err := seal.NewRedactor()
	if err != nil || r.Text("all") != "all" {
		t.Error("no secrets", err)
	}
}

type refusing struct{}

func (refusing) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestErrorsOfTheWriterBelowAreReported(t *testing.T) {
	w := redactor(t, "ABCDEF").Writer(refusing{})
	if _, err := w.Write([]byte("ABC")); err != nil {
		t.Errorf("nothing was to be said yet: %v", err)
	}
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("no error of a write")
	}
	if _, err := w.Write([]byte("ABC")); err != nil {
		t.Error(err)
	}
	if w.Close() == nil {
		t.Error("no error of the close")
	}
}

// written are all forms of a secret that no other encoding than base64 changes: what
// its encodings have in common, whatever its neighbours are.
func written(secret string) []string {
	forms := []string{secret}
	for before := range 3 {
		low := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", before) + secret + "\x00\x00"))
		high := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\xff", before) + secret + "\xff\xff"))
		var common []byte
		for i := range low {
			if low[i] == high[i] {
				common = append(common, low[i])
			}
		}
		forms = append(forms, string(common), strings.NewReplacer("+", "-", "/", "_").Replace(string(common)))
	}
	return forms
}

// FuzzRedactor: what is left is every byte that is in no secret, however the text is
// cut.
func FuzzRedactor(f *testing.F) {
	f.Add("the key is hunter22 and", "hunter22", "22-and", 5)
	f.Add("aaaaaaaaaaaab", "aaaaaab", "aaaaaa", 1)
	f.Add("ababababcababab", "ababab", "bababc", 3)
	f.Add("abcdefghij", "bcdefg", "abcdefgh", 3)
	f.Add("Basic dXNlcjpodW50ZXIyMg==", "hunter22", "abcdefgh", 3)
	f.Fuzz(func(t *testing.T, text, one, two string, size int) {
		plain := func(s string) bool {
			return len(s) >= 6 && len(s) < 100 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
		}
		if !plain(one) || !plain(two) || len(text) > 2000 || strings.ContainsAny(text, "[]") {
			return
		}
		r := redactor(t, one, two)
		got := r.Text(text)
		if cut := inPieces(t, r, text, max(1, size%9)); cut != got {
			t.Errorf("at once %q, in pieces %q", got, cut)
		}
		hidden := make([]bool, len(text))
		for _, form := range append(written(one), written(two)...) {
			for i := 0; i+len(form) <= len(text); i++ {
				if text[i:i+len(form)] == form {
					for j := range form {
						hidden[i+j] = true
					}
				}
			}
		}
		var want strings.Builder
		for i := range len(text) {
			if !hidden[i] {
				want.WriteByte(text[i])
			}
		}
		if left := strings.NewReplacer("[secret A]", "", "[secret B]", "").Replace(got); left != want.String() {
			t.Errorf("%q without %q and %q: %q, want %q", text, one, two, left, want.String())
		}
	})
}

func ExampleRedactor() {
	r, err := seal.NewRedactor(sandbox.NewSecret("API_KEY", "hunter22"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Text("GET /?key=hunter22"))
	fmt.Println(r.Text("Authorization: Basic dXNlcjpodW50ZXIyMg=="))
	// Output:
	// GET /?key=[secret API_KEY]
	// Authorization: Basic dXNlcjp[secret API_KEY]g==
}

func BenchmarkRedactor(b *testing.B) {
	var secrets []string
	for i := range 26 {
		secrets = append(secrets, strings.Repeat(string(rune('a'+i))+"7Fq-", 10))
	}
	r := redactor(b, secrets...)
	text := []byte(strings.Repeat("A line of a log, or of an answer, that has no secret in it at all. ", 1000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Bytes(text)
	}
}
