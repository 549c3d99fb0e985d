package installed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// lockReader reads valid JSON token by token. It can therefore report the
// position of every problem and detect repeated fields, which merges may
// produce. It relies on encoding/json having validated the input.
type lockReader struct {
	src  []byte
	at   int // offset after the last token
	lock *Lockfile
	err  LockfileError
}

func (r *lockReader) problem(where, format string, args ...any) {
	if len(r.err.Problems) == MaxProblems {
		r.err.Omitted++
		return
	}
	line := lineAt(r.src, r.at)
	r.err.Problems = append(r.err.Problems, LockfileProblem{line, where, fmt.Sprintf(format, args...)})
}

func (r *lockReader) read() {
	skills := false
	r.object("", func(key string) {
		switch key {
		case "version":
			r.skip()
		case "skills":
			skills = true
			r.object("skills", r.entry)
		default:
			r.unknown(key)
		}
	})
	if !skills {
		r.problem("skills", "is missing")
	}
}

// entry reads one skill.
func (r *lockReader) entry(name string) {
	at := "skills." + fieldPath(name)
	if err := checkName(name); err != nil {
		r.problem(at, "cannot be the name of a skill's directory")
	}
	if len(r.lock.Skills) == MaxSkills {
		r.problem(at, "exceeds the limit of %d skills", MaxSkills)
		r.skip()
		return
	}
	var e Entry
	texts := map[string]*string{"ref": &e.Ref, "commit": &e.Commit, "skillVersion": &e.Version, "digest": &e.Digest, "key": &e.Key}
	r.object(at, func(key string) {
		switch text, ok := texts[key]; {
		case ok:
			*text = r.text(at + "." + key)
		case key == "from":
			r.location(at+".from", &e.From)
		case key == "files":
			e.Files = r.files(at + ".files")
		default:
			r.unknown(at + "." + fieldPath(key))
		}
	})
	switch {
	case len(e.Files) == 0:
		r.problem(at+".files", "is empty")
	case digestOf(e.Files) != e.Digest:
		r.problem(at+".digest", "does not match the files")
	}
	r.lock.Skills[name] = e
}

func (r *lockReader) files(at string) map[string]string {
	files := map[string]string{}
	r.object(at, func(p string) {
		if why := wrongPath(p); why != "" {
			r.problem(at+"."+fieldPath(p), "is not a valid path: %s", why)
		}
		hash, why := r.value()
		if why == "" && !isHash(hash) {
			why = "is no SHA-256 in lower-case hex"
		}
		if files[p] = hash; why != "" {
			r.wrong(at+"."+fieldPath(p), why)
		}
	})
	return files
}

func (r *lockReader) location(at string, l *remote.Location) {
	r.object(at, func(key string) {
		at := at + "." + fieldPath(key)
		switch key {
		case "kind":
			l.Kind = remote.Kind(r.text(at))
		case "url":
			if l.URL = r.text(at); hasPassword(l.URL) {
				r.problem(at, "contains a password, which must not be in a file that others read")
			}
		case "dir":
			if l.Dir = r.text(at); l.Dir != "" && !fs.ValidPath(l.Dir) {
				r.problem(at, "leads out of the skill's source")
			}
		case "ref":
			l.Ref = r.text(at)
		default:
			r.unknown(at)
		}
	})
	switch l.Kind {
	case remote.Git, remote.Archive, remote.File, remote.Index, remote.Local:
	default:
		r.problem(at+".kind", "is %q, which is not a kind of location", clip(string(l.Kind)))
	}
	if l.URL == "" {
		r.problem(at+".url", "is missing")
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

// object reads an object and calls field for the value of each key.
func (r *lockReader) object(at string, field func(key string)) {
	if r.next() != '{' {
		r.problem(at, "is not an object")
		r.skip()
		return
	}
	r.readToken(1)
	seen := map[string]bool{}
	for r.next() != '}' {
		key := r.string()
		if seen[key] {
			r.problem(strings.TrimPrefix(at+"."+fieldPath(key), "."), "is repeated")
		}
		seen[key] = true
		field(key)
	}
	r.readToken(1)
}

// text reads a string of one line.
func (r *lockReader) text(at string) string {
	s, why := r.value()
	if why != "" {
		r.wrong(at, why)
	}
	return s
}

const noText = "is no text"

// value works like text, but returns the problem for [lockReader.wrong] instead
// of reporting it. Computing positions costs more than reading, for thousands
// of files.
func (r *lockReader) value() (s, why string) {
	if r.next() != '"' {
		return "", noText
	}
	s = r.string()
	if len(s) > maxText || strings.ContainsFunc(s, unicode.IsControl) {
		return s, fmt.Sprintf("is longer than %d bytes, or more than one line", maxText)
	}
	return s, ""
}

// wrong reports the problem that value returned and skips what value did not
// read.
func (r *lockReader) wrong(at, why string) {
	if r.problem(at, "%s", why); why == noText {
		r.skip()
	}
}

func (r *lockReader) unknown(at string) {
	r.problem(at, "is unknown")
	r.skip()
}

// next returns the first byte of the next token, or 0 at the end.
func (r *lockReader) next() byte {
	if i := r.start(); i < len(r.src) {
		return r.src[i]
	}
	return 0
}

// start returns the offset of the next token, after white space and separators.
func (r *lockReader) start() int {
	i := r.at
	for i < len(r.src) && strings.IndexByte(" \t\r\n:,", r.src[i]) >= 0 {
		i++
	}
	return i
}

// readToken reads the n bytes of the next token.
func (r *lockReader) readToken(n int) []byte {
	from := r.start()
	r.at = min(from+n, len(r.src))
	return r.src[from:r.at]
}

// string reads a string.
func (r *lockReader) string() string {
	from := r.start()
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
	_ = json.Unmarshal(quoted, &s) // valid JSON
	return s
}

// skip skips a value.
func (r *lockReader) skip() {
	for depth := 0; ; {
		switch r.next() {
		case 0:
			return
		case '"':
			r.string()
		case '{', '[':
			r.readToken(1)
			depth++
		case '}', ']':
			r.readToken(1)
			depth--
		default: // a number, true, false or null
			n := bytes.IndexAny(r.src[r.start():], " \t\r\n,]}")
			r.readToken(max(n, 1))
		}
		if depth == 0 {
			return
		}
	}
}

// fieldPath formats an untrusted key for the Field of a problem.
func fieldPath(key string) string {
	if skillname.IsPortable(key) {
		return key
	}
	return fmt.Sprintf("%q", clip(key))
}

func isHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// digestOf returns the digest of files by path.
func digestOf(files map[string]string) string {
	m := make(skill.Manifest, 0, len(files))
	for p, hash := range files {
		m = append(m, skill.File{Path: p, SHA256: hash})
	}
	slices.SortFunc(m, func(a, b skill.File) int { return strings.Compare(a.Path, b.Path) })
	return m.Digest()
}

// wrongPath returns the reason why a path is not valid on every system, or ""
// if it is valid.
func wrongPath(p string) string {
	if _, why := skillpath.Check(p); why != "" {
		return why
	}
	for part := range strings.SplitSeq(p, "/") {
		if skillpath.IsIgnored(part) {
			return "it is no part of any skill"
		}
	}
	return ""
}
