package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/redact"
)

// Whatever a server writes: events are within the limit, and nothing is made up.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: message\nid: 1\nretry: 10\ndata: {}\n\n"), 100)
	f.Add([]byte("data: a\r\ndata: b\r\n\r\n: comment\n\n"), 100)
	f.Add([]byte("data: "+strings.Repeat("x", 200)+"\n\n"), 100)
	f.Fuzz(func(t *testing.T, in []byte, limit int) {
		limit = 1 + int(uint(limit)%1000)
		err := readEvents(bytes.NewReader(in), limit, func(e serverEvent) error {
			if len(e.data) > limit+2 {
				t.Errorf("an event of %d bytes, with a limit of %d", len(e.data), limit)
			}
			for _, line := range bytes.Split(e.data, []byte("\n")) {
				if !bytes.Contains(in, line) {
					t.Errorf("%q is not in the input", line)
				}
			}
			return nil
		})
		if err == nil {
			t.Error("a stream without an end")
		}
	})
}

// Whatever a process writes: each line is a message, noise, or too long.
func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`+"\nnoise\n"), 100)
	f.Add([]byte(`[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]`+"\n"), 100)
	f.Add([]byte(strings.Repeat("x", 5000)+"\n{"+strings.Repeat("y", 5000)), 10)
	f.Fuzz(func(t *testing.T, in []byte, limit int) {
		limit = 1 + int(uint(limit)%10_000)
		r := bufio.NewReaderSize(bytes.NewReader(in), 16)
		lines := 0
		for {
			line, err := readLine(r, limit)
			if len(line) > max(limit, 4*maxNoiseLine) {
				t.Errorf("a line of %d bytes, with a limit of %d", len(line), limit)
			}
			if line = bytes.TrimSpace(line); len(line) > 0 {
				for _, m := range decodeLine(line) {
					if m == nil {
						t.Error("a message that is none")
					}
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, errTooBig) {
					t.Errorf("error = %v", err)
				}
				return
			}
			if lines++; lines > len(in)+1 {
				t.Fatal("more lines than bytes")
			}
		}
	})
}

func TestScrub(t *testing.T) {
	c := &Config{Headers: map[string]string{"Authorization": "Bearer abcdefgh"}, Env: map[string]string{"API_KEY": "12345678", "LANG": "en_US.UTF-8"}}
	for in, want := range map[string]string{
		"sent abcdefgh and 12345678 in en_US.UTF-8":            "sent ••• and ••• in en_US.UTF-8",
		`Post "https://me:pw@host.example/a/b?token=x": EOF`:   `Post "https://host.example/…": EOF`,
		"dial wss://host.example:8443, then https://a.example": "dial wss://host.example:8443, then https://a.example",
	} {
		if got := redactText(c, in); got != want {
			t.Errorf("scrub(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestSecretsSplitAtTruncation(t *testing.T) {
	c := &Config{hidden: []string{"0123456789", "wxyz"}}
	for in, want := range map[string]string{
		"456789 is the end":        "••• is the end",
		"it begins with 012345678": "it begins with •••",
		"789 of 012":               "789 of 012",
		"0123456789 wxyz":          "••• •••",
		"":                         "",
	} {
		if got := redactFragment(c, in); got != want {
			t.Errorf("concealCut(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLogsHideSecrets(t *testing.T) {
	var b strings.Builder
	log := slog.New(&redactHandler{slog.NewTextHandler(&b, nil), &Config{hidden: []string{"0123456789"}}})
	log.With("a", "0123456789").WithGroup("g").Warn("m 0123456789", "b", errors.New("e 0123456789"), slog.Group("c", "d", "0123456789"), "n", 7)
	if got := b.String(); strings.Contains(got, "0123456789") || strings.Count(got, redact.Marker) != 4 || !strings.Contains(got, "g.n=7") {
		t.Errorf("log = %q", got)
	}
}
