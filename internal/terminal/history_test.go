package terminal

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func open(t *testing.T, path string) *History {
	t.Helper()
	h, err := OpenHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// What was typed is there in the next conversation, for its owner only; what begins
// with a blank is not.
func TestHistoryPersists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "chat-history")
	h := open(t, path)
	for _, text := range []string{"one", "two\nlines", " not this", "two\nlines"} {
		if err := h.Add(text); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	h = open(t, path)
	var got []string
	for text, ok := h.move(-1, "now"); ok; text, ok = h.move(-1, "") {
		got = append(got, text)
	}
	h.move(1, "")
	last, _ := h.move(1, "")
	if want := []string{"two\nlines", "one"}; fmt.Sprint(got) != fmt.Sprint(want) || last != "now" {
		t.Errorf("it gives %q and then %q, want %q", got, last, want)
	}
}

// The file is limited, and invalid lines are ignored.
func TestHistoryLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chat-history")
	long := strings.Repeat("x", 4000)
	var b strings.Builder
	b.WriteString("no JSON\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "%q\n", fmt.Sprint(i, long))
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	h := open(t, path)
	if n := len(h.past); n == 0 || n > maxHistory || !strings.HasPrefix(h.past[n-1], "999") {
		t.Errorf("there are %d", n)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > maxHistoryBytes {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	if err := h.Add(strings.Repeat("y", maxRemembered+1)); err != nil || strings.HasPrefix(h.past[len(h.past)-1], "y") {
		t.Errorf("a text that is too long is stored; %v", err)
	}
}
