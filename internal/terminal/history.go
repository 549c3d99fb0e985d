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

// Limits of a history.
const (
	maxHistory       = 500      // inputs
	maxHistoryBytes  = 1 << 20  // bytes of the file
	maxRemembered    = 16 << 10 // bytes of one input in the file
	maxHistoryMemory = 4 << 20  // bytes in memory; only the newest input may exceed it
)

// History is the user's input history. It is stored in a file that only this
// user can read. It does not contain answers to prompts or inputs that start
// with a space. A History is not safe for concurrent use, but several processes
// may share the file.
type History struct {
	path  string
	past  []input // oldest first
	at    int     // index of the input that is shown; len(past) is the draft
	draft input   // input that has not been submitted yet
}

// OpenHistory reads a history file. The file need not exist.
func OpenHistory(path string) (*History, error) {
	h := &History{path: path}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("read input history: %w", err)
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
		var in input
		if json.Unmarshal(lines.Bytes(), &in) == nil && in.text != "" { // the first line may be truncated
			h.remember(in)
		}
	}
	h.at = len(h.past)
	if size > maxHistoryBytes {
		return h, h.truncate()
	}
	return h, nil
}

func (h *History) remember(in input) {
	if n := len(h.past); n > 0 && h.past[n-1].text == in.text {
		return
	}
	h.past = append(h.past, in)
	size, keep := 0, len(h.past)
	for ; keep > max(len(h.past)-maxHistory, 0) && size < maxHistoryMemory; keep-- {
		size += len(h.past[keep-1].text)
	}
	h.past = slices.Clone(h.past[keep:])
}

// add appends an input and saves it. It ignores inputs that are empty or start
// with a space, and does not save inputs that are too long.
func (h *History) add(in input) error {
	h.draft = input{}
	if in.text == "" || strings.HasPrefix(in.text, " ") {
		h.at = len(h.past)
		return nil
	}
	h.remember(in)
	h.at = len(h.past)
	if h.path == "" || len(in.text) > maxRemembered {
		return nil
	}
	line, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return fmt.Errorf("save input history: %w", err)
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("save input history: %w", err)
	}
	_, err = f.Write(append(line, '\n')) // a single write, so that lines from two processes do not interleave
	return errors.Join(err, f.Close())
}

// truncate removes the oldest inputs from the file.
func (h *History) truncate() error {
	var b bytes.Buffer
	for _, in := range h.past {
		line, err := json.Marshal(in)
		if err != nil {
			return err
		}
		b.Write(append(line, '\n'))
	}
	if err := atomicfile.Write(h.path, b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("truncate input history: %w", err)
	}
	return nil
}

// move returns the previous input if step is -1, or the next if step is 1. It
// saves typed as the draft. It returns false at either end of the history.
func (h *History) move(step int, typed input) (input, bool) {
	to := h.at + step
	if to < 0 || to > len(h.past) {
		return input{}, false
	}
	if h.at == len(h.past) {
		h.draft = typed
	}
	h.at = to
	if to == len(h.past) {
		return h.draft, true
	}
	return h.past[to], true
}
