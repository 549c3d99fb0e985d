package chat

import (
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
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/filetype"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/internal/steering"
	"github.com/loadout-dev/loadout/internal/terminal"
)

// typeCheckTimeout is the time after which completion offers a file without
// knowing its content.
const typeCheckTimeout = time.Second

// Limits on the files that a message names.
const (
	maxAttached      = 20       // files
	maxAttachedBytes = 64 << 10 // bytes of each file
	maxOfferedFiles  = 50
	maxWalked        = 100_000 // directory entries read to complete a path
	maxWalkDepth     = 8
	maxPendingReads  = 8       // reads that have not returned
	maxTypeChecks    = 200     // offered files whose content is checked
	maxTypeBytes     = 1 << 10 // bytes that such a check reads
)

// attacher reads and completes the files that the user names with @ in a
// message. A relative path is relative to dir. Unless agentOnly is set, the user may
// name any file, even one that the agent cannot read.
type attacher struct {
	dir, home string
	agentDir  string      // directory whose files the agent can read
	agentOnly bool        // whether only those files are attached
	noChecks  atomic.Bool // set after a file did not respond to a check of its content
}

// attacher returns an attacher for the conversation. It resolves relative paths
// in the directory that the user specified or, if there is none, in the current
// directory.
func (t *dialog) attacher() (*attacher, error) {
	dir := t.named
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	return &attacher{dir: dir, home: t.host.Home(), agentDir: t.folder}, nil
}

// attach returns the text of the files that are named with @ in a line. Without a
// screen, a pasted line cannot be distinguished from a typed one, so it must not
// make the chat read more than the agent can read by itself.
func (t *dialog) attach(ctx context.Context, line string, emit func(agent.Event)) (string, error) {
	names := terminal.MentionedFiles(line)
	if len(names) == 0 {
		return "", nil
	}
	a, err := t.attacher()
	if err != nil {
		return "", err
	}
	a.agentOnly = true
	text, notes, err := a.attach(ctx, names)
	for _, n := range notes {
		emit(agent.Event{Type: agent.Notice, Text: n.Text})
	}
	return text, err
}

func (a *attacher) resolve(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok && a.home != "" {
		return filepath.Join(a.home, rest)
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(a.dir, name)
}

// errAgentOnly is returned for a file that the agent itself cannot read.
var errAgentOnly = errors.New("the agent cannot read the file")

// attach returns the content of the named files, as text to append to a message,
// and notes for the user. It does not fail for a file that does not exist, because
// the name may be ordinary text, or for a file that agentOnly excludes. It fails
// for directories and for files that are not text.
func (a *attacher) attach(ctx context.Context, names []string) (string, []terminal.AttachNote, error) {
	if len(names) > maxAttached {
		return "", nil, exit.Errorf(exit.Usage, "name fewer files in a message", "too many files after @ (%d, limit %d)", len(names), maxAttached)
	}
	var text strings.Builder
	var notes []terminal.AttachNote
	for _, name := range names {
		if ctx.Err() != nil {
			return "", nil, context.Cause(ctx)
		}
		f, err := awaitRead(ctx, func() (*attachedFile, error) { return a.read(name) })
		switch {
		case errors.Is(err, fs.ErrNotExist):
			notes = append(notes, terminal.AttachNote{Text: fmt.Sprintf("no file %s; @%s is sent as text", name, name), Warning: true})
			continue
		case errors.Is(err, errAgentOnly):
			notes = append(notes, terminal.AttachNote{Text: fmt.Sprintf("@%s is not attached: without a screen, only files in the directory given with --workspace are", name), Warning: true})
			continue
		case err != nil:
			return "", nil, err
		}
		content, removed := cleanText(f.data)
		size, advice := fmt.Sprintf("%d bytes", f.size), ""
		if int64(len(f.data)) < f.size {
			size = fmt.Sprintf("the first %d of %d bytes", len(f.data), f.size)
			advice = "; for the rest, start the chat with --workspace DIR"
			if a.agentDir != "" && setup.IsInside(a.agentDir, f.path) {
				advice = "; for the rest, ask the agent to read the file"
			}
		}
		size += removed
		changed := ""
		if removed != "" || advice != "" {
			changed = " (" + size + ")"
		}
		notes = append(notes, terminal.AttachNote{Text: fmt.Sprintf("attached %s (%s)%s", f.name, size, advice), Warning: changed != ""})
		fmt.Fprintf(&text, "\n\nFile %s%s:\n\n%s", terminal.Plain(f.name), changed, fenced(content))
	}
	return text.String(), notes, nil
}

// cleanText returns the content of a text file without control or hidden
// characters. removed is text to append to a note to the user: it starts with a
// comma and says how many characters were removed. It is "" if there were none.
func cleanText(data []byte) (text, removed string) {
	text = strings.ReplaceAll(string(data), "\r\n", "\n")
	clean := terminal.Safe(text)
	if clean == text {
		return text, ""
	}
	if n := utf8.RuneCountInString(text) - utf8.RuneCountInString(clean); n > 1 {
		return clean, fmt.Sprintf(", %d control or hidden characters removed", n)
	}
	return clean, ", a control or hidden character removed"
}

// pendingReads limits the number of pending reads. It has an element for each
// read that has not returned.
var pendingReads = make(chan struct{}, maxPendingReads)

// awaitRead returns the result of read, or the cause of ctx if ctx is done
// first. Reading some files, such as device files, may never return.
func awaitRead[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	select {
	case pendingReads <- struct{}{}:
	default:
		return none, exit.Errorf(exit.Failure, "restart the chat, and name other files", "too many files do not respond (%d)", maxPendingReads)
	}
	out := make(chan result, 1)
	go func() {
		defer func() { <-pendingReads }()
		value, err := read()
		out <- result{value, err}
	}()
	select {
	case r := <-out:
		return r.value, r.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// attachedFile is the start of a file.
type attachedFile struct {
	name string // as the user wrote it, without punctuation at its end
	path string
	data []byte
	size int64 // size of the whole file
}

// read returns the start of a text file. If there is no file with this name,
// read tries the name without punctuation at its end.
func (a *attacher) read(name string) (*attachedFile, error) {
	file := a.resolve(name)
	info, err := os.Stat(file)
	if short := strings.TrimRight(name, ".,;:!?)'\"»”…。，；：！？）"); errors.Is(err, fs.ErrNotExist) && short != name && short != "" {
		if found, shortErr := os.Stat(a.resolve(short)); shortErr == nil {
			name, file, info, err = short, a.resolve(short), found, nil
		}
	}
	open := func() (*os.File, error) { return os.Open(file) }
	switch {
	case err != nil && errors.Is(err, fs.ErrNotExist):
		return nil, err
	case a.agentOnly:
		root, inside, err := openRoot(a.agentDir, file)
		if err != nil {
			return nil, errAgentOnly
		}
		defer root.Close()
		if info, err = root.Stat(inside); err != nil {
			return nil, errAgentOnly
		}
		open = func() (*os.File, error) { return root.Open(inside) }
	case err != nil:
		return nil, exit.Errorf(exit.Failure, "name a file that you can read", "attach %s: %w", name, fileerror.Cause(err))
	}
	switch {
	case info.IsDir():
		return nil, exit.Errorf(exit.Usage, "name a file in it; Tab completes its name", "attach %s: is a directory", name)
	case !info.Mode().IsRegular(): // opening a pipe could block
		return nil, exit.Errorf(exit.Usage, "name a regular file", "attach %s: not a regular file", name)
	}
	f, err := open()
	if err != nil {
		return nil, exit.Errorf(exit.Failure, "name a file that you can read", "attach %s: %w", name, fileerror.Cause(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxAttachedBytes))
	if err != nil {
		return nil, exit.Errorf(exit.Failure, "name a file that you can read", "attach %s: %w", name, fileerror.Cause(err))
	}
	size := max(info.Size(), int64(len(data)))
	if int64(len(data)) < size {
		data = trimCut(data)
	}
	if !filetype.IsText(data) {
		return nil, exit.Errorf(exit.Usage, "start the chat with --workspace DIR and let the agent inspect it", "attach %s: not UTF-8 text", name)
	}
	return &attachedFile{name, file, data, size}, nil
}

// openRoot opens dir and returns the path of file in it, without symlinks. It
// fails if file does not exist or is not in dir. The caller closes the root.
func openRoot(dir, file string) (root *os.Root, inside string, err error) {
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, "", err
	}
	if file, err = filepath.EvalSymlinks(file); err != nil {
		return nil, "", err
	}
	if inside, err = filepath.Rel(dir, file); err != nil {
		return nil, "", err
	}
	if !filepath.IsLocal(inside) {
		return nil, "", errAgentOnly
	}
	root, err = os.OpenRoot(dir)
	return root, inside, err
}

// trimCut returns data, the start of a text, without an incomplete character at
// its end.
func trimCut(data []byte) []byte {
	for n := len(data); n > max(len(data)-utf8.UTFMax, 0); n-- {
		if utf8.Valid(data[:n]) {
			return data[:n]
		}
	}
	return data
}

// complete returns the completions of a partly typed path: first the matching
// files in its directory, then other files whose names contain its last
// element, nearest directories first. It omits files that cannot be attached,
// such as pipes and binary files.
func (a *attacher) complete(typed string) []terminal.Choice {
	dir, prefix := path.Split(filepath.ToSlash(typed))
	var out []terminal.Choice
	add := func(name string) {
		if terminal.Plain(name) == name && len(out) < maxOfferedFiles && !slices.ContainsFunc(out, func(c terminal.Choice) bool { return c.Name == name }) {
			out = append(out, terminal.Choice{Name: name})
		}
	}
	checks := maxTypeChecks
	addFile := func(dir, name, rel string) {
		if len(out) < maxOfferedFiles && !a.isBinary(filepath.Join(dir, name), &checks) {
			add(rel)
		}
	}
	budget := maxWalked
	entries := matchEntries(a.resolve(dir), &budget, func(name string, isDir bool) bool {
		return hasPrefixFold(name, prefix) && !isSkippedDir(name, isDir) && (!strings.HasPrefix(name, ".") || strings.HasPrefix(prefix, "."))
	})
	for _, e := range entries {
		switch isDir, ok := attachable(a.resolve(dir), e); {
		case isDir:
			add(dir + e.Name() + "/")
		case ok:
			addFile(a.resolve(dir), e.Name(), dir+e.Name())
		}
	}
	if dir != "" || prefix == "" || strings.HasPrefix(prefix, ".") || strings.HasPrefix(prefix, "~") {
		return out
	}
	for level, depth := []string{""}, 0; len(level) > 0 && depth <= maxWalkDepth; depth++ {
		var next []string
		for _, rel := range level {
			if budget <= 0 || len(out) >= maxOfferedFiles {
				return out
			}
			dir := filepath.Join(a.dir, rel)
			entries := matchEntries(dir, &budget, func(name string, isDir bool) bool {
				return isDir && !isSkippedDir(name, true) && !strings.HasPrefix(name, ".") || !isDir && strings.Contains(strings.ToLower(name), strings.ToLower(prefix))
			})
			for _, e := range entries {
				if e.IsDir() {
					next = append(next, path.Join(rel, e.Name()))
				} else if isDir, ok := attachable(dir, e); ok && !isDir {
					addFile(dir, e.Name(), path.Join(rel, e.Name()))
				}
			}
		}
		level = next
	}
	return out
}

// isBinary reports whether a regular file is known to be binary: by its
// extension or, if that is unknown, by its first bytes. It decrements checks
// when it reads a file, and reads none if checks is 0 or if an earlier file did
// not respond.
func (a *attacher) isBinary(file string, checks *int) bool {
	if filetype.ByName(file) != "" {
		return !filetype.IsTextFile(file, []byte{0})
	}
	if *checks <= 0 || a.noChecks.Load() {
		return false
	}
	*checks--
	ctx, cancel := context.WithTimeout(context.Background(), typeCheckTimeout)
	defer cancel()
	binary, err := awaitRead(ctx, func() (bool, error) { return startsBinary(file), nil })
	if err != nil {
		a.noChecks.Store(true)
	}
	return binary
}

// startsBinary reports whether the first bytes of a file are not text. It does not
// read files of size 0, because they may be device files such as /proc/kmsg, where
// reading waits for data and removes it.
func startsBinary(file string) bool {
	if info, err := os.Stat(file); err != nil || info.Size() == 0 {
		return false
	}
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTypeBytes))
	if len(data) == maxTypeBytes {
		data = trimCut(data)
	}
	return err == nil && !filetype.IsText(data)
}

// attachable reports whether an entry of a directory is a directory or a regular
// file. It follows symbolic links.
func attachable(dir string, e fs.DirEntry) (isDir, ok bool) {
	mode := e.Type()
	if mode&fs.ModeSymlink != 0 {
		info, err := os.Stat(filepath.Join(dir, e.Name()))
		if err != nil {
			return false, false
		}
		mode = info.Mode()
	}
	return mode.IsDir(), mode.IsDir() || mode.IsRegular()
}

// isSkippedDir reports whether an entry is a directory whose files are not
// suggested, because programs generate them.
func isSkippedDir(name string, isDir bool) bool {
	return isDir && (skillpath.IsIgnored(name) || steering.IsDependencyDir(name))
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// matchEntries returns the matching entries of a directory, sorted by name. It
// reads up to budget entries, and subtracts their number from budget.
func matchEntries(dir string, budget *int, match func(name string, isDir bool) bool) []fs.DirEntry {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []fs.DirEntry
	for *budget > 0 {
		some, err := f.ReadDir(min(*budget, 1000))
		*budget -= len(some)
		for _, e := range some {
			if match(e.Name(), e.IsDir()) {
				out = append(out, e)
			}
		}
		if err != nil {
			break
		}
	}
	slices.SortFunc(out, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
	return out
}
