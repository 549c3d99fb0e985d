package installed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// lockReader reads a lockfile token by token, to report the position of each
// problem and to detect repeated fields, which merges may produce. The input
// must be valid JSON.
type lockReader struct {
	src  []byte
	pos  int // offset after the last token
	lock *Lockfile
	err  LockfileError

	counters bool // whether entries may have counters
}

func (r *lockReader) addProblem(where, format string, args ...any) {
	if len(r.err.Problems) == MaxProblems {
		r.err.Omitted++
		return
	}
	line := lineAt(r.src, r.pos)
	r.err.Problems = append(r.err.Problems, LockfileProblem{line, where, fmt.Sprintf(format, args...)})
}

func (r *lockReader) readLockfile() {
	skills := false
	r.readObject("", func(key string) {
		switch key {
		case "version":
			r.skipValue()
		case "skills":
			skills = true
			r.readObject("skills", r.readEntry)
		default:
			r.rejectField(key)
		}
	})
	if !skills {
		r.addProblem("skills", "is missing")
	}
}

// readEntry reads the entry of a single skill.
func (r *lockReader) readEntry(name string) {
	at := "skills." + fieldPath(name)
	if err := checkName(name); err != nil {
		r.addProblem(at, "is not a valid name of a skill directory")
	}
	if len(r.lock.Skills) == MaxSkills {
		r.addProblem(at, "exceeds the limit of %d skills", MaxSkills)
		r.skipValue()
		return
	}
	var e Entry
	texts := map[string]*string{"ref": &e.Ref, "commit": &e.Commit, "skillVersion": &e.Version, "digest": &e.Digest, "key": &e.Key}
	r.readObject(at, func(key string) {
		switch text, ok := texts[key]; {
		case ok:
			*text = r.readText(at + "." + key)
		case key == "from":
			r.readLocation(at+".from", &e.From)
		case key == "files":
			e.Files = r.readFiles(at + ".files")
		case r.counters && key == "counter":
			e.Counter = r.readCounter(at + ".counter")
		case r.counters && key == "highestCounter":
			e.HighestCounter = r.readCounter(at + ".highestCounter")
		case r.counters && key == "signed":
			e.Signed = r.readTime(at + ".signed")
		default:
			r.rejectField(at + "." + fieldPath(key))
		}
	})
	switch {
	case len(e.Files) == 0:
		r.addProblem(at+".files", "is empty")
	case computeDigest(e.Files) != e.Digest:
		r.addProblem(at+".digest", "does not match the files")
	case e.Counter > e.HighestCounter:
		r.addProblem(at+".highestCounter", "is lower than counter")
	case e.Counter > 0 && e.Key == "":
		r.addProblem(at+".counter", "requires key")
	}
	r.lock.Skills[name] = e
}

func (r *lockReader) readFiles(at string) map[string]string {
	files := map[string]string{}
	r.readObject(at, func(p string) {
		if why := pathError(p); why != "" {
			r.addProblem(at+"."+fieldPath(p), "is not a valid path: %s", why)
		}
		hash, why := r.tryText()
		if why == "" && !skillfile.IsHash(hash) {
			why = "is not a SHA-256 in lower-case hex"
		}
		if files[p] = hash; why != "" {
			r.rejectValue(at+"."+fieldPath(p), why)
		}
	})
	return files
}

func (r *lockReader) readLocation(at string, l *remote.Location) {
	r.readObject(at, func(key string) {
		at := at + "." + fieldPath(key)
		switch key {
		case "kind":
			l.Kind = remote.Kind(r.readText(at))
		case "url":
			if l.URL = r.readText(at); hasPassword(l.URL) {
				r.addProblem(at, "must not contain a password")
			}
		case "dir":
			if l.Dir = r.readText(at); l.Dir != "" && !fs.ValidPath(l.Dir) {
				r.addProblem(at, "is outside the source of the skill")
			}
		case "ref":
			l.Ref = r.readText(at)
		default:
			r.rejectField(at)
		}
	})
	switch l.Kind {
	case remote.Git, remote.Archive, remote.File, remote.Index, remote.Local:
	default:
		r.addProblem(at+".kind", "is %q, which is not a valid kind of location", truncate(string(l.Kind)))
	}
	if l.URL == "" {
		r.addProblem(at+".url", "is missing")
	}
}

func hasPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return false
	}
	_, has := u.User.Password()
	return has
}

// readCounter reads the counter of a signature.
func (r *lockReader) readCounter(at string) uint64 {
	n, err := strconv.ParseUint(string(r.peekNumber()), 10, 64)
	if err != nil || n == 0 || n > maxCounter {
		r.addProblem(at, "is not an integer from 1 to %d", uint64(maxCounter))
	}
	r.skipValue()
	return n
}

// peekNumber returns the digits at the start of the next token.
func (r *lockReader) peekNumber() []byte {
	rest := r.src[r.tokenStart():]
	if n := bytes.IndexAny(rest, " \t\r\n,]}"); n >= 0 {
		return rest[:n]
	}
	return rest
}

// readTime reads a time in UTC with whole seconds.
func (r *lockReader) readTime(at string) time.Time {
	text := r.readText(at)
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.UTC().Format(time.RFC3339) != text {
		r.addProblem(at, "is not a time in UTC")
	}
	return t.UTC()
}

// readObject reads an object. It calls field for each key; field must read the
// value.
func (r *lockReader) readObject(at string, field func(key string)) {
	if r.peekByte() != '{' {
		r.addProblem(at, "is not an object")
		r.skipValue()
		return
	}
	r.readToken(1)
	seen := map[string]bool{}
	for r.peekByte() != '}' {
		key := r.readString()
		if seen[key] {
			r.addProblem(strings.TrimPrefix(at+"."+fieldPath(key), "."), "is repeated")
		}
		seen[key] = true
		field(key)
	}
	r.readToken(1)
}

// readText reads a string that must not contain line breaks.
func (r *lockReader) readText(at string) string {
	s, why := r.tryText()
	if why != "" {
		r.rejectValue(at, why)
	}
	return s
}

const notString = "is not a string"

// tryText is like readText, but returns the problem instead of reporting it
// with [lockReader.rejectValue]. For thousands of files, computing positions
// would take longer than reading.
func (r *lockReader) tryText() (s, why string) {
	if r.peekByte() != '"' {
		return "", notString
	}
	s = r.readString()
	if len(s) > maxText || strings.ContainsFunc(s, unicode.IsControl) {
		return s, fmt.Sprintf("is longer than %d bytes, or more than one line", maxText)
	}
	return s, ""
}

// rejectValue reports a problem returned by tryText, and skips the rest of the
// value.
func (r *lockReader) rejectValue(at, why string) {
	if r.addProblem(at, "%s", why); why == notString {
		r.skipValue()
	}
}

func (r *lockReader) rejectField(at string) {
	r.addProblem(at, "is unknown")
	r.skipValue()
}

// peekByte returns the first byte of the next token, or 0 at the end.
func (r *lockReader) peekByte() byte {
	if i := r.tokenStart(); i < len(r.src) {
		return r.src[i]
	}
	return 0
}

// tokenStart returns the offset of the next token, after white space and
// separators.
func (r *lockReader) tokenStart() int {
	i := r.pos
	for i < len(r.src) && strings.IndexByte(" \t\r\n:,", r.src[i]) >= 0 {
		i++
	}
	return i
}

// readToken consumes and returns the n bytes of the next token.
func (r *lockReader) readToken(n int) []byte {
	from := r.tokenStart()
	r.pos = min(from+n, len(r.src))
	return r.src[from:r.pos]
}

func (r *lockReader) readString() string {
	from := r.tokenStart()
	n := 1
	for from+n < len(r.src) && r.src[from+n] != '"' {
		if r.src[from+n] == '\\' {
			n++
		}
		n++
	}
	quoted := r.readToken(n + 1)
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // the JSON is valid
	return s
}

// skipValue skips a value of any type.
func (r *lockReader) skipValue() {
	for depth := 0; ; {
		switch r.peekByte() {
		case 0:
			return
		case '"':
			r.readString()
		case '{', '[':
			r.readToken(1)
			depth++
		case '}', ']':
			r.readToken(1)
			depth--
		default: // a number, true, false or null
			n := bytes.IndexAny(r.src[r.tokenStart():], " \t\r\n,]}")
			r.readToken(max(n, 1))
		}
		if depth == 0 {
			return
		}
	}
}

// fieldPath formats an untrusted key for LockfileProblem.Field.
func fieldPath(key string) string {
	if skillname.IsPortable(key) {
		return key
	}
	return fmt.Sprintf("%q", truncate(key))
}

// computeDigest returns the skill digest of files, which maps paths to hashes.
func computeDigest(files map[string]string) string {
	m := make(skill.Manifest, 0, len(files))
	for p, hash := range files {
		m = append(m, skill.File{Path: p, SHA256: hash})
	}
	slices.SortFunc(m, func(a, b skill.File) int { return strings.Compare(a.Path, b.Path) })
	return m.Digest()
}

// pathError returns the reason why a path is not portable, or "" if it is.
func pathError(p string) string {
	if _, why := skillpath.Check(p); why != "" {
		return why
	}
	for part := range strings.SplitSeq(p, "/") {
		if skillpath.IsIgnored(part) {
			return "skills ignore files with this name"
		}
	}
	return ""
}
