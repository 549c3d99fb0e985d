package redact_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/loadout-dev/loadout/internal/redact"
)

// stream redacts text in chunks of size bytes.
func stream(r *redact.Redactor, text string, size int) string {
	s := r.Stream()
	var out strings.Builder
	for len(text) > 0 {
		n := min(size, len(text))
		out.Write(s.Write([]byte(text[:n])))
		text = text[n:]
	}
	out.Write(s.Flush())
	return out.String()
}

func TestRedact(t *testing.T) {
	r := redact.New(redact.Secret{Value: "ABCDEF", Replacement: "[a]"}, redact.Secret{Value: "EFGHIJ", Replacement: "[b]"}, redact.Secret{Value: "xxABCDEFyy"},
		redact.Secret{}, redact.Secret{Value: "ABCDEF", Replacement: "[again]"})
	for text, want := range map[string]string{
		"": "", "-ABCDEF-": "-[a]-", "-ABCDEFGHIJ-": "-[a]GHIJ-", "-xxABCDEFyy-": "-•••-", "-xxABCDEF-": "-xx[a]-", "ABCDEFEFGHIJ": "[a][b]", "-ABCDE": "-ABCDE",
	} {
		if got := r.String(text); got != want {
			t.Errorf("String(%q) = %q, want %q", text, got, want)
		}
		if got := string(r.Bytes([]byte(text))); got != want {
			t.Errorf("Bytes(%q) = %q, want %q", text, got, want)
		}
		for size := 1; size <= len(text); size++ {
			if got := stream(r, text, size); got != want {
				t.Errorf("chunks of %d of %q: %q, want %q", size, text, got, want)
			}
		}
	}
}

func TestFragment(t *testing.T) {
	r := redact.Values("0123456789", "wxyz")
	for text, want := range map[string]string{
		"456789 starts": "••• starts", "ends 012345678": "ends •••", "789 is short 012": "789 is short 012", "0123456789 wxyz": "••• •••",
	} {
		if got := r.Fragment(text); got != want {
			t.Errorf("Fragment(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestFoldString(t *testing.T) {
	r := redact.New(redact.Secret{Value: "AbcDef", Replacement: "[secret A]"})
	for text, want := range map[string]string{
		"xabcDEFx.test:443": "x[secret A]x.test:443", "other.test": "other.test", "İabcdef": "[secret A]", "ABCDEF.x": "[secret A].x", "abcdefABCDEF": "[secret A][secret A]", "İ": "İ", "": "",
	} {
		if got := r.FoldString(text); got != want {
			t.Errorf("FoldString(%q) = %q, want %q", text, got, want)
		}
	}
	// A replacement that contains the value must not loop.
	if got := redact.New(redact.Secret{Value: "secret", Replacement: "[secret]"}).FoldString("a secret"); got != "a [secret]" {
		t.Errorf("got %q", got)
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	in := "a hunter22\nhunter\n22 hunter22" + long + "\nend hunter22"
	out, err := io.ReadAll(redact.Lines(iotest.HalfReader(strings.NewReader(in)), redact.Values("hunter22").Bytes))
	if want := "a •••\nhunter\n22 •••" + long + "\nend •••"; err != nil || string(out) != want {
		t.Errorf("%d bytes, want %d, error %v", len(out), len(want), err)
	}
	from, to := io.Pipe()
	go to.Write([]byte("hunter\n")) // a complete line must not wait for the next
	b := make([]byte, 10)
	if n, err := redact.Lines(from, redact.Values("hunter\n22").Bytes).Read(b); err != nil || string(b[:n]) != "hunter\n" {
		t.Errorf("read %q, error %v", b[:n], err)
	}
}

// No secret is left, however the text is cut, and a text without secrets is unchanged.
func FuzzStream(f *testing.F) {
	f.Add("the key is hunter22 and", "hunter22", 5)
	f.Add("aaaaaaaaaaaab", "aaaaaab", 1)
	f.Add("ababababcababab", "ababab", 3)
	f.Fuzz(func(t *testing.T, text, secret string, size int) {
		if len(secret) < redact.MinLength || strings.ContainsAny(secret, "•\xe2\x80\xa2") {
			return
		}
		r := redact.Values(secret)
		for _, got := range []string{stream(r, text, max(1, size%7)), r.String(text), string(r.Bytes([]byte(text)))} {
			if strings.Contains(got, secret) {
				t.Errorf("%q contains the secret %q", got, secret)
			} else if !strings.Contains(text, secret) && got != text {
				t.Errorf("%q became %q", text, got)
			}
		}
	})
}
