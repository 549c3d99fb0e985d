package mcpserver

import (
	"fmt"
	"iter"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
	"unique"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/clientprofile"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/skill"
)

const (
	scheme      = "skill://"
	extensionID = "io.modelcontextprotocol/skills"
)

// view is a snapshot as served by the Skills extension. Each skill has a unique
// URI that ends in its name. The view caches the catalog texts of the snapshot.
type view struct {
	snap *catalog.Snapshot

	textMu sync.Mutex
	// texts holds the catalog texts that clients requested. Equal texts are
	// stored once, because a hub has a server for each user.
	texts map[*clientprofile.Profile]unique.Handle[catalogText]
	hour  int64 // when texts were created, in hours since 1970

	// The following fields are set by index.
	indexOnce sync.Once
	entries   []*catalog.Entry          // served skills, in order of precedence
	uris      map[string]string         // skill key → root URI
	byPath    map[string]*catalog.Entry // skill-path → skill
	inside    map[string]bool           // all parent directories of skill-paths
	unserved  []notServed
}

// notServed is a skill that the Skills extension cannot serve.
type notServed struct {
	entry  *catalog.Entry
	reason string // what to change
}

// served yields the served skills in order of precedence.
func (v *view) served() iter.Seq[*catalog.Entry] {
	if !v.snap.IsFlat() {
		v.indexOnce.Do(v.index)
		return slices.Values(v.entries)
	}
	return func(yield func(*catalog.Entry) bool) {
		for e := range v.snap.All() {
			if unportableReason(e) == "" && !yield(e) {
				return
			}
		}
	}
}

// index assigns a path to each skill that can be served. It is called on first
// use, because most clients use only the tools, which do not need the paths.
func (v *view) index() {
	snap := v.snap
	v.uris, v.byPath, v.inside = map[string]string{}, map[string]*catalog.Entry{}, map[string]bool{}
	winners := map[string]*catalog.Entry{}
	for _, e := range snap.Skills() {
		winners[e.Name] = e
	}
	at := map[string]*catalog.Entry{}
	for e := range snap.All() {
		at[e.Key()] = e
	}
	for e := range snap.All() {
		if e.Server != "" { // only its own server publishes it
			continue
		}
		if why := unportableReason(e); why != "" {
			v.unserved = append(v.unserved, notServed{e, why})
			continue
		}
		v.entries = append(v.entries, e)
		p := v.choosePath(e, winners, at)
		v.byPath[p], v.uris[e.Key()] = e, scheme+escapePath(p)
		for up := path.Dir(p); up != "."; up = path.Dir(up) {
			v.inside[up] = true
		}
	}
}

// unportableReason returns the reason why a skill cannot be served, or "" if it can.
// The extension requires conformance to the specification, which every client
// would check.
func unportableReason(e *catalog.Entry) string {
	switch {
	case !e.HasOwnName:
		return "its frontmatter has no name; see loadout validate"
	case !skillname.IsPortable(e.Name):
		return fmt.Sprintf("its name is not 1 to 64 lower-case letters, digits and single hyphens; name it %s", skillname.Slug(e.Name))
	case !e.Verbatim:
		return "its frontmatter had to be repaired, so it cannot be served as it is written; see loadout validate"
	case e.File() != skill.FileName:
		return fmt.Sprintf("its file is named %s; name it %s", e.File(), skill.FileName)
	}
	return ""
}

// choosePath chooses a unique skill path. It is the path below the enclosing
// skill if there is one, or else the skill's name, or else its name below its
// origin. A skill is never placed inside another that does not contain its
// files.
func (v *view) choosePath(e *catalog.Entry, winners, at map[string]*catalog.Entry) string {
	if p := v.nestedPath(e, at); p != "" && v.byPath[p] == nil {
		return p
	}
	if winners[e.Name] == e && v.isFree(e.Name) {
		return e.Name
	}
	top := e.Origin
	if winners[top] != nil { // the path could be a directory of that skill
		top = "from." + top
	}
	for _, p := range []string{top, path.Join(top, path.Dir(e.Dir)), path.Join(top, e.Dir)} {
		if p += "/" + e.Name; v.isFree(p) {
			return p
		}
	}
	for i := 2; ; i++ {
		if p := fmt.Sprintf("%s/%d/%s", top, i, e.Name); v.isFree(p) {
			return p
		}
	}
}

// nestedPath returns the path of a skill below the enclosing skill. It returns
// "" if there is none or the path would not end in the skill's name.
func (v *view) nestedPath(e *catalog.Entry, at map[string]*catalog.Entry) string {
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

// isFree reports whether there is no skill at p, above it or below it.
func (v *view) isFree(p string) bool {
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

// uriOf returns the root URI of a skill, or "" if the skill is not served.
func (v *view) uriOf(e *catalog.Entry) string {
	if v.snap.IsFlat() {
		if unportableReason(e) != "" {
			return ""
		}
		return scheme + escapePath(v.flatPath(e))
	}
	v.indexOnce.Do(v.index)
	return v.uris[e.Key()]
}

// flatPath is choosePath for a snapshot without nested skills.
func (v *view) flatPath(e *catalog.Entry) string {
	if v.snap.ByName(e.Name) == e {
		return e.Name
	}
	if v.snap.ByName(e.Origin) != nil { // the path could be a directory of that skill
		return "from." + e.Origin + "/" + e.Name
	}
	return e.Origin + "/" + e.Name
}

// skillAt returns the skill with the given path, or nil.
func (v *view) skillAt(p string) *catalog.Entry {
	if !v.snap.IsFlat() {
		v.indexOnce.Do(v.index)
		return v.byPath[p]
	}
	e := v.snap.ByName(p)
	if strings.Contains(p, "/") {
		e = v.snap.ByKey(strings.TrimPrefix(p, "from."))
	}
	if e == nil || unportableReason(e) != "" || v.flatPath(e) != p {
		return nil
	}
	return e
}

// maxURIPath is the maximum length of the unescaped path of a resource URI in bytes.
const maxURIPath = 4096

// find splits a URI into the innermost skill that contains it and the path
// inside that skill; "" is the skill's root.
func (v *view) find(uri string) (*catalog.Entry, string, bool) {
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok || len(rest) > 3*maxURIPath { // escaping triples a byte at most
		return nil, "", false
	}
	full, ok := unescapePath(rest)
	if !ok || len(full) > maxURIPath {
		return nil, "", false
	}
	for p, more := full, true; more; {
		if e := v.skillAt(p); e != nil {
			return e, strings.TrimPrefix(full[len(p):], "/"), true
		}
		i := strings.LastIndexByte(p, '/')
		p, more = p[:max(i, 0)], i > 0
	}
	return nil, "", false
}

// escapePath escapes a path for a URI.
func escapePath(p string) string {
	parts := strings.Split(p, "/")
	for i, s := range parts {
		parts[i] = strings.ReplaceAll(url.PathEscape(s), ":", "%3A")
	}
	return strings.Join(parts, "/")
}

// unescapePath reverses escapePath. It accepts only plain paths: no empty or
// dot elements, separators or queries.
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

// NotServed yields the skills in the current catalog that the Skills extension
// (SEP-2640) cannot serve, because they do not conform to the Agent Skills format.
// The second value says why, and what to change. These skills remain available
// through the tools. NotServed yields none if [Options.ToolsOnly] is set.
func (s *Server) NotServed() iter.Seq2[*catalog.Entry, string] {
	return func(yield func(*catalog.Entry, string) bool) {
		if s.opts.ToolsOnly {
			return
		}
		v := s.view()
		v.indexOnce.Do(v.index)
		for _, n := range v.unserved {
			if !yield(n.entry, n.reason) {
				return
			}
		}
	}
}
