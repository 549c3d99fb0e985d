package mcpserver

import (
	"fmt"
	"net/url"
	"path"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

const (
	scheme      = "skill://"
	extensionID = "io.modelcontextprotocol/skills"
)

// view is a snapshot as the Skills extension serves it: flat, every skill at
// a URI of its own that ends in its name. It also keeps what is told of the
// snapshot, once somebody asked.
type view struct {
	snap     *catalog.Snapshot
	entries  []*catalog.Entry          // served, in order of precedence
	uris     map[string]string         // key of the skill → root URI
	byPath   map[string]*catalog.Entry // skill-path → skill
	inside   map[string]bool           // every path above a skill-path
	unserved []Unserved

	once sync.Once
	told told
}

// Unserved is a skill that the Skills extension cannot serve. It works through
// the tools all the same.
type Unserved struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

func newView(snap *catalog.Snapshot) *view {
	v := &view{snap: snap, uris: map[string]string{}, byPath: map[string]*catalog.Entry{}, inside: map[string]bool{}}
	winners := map[string]*catalog.Entry{}
	for _, e := range snap.Skills() {
		winners[e.Name] = e
	}
	at := map[string]*catalog.Entry{}
	for e := range snap.All() {
		at[e.Key()] = e
	}
	for e := range snap.All() {
		if why := unportable(e); why != "" {
			v.unserved = append(v.unserved, Unserved{e.Name, e.Path, why})
			continue
		}
		v.entries = append(v.entries, e)
		p := v.place(e, winners, at)
		v.byPath[p], v.uris[e.Key()] = e, scheme+escapePath(p)
		for up := path.Dir(p); up != "."; up = path.Dir(up) {
			v.inside[up] = true
		}
	}
	return v
}

// unportable says why a skill cannot be served: the extension demands that it
// conforms to the specification, as every consumer would check.
func unportable(e *catalog.Entry) string {
	switch {
	case !e.Named:
		return "its frontmatter has no name; see loadout validate"
	case !skill.PortableName(e.Name):
		return fmt.Sprintf("its name is not 1 to 64 lower-case letters, digits and single hyphens; name it %s", skill.Slug(e.Name))
	case !e.Verbatim:
		return "its frontmatter had to be repaired, so it cannot be served as it is written; see loadout validate"
	case e.File() != skill.FileName:
		return fmt.Sprintf("its file is named %s; name it %s", e.File(), skill.FileName)
	}
	return ""
}

// place chooses the skill-path: below the path of a skill that encloses it,
// else its name, else its name below its origin, made unique. No skill is
// placed inside another one that does not hold its files.
func (v *view) place(e *catalog.Entry, winners, at map[string]*catalog.Entry) string {
	if p := v.nested(e, at); p != "" && v.byPath[p] == nil {
		return p
	}
	if winners[e.Name] == e && v.free(e.Name) {
		return e.Name
	}
	top := e.Origin
	if winners[top] != nil { // or it could be a directory of that skill
		top = "from." + top
	}
	for _, p := range []string{top, path.Join(top, path.Dir(e.Dir)), path.Join(top, e.Dir)} {
		if p += "/" + e.Name; v.free(p) {
			return p
		}
	}
	for i := 2; ; i++ {
		if p := fmt.Sprintf("%s/%d/%s", top, i, e.Name); v.free(p) {
			return p
		}
	}
}

// nested is the path of a skill below the one whose directory encloses it, ""
// where there is none or it would not end in its name.
func (v *view) nested(e *catalog.Entry, at map[string]*catalog.Entry) string {
	if path.Base(e.Dir) != e.Name || e.Dir == "." {
		return ""
	}
	for dir := path.Dir(e.Dir); ; dir = path.Dir(dir) {
		if outer := at[e.Origin+"/"+dir]; outer != nil {
			uri := v.uris[outer.Key()]
			if uri == "" {
				return ""
			}
			rel := strings.TrimPrefix(e.Dir, dir+"/")
			root, _ := unescapePath(strings.TrimPrefix(uri, scheme))
			return root + "/" + rel
		}
		if dir == "." {
			return ""
		}
	}
}

// free reports whether nothing is at p, above it or below it.
func (v *view) free(p string) bool {
	if v.inside[p] {
		return false
	}
	for ; p != "."; p = path.Dir(p) {
		if v.byPath[p] != nil {
			return false
		}
	}
	return true
}

// uriOf returns the root URI of a skill, "" where it is not served.
func (v *view) uriOf(key string) string { return v.uris[key] }

// find splits a URI into the skill that holds it, the longest one that does,
// and the path inside; "" is the skill's root.
func (v *view) find(uri string) (*catalog.Entry, string, bool) {
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok || len(rest) > 4096 {
		return nil, "", false
	}
	full, ok := unescapePath(rest)
	if !ok {
		return nil, "", false
	}
	for p, more := full, true; more; {
		if e := v.byPath[p]; e != nil {
			return e, strings.TrimPrefix(full[len(p):], "/"), true
		}
		i := strings.LastIndexByte(p, '/')
		p, more = p[:max(i, 0)], i > 0
	}
	return nil, "", false
}

// escapePath writes a path as part of a URI.
func escapePath(p string) string {
	parts := strings.Split(p, "/")
	for i, s := range parts {
		parts[i] = strings.ReplaceAll(url.PathEscape(s), ":", "%3A")
	}
	return strings.Join(parts, "/")
}

// unescapePath is the inverse. It refuses what is no plain path, escaped or
// not: parts that are empty, dots or hold a separator, and a query.
func unescapePath(p string) (string, bool) {
	if strings.ContainsAny(p, "?#") {
		return "", false
	}
	parts := strings.Split(p, "/")
	for i, s := range parts {
		s, err := url.PathUnescape(s)
		if err != nil || s == "" || s == "." || s == ".." || strings.ContainsAny(s, "/\x00") || !utf8.ValidString(s) {
			return "", false
		}
		parts[i] = s
	}
	return strings.Join(parts, "/"), true
}

// Unserved lists the skills that the Skills extension cannot serve, and why.
func (s *Server) Unserved() []Unserved { return s.view().unserved }
