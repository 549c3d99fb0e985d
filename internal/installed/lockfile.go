package installed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/remote"
)

// LockfileName is the name of the lockfile in a skills directory.
const LockfileName = "loadout.lock"

// Limits on a lockfile.
const (
	MaxLockfileBytes = 16 << 20
	MaxSkills        = 10_000
	MaxProblems      = 20 // maximum number of reported problems
	maxText          = 4096
	maxCounter       = 1<<53 - 1
)

// Versions of the format. A lockfile has the lower version if no skill in it
// has a counter, so that earlier versions of this program can read it.
const (
	lockVersion             = 2
	lockVersionWithoutCount = 1
)

// Lockfile is the content of loadout.lock.
type Lockfile struct {
	Skills map[string]Entry // by directory name
}

// Entry is the lockfile record of an installed skill.
type Entry struct {
	From    remote.Location `json:"from"`
	Ref     string          `json:"ref,omitempty"` // full name of the installed branch or tag
	Commit  string          `json:"commit,omitempty"`
	Version string          `json:"skillVersion,omitempty"` // version in SKILL.md
	Digest  string          `json:"digest"`                 // digest of Files, see [skill.Manifest.Digest]
	Key     string          `json:"key,omitempty"`          // public key of the signature
	// Counter is the counter of the signature, and HighestCounter the highest
	// one that this lockfile has recorded for the skill. If they differ, the
	// user accepted the older version. Both are 0 if the signature has no
	// counter.
	Counter        uint64 `json:"counter,omitempty"`
	HighestCounter uint64 `json:"highestCounter,omitempty"`
	// Signed is the time in the signature. It is zero if the signature has no
	// counter.
	Signed time.Time `json:"signed,omitzero"`
	// Files maps the paths of the skill's files to their SHA-256 in hex.
	Files map[string]string `json:"files"`
}

// lockfileJSON is the JSON format of the lockfile.
type lockfileJSON struct {
	Version int              `json:"version"`
	Skills  map[string]Entry `json:"skills"`
}

// Encode returns the content of the lockfile. Equal lockfiles have equal
// content. It has one line per file and no installation times, so that version
// control systems can merge it. If [ParseLockfile] would reject the content,
// Encode returns the same error.
func (l *Lockfile) Encode() ([]byte, error) {
	skills := l.Skills
	if skills == nil {
		skills = map[string]Entry{}
	}
	data, err := plainjson.Indented(lockfileJSON{l.version(), skills})
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", LockfileName, err)
	}
	if _, err := ParseLockfile(data); err != nil {
		return nil, fmt.Errorf("invalid lockfile: %w", err)
	}
	return data, nil
}

// version returns the lowest format version that can represent the skills.
func (l *Lockfile) version() int {
	for _, e := range l.Skills {
		if e.HighestCounter > 0 || e.Counter > 0 || !e.Signed.IsZero() {
			return lockVersion
		}
	}
	return lockVersionWithoutCount
}

// clone returns a deep copy of the lockfile.
func (l *Lockfile) clone() *Lockfile {
	out := &Lockfile{Skills: make(map[string]Entry, len(l.Skills))}
	for name, e := range l.Skills {
		e.Files = maps.Clone(e.Files)
		out.Skills[name] = e
	}
	return out
}

// readLock returns the lockfile in the opened directory and its text. If the
// file does not exist, the lockfile is empty. The caller must not modify the
// result.
func (d *Dir) readLock(root *os.Root) (*Lockfile, []byte, error) {
	return readLockAt(root, LockfileName, d.parse)
}

// parse is like ParseLockfile but caches the last result, because verifying
// many skills reads the lockfile once per skill.
func (d *Dir) parse(text []byte) (*Lockfile, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.parsed != nil && bytes.Equal(text, d.text) {
		return d.parsed, nil
	}
	lock, err := ParseLockfile(text)
	if err == nil {
		d.text, d.parsed = text, lock
	}
	return lock, err
}

func readLockAt(root *os.Root, path string, parse func([]byte) (*Lockfile, error)) (*Lockfile, []byte, error) {
	data, err := readNoFollow(root, path, MaxLockfileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return &Lockfile{Skills: map[string]Entry{}}, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", LockfileName, err)
	}
	l, err := parse(data)
	return l, data, err
}

// readNoFollow reads at most limit+1 bytes of a file below root. It rejects
// symlinks.
func readNoFollow(root *os.Root, path string, limit int64) ([]byte, error) {
	info, err := root.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would block
		return nil, fmt.Errorf("not a regular file: %s", path)
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// ParseLockfile parses a lockfile. If any part is invalid, it returns no
// lockfile and a [*LockfileError] with the positions of the problems.
func ParseLockfile(data []byte) (*Lockfile, error) {
	whole := func(line int, what string) *LockfileError {
		return &LockfileError{Problems: []LockfileProblem{{Line: line, Message: what}}}
	}
	if len(data) > MaxLockfileBytes {
		return nil, whole(0, fmt.Sprintf("more than %d bytes", MaxLockfileBytes))
	}
	if line := conflictLine(data); line > 0 {
		e := whole(line, "contains Git conflict markers; for each skill keep the whole entry of one side")
		e.Conflict = true
		return nil, e
	}
	if !utf8.Valid(data) {
		return nil, whole(0, "not UTF-8")
	}
	var head struct{ Version json.RawMessage }
	if err := json.Unmarshal(data, &head); err != nil {
		if se, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, whole(lineAt(data, int(se.Offset)), "not JSON: "+printable.OneLine(se.Error()))
		}
		return nil, whole(0, "not a JSON object")
	}
	switch v := string(head.Version); {
	case v == "":
		return nil, whole(0, "version is missing")
	case v != fmt.Sprint(lockVersion) && v != fmt.Sprint(lockVersionWithoutCount):
		e := whole(0, fmt.Sprintf("unsupported version %s; update loadout", truncate(v)))
		e.Newer = true
		return nil, e
	}
	r := &lockReader{src: data, counters: string(head.Version) == fmt.Sprint(lockVersion), lock: &Lockfile{Skills: map[string]Entry{}}}
	r.readLockfile()
	if len(r.err.Problems) > 0 {
		return nil, &r.err
	}
	return r.lock, nil
}

// conflictLine returns the line number of the first Git conflict marker, or 0.
// No line of a valid lockfile starts with a conflict marker.
func conflictLine(data []byte) int {
	n := 0
	for line := range bytes.Lines(data) {
		if n++; bytes.HasPrefix(line, []byte("<<<<<<<")) || bytes.HasPrefix(line, []byte(">>>>>>>")) {
			return n
		}
	}
	return 0
}

func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(offset, len(data))], []byte("\n"))
}

// truncate shortens untrusted text for an error message.
func truncate(s string) string {
	s = printable.OneLine(s)
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

// Names returns the sorted names of the skills.
func (l *Lockfile) Names() []string { return slices.Sorted(maps.Keys(l.Skills)) }
