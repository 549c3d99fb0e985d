package terminal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/atomicfile"
)

// Bounds of a history.
const (
	maxHistory      = 500      // inputs
	maxHistoryBytes = 1 << 20  // of its file
	maxRemembered   = 16 << 10 // bytes of one input
)

// History is what a person typed, over conversations, in a file for them alone. Answers
// to questions are no part of it, nor is what begins with a blank. It is not safe for
// concurrent use; several programs may have one file.
type History struct {
	path string
	past []string // the oldest first
	at   int      // that is shown; len(past) is the one being typed
	own  string   // the one being typed
}

// OpenHistory reads a history; there may be none yet.
func OpenHistory(path string) (*History, error) {
	h := &History{path: path}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("read what was typed: %w", err)
	}
	defer f.Close()
	var size int64
	if info, err := f.Stat(); err == nil {
		size = info.Size()
	}
	from := max(size-maxHistoryBytes, 0)
	lines := bufio.NewScanner(io.NewSectionReader(f, from, maxHistoryBytes))
	lines.Buffer(nil, maxHistoryBytes)
	for lines.Scan() {
		var text string
		if json.Unmarshal(lines.Bytes(), &text) == nil && text != "" { // the first line may be cut
			h.remember(text)
		}
	}
	h.at = len(h.past)
	if size > maxHistoryBytes {
		return h, h.shorten()
	}
	return h, nil
}

func (h *History) remember(text string) {
	if n := len(h.past); n > 0 && h.past[n-1] == text {
		return
	}
	h.past = append(h.past, text)
	if n := len(h.past); n > maxHistory {
		h.past = slices.Clone(h.past[n-maxHistory:])
	}
}

// Add keeps an input as the newest.
func (h *History) Add(text string) error {
	h.own = ""
	if text == "" || strings.HasPrefix(text, " ") || len(text) > maxRemembered {
		h.at = len(h.past)
		return nil
	}
	h.remember(text)
	h.at = len(h.past)
	if h.path == "" {
		return nil
	}
	line, err := json.Marshal(text)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return fmt.Errorf("keep what was typed: %w", err)
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep what was typed: %w", err)
	}
	_, err = f.Write(append(line, '\n')) // at once, so that two programs do not mix
	return errors.Join(err, f.Close())
}

// shorten leaves the newest inputs in the file.
func (h *History) shorten() error {
	var b bytes.Buffer
	for _, text := range h.past {
		line, err := json.Marshal(text)
		if err != nil {
			return err
		}
		b.Write(append(line, '\n'))
	}
	if err := atomicfile.Write(h.path, b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("shorten what was typed: %w", err)
	}
	return nil
}

// move goes to an older input for -1 and a newer one for 1, keeping what is typed;
// false is that there is none.
func (h *History) move(by int, typed string) (string, bool) {
	to := h.at + by
	if to < 0 || to > len(h.past) {
		return "", false
	}
	if h.at == len(h.past) {
		h.own = typed
	}
	h.at = to
	if to == len(h.past) {
		return h.own, true
	}
	return h.past[to], true
}
