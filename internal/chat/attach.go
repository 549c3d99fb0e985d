package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/terminal"
)

// Limits on the files that a message names.
const (
	maxAttached      = 20       // files
	maxAttachedBytes = 64 << 10 // bytes of each file
	maxOfferedFiles  = 50
	maxWalked        = 5000 // entries that a search for files visits
	maxWalkDepth     = 8
)

// attacher reads and completes the files that the user names with @ in a
// message. A relative path is relative to dir. The user may name any file, even
// one that the agent cannot read.
type attacher struct{ dir, home string }

// attacher returns the attacher of the conversation: paths are relative to the
// directory that the user named, or to the current one.
func (t *dialog) attacher() (*attacher, error) {
	dir := t.named
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	return &attacher{dir: dir, home: t.host.Home()}, nil
}

// attach returns the text of the files that the user named with @ in a line.
func (t *dialog) attach(ctx context.Context, line string, emit func(agent.Event)) (string, error) {
	names := terminal.MentionedFiles(line)
	if len(names) == 0 {
		return "", nil
	}
	a, err := t.attacher()
	if err != nil {
		return "", err
	}
	text, notices, err := a.attach(ctx, names)
	for _, n := range notices {
		emit(agent.Event{Type: agent.Notice, Text: n})
	}
	return text, err
}

func (a *attacher) resolve(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok && a.home != "" {
		return filepath.Join(a.home, rest)
	}
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.dir, name)
}

// attach returns the content of the named files, as a text to append to a
// message, and notices for the user. It does not fail if a file does not exist,
// because the name may be ordinary text. It fails for directories and for files
// that are not text.
func (a *attacher) attach(ctx context.Context, names []string) (string, []string, error) {
	if len(names) > maxAttached {
		return "", nil, exit.Errorf(exit.Usage, "name fewer files in a message", "too many files after @ (%d, limit %d)", len(names), maxAttached)
	}
	var text strings.Builder
	var notices []string
	for _, name := range names {
		if ctx.Err() != nil {
			return "", nil, context.Cause(ctx)
		}
		shown, data, size, err := a.read(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			notices = append(notices, fmt.Sprintf("no file %s; @%s is sent as text", shown, shown))
			continue
		case err != nil:
			return "", nil, err
		}
		part := ""
		if int64(len(data)) < size {
			part = fmt.Sprintf(", the first %d of %d bytes", len(data), size)
			notices = append(notices, fmt.Sprintf("attached %s%s; for the rest, ask the agent to read it from its directory", shown, part))
		} else {
			notices = append(notices, fmt.Sprintf("attached %s (%d bytes)", shown, size))
		}
		fmt.Fprintf(&text, "\n\nFile %s%s:\n\n%s", terminal.Plain(shown), part, fenced(string(data)))
	}
	return text.String(), notices, nil
}

// read returns the start of a text file and the size of the whole file. If
// there is no file with this name, read tries the name without punctuation at
// its end. shown is the name that was used.
func (a *attacher) read(name string) (shown string, data []byte, size int64, err error) {
	file := a.resolve(name)
	info, err := os.Stat(file)
	if short := strings.TrimRight(name, ".,;:!?)'\"»”…。，；：！？）"); errors.Is(err, fs.ErrNotExist) && short != name && short != "" {
		if found, shortErr := os.Stat(a.resolve(short)); shortErr == nil {
			name, file, info, err = short, a.resolve(short), found, nil
		}
	}
	switch {
	case err != nil && errors.Is(err, fs.ErrNotExist):
		return name, nil, 0, err
	case err != nil:
		return name, nil, 0, exit.Errorf(exit.Failure, "name a file that you can read", "attach %s: %w", name, exit.FileCause(err))
	case info.IsDir():
		return name, nil, 0, exit.Errorf(exit.Usage, "name a file in it; Tab completes its name", "attach %s: is a directory", name)
	case !info.Mode().IsRegular(): // opening a pipe could block
		return name, nil, 0, exit.Errorf(exit.Usage, "name a regular file", "attach %s: not a regular file", name)
	}
	f, err := os.Open(file)
	if err != nil {
		return name, nil, 0, exit.Errorf(exit.Failure, "name a file that you can read", "attach %s: %w", name, exit.FileCause(err))
	}
	defer f.Close()
	if data, err = io.ReadAll(io.LimitReader(f, maxAttachedBytes)); err != nil {
		return name, nil, 0, exit.Errorf(exit.Failure, "name a file that you can read", "attach %s: %w", name, exit.FileCause(err))
	}
	size = max(info.Size(), int64(len(data)))
	for cut := 0; int64(len(data)) < size && cut < utf8.UTFMax && !utf8.Valid(data); cut++ { // drop an incomplete character
		data = data[:len(data)-1]
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return name, nil, 0, exit.Errorf(exit.Usage, "start the chat with --workspace and the directory of the file, and ask the agent to inspect it with a command", "attach %s: not a text file", name)
	}
	return name, data, size, nil
}

// complete returns the files that the user may mean by the start of a path:
// first the files in the directory of that path, then other files whose names
// contain its last part.
func (a *attacher) complete(typed string) []terminal.Choice {
	dir, prefix := path.Split(filepath.ToSlash(typed))
	var out []terminal.Choice
	add := func(name string) {
		if terminal.Plain(name) == name && len(out) < maxOfferedFiles && !slices.ContainsFunc(out, func(c terminal.Choice) bool { return c.Name == name }) {
			out = append(out, terminal.Choice{Name: name})
		}
	}
	for _, e := range readDirStart(a.resolve(dir)) {
		name := e.Name()
		if !hasPrefixFold(name, prefix) || skipped(name, e.IsDir()) || strings.HasPrefix(name, ".") && !strings.HasPrefix(prefix, ".") {
			continue
		}
		if fi, err := os.Stat(filepath.Join(a.resolve(dir), name)); err == nil && fi.IsDir() {
			name += "/"
		}
		add(dir + name)
	}
	if dir != "" || prefix == "" || strings.HasPrefix(prefix, ".") || strings.HasPrefix(prefix, "~") {
		return out
	}
	visited := 0
	_ = filepath.WalkDir(a.dir, func(p string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(a.dir, p)
		if visited++; visited > maxWalked || len(out) >= maxOfferedFiles {
			return fs.SkipAll
		}
		if err != nil || relErr != nil || rel == "." {
			return nil // unreadable directories have no completions
		}
		if d.IsDir() {
			if skipped(d.Name(), true) || strings.HasPrefix(d.Name(), ".") || strings.Count(rel, string(filepath.Separator)) >= maxWalkDepth {
				return fs.SkipDir
			}
			return nil
		}
		if strings.Contains(strings.ToLower(d.Name()), strings.ToLower(prefix)) {
			add(filepath.ToSlash(rel))
		}
		return nil
	})
	return out
}

// skipped reports whether an entry is a directory whose files are not offered,
// because users do not write them.
func skipped(name string, isDir bool) bool {
	return isDir && slices.Contains([]string{".git", ".hg", ".svn", "node_modules", "__pycache__"}, name)
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// readDirStart returns up to maxWalked entries of a directory, sorted by name.
func readDirStart(dir string) []fs.DirEntry {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	all, _ := f.ReadDir(maxWalked)
	slices.SortFunc(all, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
	return all
}
