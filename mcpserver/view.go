package mcpserver

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

const (
	scheme      = "skill://"
	extensionID = "io.modelcontextprotocol/skills"
)

// view is a snapshot as the Skills extension serves it: flat, every skill at
// a URI of its own that ends in its name.
type view struct {
	snap     *catalog.Snapshot
	entries  []*catalog.Entry          // served, in order of precedence
	uris     map[string]string         // key of the skill → root URI
	byPath   map[string]*catalog.Entry // skill-path → skill
	unserved []Unserved
}

// Unserved is a skill that the Skills extension cannot serve. It works through
// the tools all the same.
type Unserved struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

func newView(snap *catalog.Snapshot) *view {
	v := &view{snap: snap, uris: map[string]string{}, byPath: map[string]*catalog.Entry{}}
	winners := map[*catalog.Entry]bool{}
	for _, e := range snap.Skills() {
		winners[e] = true
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
	}
	return v
}

// unportable says why a skill cannot be served: the extension demands that it
// conforms to the specification, as every consumer would check.
func unportable(e *catalog.Entry) string {
	switch {
	case !skill.PortableName(e.Name):
		return fmt.Sprintf("its name is not 1 to 64 lower-case letters, digits and single hyphens; name it %s", skill.Slug(e.Name))
	case !e.Verbatim:
		return "its frontmatter had to be repaired, so it cannot be served as it is written; see loadout validate"
	case !e.Named:
		return "its frontmatter has no name; see loadout validate"
	}
	return ""
}

// place chooses the skill-path: below the path of a skill that encloses it,
// else its name, else its name below its origin, made unique.
func (v *view) place(e *catalog.Entry, winners map[*catalog.Entry]bool, at map[string]*catalog.Entry) string {
	var candidates []string
	for dir := path.Dir(e.Dir); path.Base(e.Dir) == e.Name && e.Dir != "."; dir = path.Dir(dir) {
		if outer := at[e.Origin+"/"+dir]; outer != nil {
			if uri := v.uris[outer.Key()]; uri != "" {
				rel := e.Dir
				if dir != "." {
					rel = strings.TrimPrefix(e.Dir, dir+"/")
				}
				candidates = append(candidates, unescapePath(strings.TrimPrefix(uri, scheme))+"/"+rel)
			}
			break
		}
		if dir == "." {
			break
		}
	}
	if winners[e] {
		candidates = append(candidates, e.Name)
	}
	parent := path.Join(e.Origin, path.Dir(e.Dir))
	candidates = append(candidates, e.Origin+"/"+e.Name, parent+"/"+e.Name, path.Join(e.Origin, e.Dir)+"/"+e.Name)
	for _, c := range candidates {
		if v.byPath[c] == nil {
			return c
		}
	}
	for i := 2; ; i++ {
		if c := fmt.Sprintf("%s/%d/%s", parent, i, e.Name); v.byPath[c] == nil {
			return c
		}
	}
}

// uriOf returns the root URI of a skill, "" where it is not served.
func (v *view) uriOf(key string) string { return v.uris[key] }

// find splits a URI into the skill that holds it, the longest one that does,
// and the path inside; "" is the skill's root.
func (v *view) find(uri string) (*catalog.Entry, string, bool) {
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok || len(rest) > 4096 || strings.ContainsAny(rest, "?#") {
		return nil, "", false
	}
	full := unescapePath(rest)
	for p := full; ; p = path.Dir(p) {
		if e := v.byPath[p]; e != nil {
			return e, strings.TrimPrefix(strings.TrimPrefix(full, p), "/"), true
		}
		if !strings.Contains(p, "/") {
			return nil, "", false
		}
	}
}

// escapePath writes a path as part of a URI.
func escapePath(p string) string {
	parts := strings.Split(p, "/")
	for i, s := range parts {
		parts[i] = strings.ReplaceAll(url.PathEscape(s), ":", "%3A")
	}
	return strings.Join(parts, "/")
}

// unescapePath is the inverse; what is not escaped right stays as it is.
func unescapePath(p string) string {
	if s, err := url.PathUnescape(p); err == nil {
		return s
	}
	return p
}

// Unserved lists the skills that the Skills extension cannot serve, and why.
func (s *Server) Unserved() []Unserved { return s.view().unserved }
