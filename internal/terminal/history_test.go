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
		if err := h.add(input{text: text}); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	h = open(t, path)
	var got []string
	for in, ok := h.move(-1, input{text: "now"}); ok; in, ok = h.move(-1, input{}) {
		got = append(got, in.text)
	}
	h.move(1, input{})
	last, _ := h.move(1, input{})
	if want := []string{"two\nlines", "one"}; fmt.Sprint(got) != fmt.Sprint(want) || last.text != "now" {
		t.Errorf("it gives %q and then %q, want %q", got, last.text, want)
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
	if n := len(h.past); n == 0 || n > maxHistory || !strings.HasPrefix(h.past[n-1].text, "999") {
		t.Errorf("there are %d", n)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > maxHistoryBytes {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	if err := h.add(input{text: strings.Repeat("y", maxRemembered+1)}); err != nil || !strings.HasPrefix(h.past[len(h.past)-1].text, "y") {
		t.Errorf("a long text is not recalled; %v", err)
	}
	if h = open(t, path); strings.HasPrefix(h.past[len(h.past)-1].text, "y") {
		t.Error("a text that is too long is stored")
	}
	for range 10 {
		h.remember(input{text: strings.Repeat("z", maxHistoryMemory/2)})
		h.remember(input{text: strings.Repeat("x", maxHistoryMemory/2)})
	}
	if n := len(h.past); n > 3 {
		t.Errorf("%d large texts are in memory", n)
	}
}
