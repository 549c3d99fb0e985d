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

	"github.com/loadout-dev/loadout/remote"
	"github.com/loadout-dev/loadout/skill"
)

// lockReader reads valid JSON token by token, so that it can tell the places of all
// that is wrong, and see fields that are there twice, as merges leave them. It relies on
// the JSON to be valid, which encoding/json has checked before.
type lockReader struct {
	src  []byte
	at   int // behind the last token
	lock *Lock
	err  LockError
}

func (r *lockReader) problem(where, format string, args ...any) {
	if len(r.err.Problems) == MaxProblems {
		r.err.More++
		return
	}
	line := lineAt(r.src, r.at)
	r.err.Problems = append(r.err.Problems, LockProblem{line, where, fmt.Sprintf(format, args...)})
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
	at := "skills." + place(name)
	if err := checkName(name); err != nil {
		r.problem(at, "cannot be the name of a skill's directory")
	}
	if len(r.lock.Skills) == MaxSkills {
		r.problem(at, "is one more than %d skills", MaxSkills)
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
			r.unknown(at + "." + place(key))
		}
	})
	switch {
	case len(e.Files) == 0:
		r.problem(at+".files", "names no file")
	case digestOf(e.Files) != e.Digest:
		r.problem(at+".digest", "is not that of the files")
	}
	r.lock.Skills[name] = e
}

func (r *lockReader) files(at string) map[string]string {
	files := map[string]string{}
	r.object(at, func(p string) {
		if why := wrongPath(p); why != "" {
			r.problem(at+"."+place(p), "is no path of a file: %s", why)
		}
		hash, why := r.value()
		if why == "" && !isHash(hash) {
			why = "is no SHA-256 in lower-case hex"
		}
		if files[p] = hash; why != "" {
			r.wrong(at+"."+place(p), why)
		}
	})
	return files
}

func (r *lockReader) location(at string, l *remote.Location) {
	r.object(at, func(key string) {
		at := at + "." + place(key)
		switch key {
		case "kind":
			l.Kind = remote.Kind(r.text(at))
		case "url":
			if l.URL = r.text(at); hasPassword(l.URL) {
				r.problem(at, "has a password, which does not belong into a file that others read")
			}
		case "dir":
			if l.Dir = r.text(at); l.Dir != "" && !fs.ValidPath(l.Dir) {
				r.problem(at, "leads out of where the skill comes from")
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
		r.problem(at+".kind", "is %q, which is no kind of place", clip(string(l.Kind)))
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

// object reads an object and calls field for the value of each of its keys.
func (r *lockReader) object(at string, field func(key string)) {
	if r.next() != '{' {
		r.problem(at, "is no object")
		r.skip()
		return
	}
	r.take(1)
	seen := map[string]bool{}
	for r.next() != '}' {
		key := r.string()
		if seen[key] {
			r.problem(strings.TrimPrefix(at+"."+place(key), "."), "is there twice")
		}
		seen[key] = true
		field(key)
	}
	r.take(1)
}

// text reads a string that fits into a line.
func (r *lockReader) text(at string) string {
	s, why := r.value()
	if why != "" {
		r.wrong(at, why)
	}
	return s
}

const noText = "is no text"

// value is text that does not report what is wrong, but returns it for [lockReader.wrong],
// "" for nothing: to say where costs more than to read, for thousands of files.
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

// wrong reports what value returned, and passes over what it has not read.
func (r *lockReader) wrong(at, why string) {
	if r.problem(at, "%s", why); why == noText {
		r.skip()
	}
}

func (r *lockReader) unknown(at string) {
	r.problem(at, "is nothing that this loadout knows")
	r.skip()
}

// next is the byte that the next token begins with, 0 at the end.
func (r *lockReader) next() byte {
	if i := r.start(); i < len(r.src) {
		return r.src[i]
	}
	return 0
}

// start is where the next token begins: behind space, and what separates tokens.
func (r *lockReader) start() int {
	i := r.at
	for i < len(r.src) && strings.IndexByte(" \t\r\n:,", r.src[i]) >= 0 {
		i++
	}
	return i
}

// take reads the n bytes of the next token.
func (r *lockReader) take(n int) []byte {
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
	quoted := r.take(n + 1)
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // it is valid
	return s
}

// skip passes over a value.
func (r *lockReader) skip() {
	for depth := 0; ; {
		switch r.next() {
		case 0:
			return
		case '"':
			r.string()
		case '{', '[':
			r.take(1)
			depth++
		case '}', ']':
			r.take(1)
			depth--
		default: // a number, true, false or null
			n := bytes.IndexAny(r.src[r.start():], " \t\r\n,]}")
			r.take(max(n, 1))
		}
		if depth == 0 {
			return
		}
	}
}

// place is a key of a stranger in the place of a problem.
func place(key string) string {
	if skill.PortableName(key) {
		return key
	}
	return fmt.Sprintf("%q", clip(key))
}

func isHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// digestOf is the digest of files by path.
func digestOf(files map[string]string) string {
	m := make(skill.Manifest, 0, len(files))
	for p, hash := range files {
		m = append(m, skill.File{Path: p, SHA256: hash})
	}
	slices.SortFunc(m, func(a, b skill.File) int { return strings.Compare(a.Path, b.Path) })
	return m.Digest()
}

// wrongPath says why a path cannot be that of a file of a skill on every system,
// "" where it can.
func wrongPath(p string) string {
	if _, why := skill.CheckPath(p); why != "" {
		return why
	}
	for part := range strings.SplitSeq(p, "/") {
		if skill.Ignored(part) {
			return "it is no part of any skill"
		}
	}
	return ""
}
