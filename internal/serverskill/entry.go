// Package serverskill makes the skills that MCP servers publish available in a
// catalog. It implements the host's side of the Skills extension
// (specification/stable/skills.mdx of ext-skills).
//
// A server lists its skills with the hashes of their files. The package checks
// these entries, fetches a file only when it is read, and uses only content that
// matches its entry. It decides nothing about permissions. Start with [New] and
// [ParseEntry].
package serverskill

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

const (
	maxEntryBytes       = 4 << 20   // of the JSON of an entry: 512 files with URIs of up to maxURI bytes
	maxFrontmatterBytes = 256 << 10 // of the frontmatter as JSON
	maxFrontmatterDepth = 64
	maxURI              = 4096
)

// Entry describes a skill as its server published it: an element of the result
// of skills/list, or the result of skills/get. Entries are immutable.
type Entry struct {
	URI         string          // of SKILL.md
	Name        string          // from the frontmatter
	Frontmatter json.RawMessage // a JSON object, as the server sent it
	// Resources lists all files, sorted by path. It is nil if Dynamic is set.
	Resources []Resource
	// Dynamic is set if the server generates the content, so that it has no
	// hashes.
	Dynamic bool

	raw json.RawMessage // the entry as the server sent it
}

// Resource is a file of a skill.
type Resource struct {
	URI    string
	Path   string // inside the skill, unescaped
	SHA256 string // in hex
	Size   int64
}

// InvalidError reports that a server published an entry that breaks the
// specification. The skill cannot be used.
type InvalidError struct {
	URI    string // of the skill; "" if the entry has none
	Reason string
}

func (e *InvalidError) Error() string {
	if e.URI == "" {
		return "invalid skill entry: " + e.Reason
	}
	return fmt.Sprintf("invalid skill entry %s: %s", short(e.URI), e.Reason)
}

// TooLargeError reports that a skill exceeds the limits that every host
// supports.
type TooLargeError struct {
	URI   string
	Files int
	Bytes int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("skill %s too large: %d files with %d bytes (limits %d and %d)", short(e.URI), e.Files, e.Bytes, skillfile.PortableFiles, skillfile.PortableBytes)
}

// short shortens untrusted text for an error.
func short(s string) string {
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

// ParseEntry parses and checks an entry. The error is an [*InvalidError] or a
// [*TooLargeError].
func ParseEntry(raw json.RawMessage) (*Entry, error) {
	if len(raw) > maxEntryBytes {
		return nil, &InvalidError{Reason: fmt.Sprintf("too large (%d bytes, limit %d)", len(raw), maxEntryBytes)}
	}
	// A map distinguishes keys by case; a struct would not.
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return nil, &InvalidError{Reason: "not a JSON object"}
	}
	e := &Entry{raw: bytes.Clone(raw), Frontmatter: bytes.Clone(fields["frontmatter"])}
	if err := json.Unmarshal(fields["uri"], &e.URI); err != nil {
		return nil, &InvalidError{Reason: "uri is not a string"}
	}
	root, err := ParseURI(e.URI)
	if err != nil {
		return nil, &InvalidError{e.URI, err.Error()}
	}
	if e.Name, err = parseName(e.Frontmatter); err != nil {
		return nil, &InvalidError{e.URI, err.Error()}
	}
	if last := root[strings.LastIndexByte(root, '/')+1:]; last != e.Name {
		return nil, &InvalidError{e.URI, fmt.Sprintf("its path ends in %q, but its name is %q", short(last), e.Name)}
	}
	if err := e.parseResources(fields["resources"], root); err != nil {
		return nil, err
	}
	return e, nil
}

// ParseURI checks the URI of a SKILL.md and returns the URI of the skill's root
// directory, without a trailing slash.
func ParseURI(uri string) (root string, err error) {
	root, ok := strings.CutSuffix(uri, "/"+skill.FileName)
	if !ok {
		return "", errors.New("uri does not end in /" + skill.FileName)
	}
	scheme, rest, ok := strings.Cut(root, "://")
	switch {
	case len(uri) > maxURI:
		return "", fmt.Errorf("uri too long (%d bytes, limit %d)", len(uri), maxURI)
	case !ok || !uriScheme.MatchString(scheme):
		return "", errors.New("uri has no scheme and path, as in skill://name/" + skill.FileName)
	case strings.EqualFold(scheme, "file"):
		return "", errors.New("uri names a local file")
	}
	if _, err := unescape(rest); err != nil {
		return "", err
	}
	return root, nil
}

var uriScheme = lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.-]*$`)

// unescape returns the segments of a path in a URI, unescaped and joined. The
// path must be plain: no empty, dot or relative segments, no queries, and no
// separators within a segment.
func unescape(p string) (string, error) {
	if strings.ContainsAny(p, "?#\\") || strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || r == 0x7f || r == utf8.RuneError }) {
		return "", errors.New("uri has a query, a fragment, a backslash or unescaped characters")
	}
	parts := strings.Split(p, "/")
	for i, s := range parts {
		s, err := url.PathUnescape(s)
		if err != nil || s == "" || s == "." || s == ".." || strings.ContainsAny(s, "/\\\x00") || !utf8.ValidString(s) {
			return "", fmt.Errorf("uri has the invalid segment %q", short(parts[i]))
		}
		parts[i] = s
	}
	return strings.Join(parts, "/"), nil
}

// parseName checks the frontmatter and returns the skill's name.
func parseName(frontmatter json.RawMessage) (string, error) {
	if len(frontmatter) > maxFrontmatterBytes {
		return "", fmt.Errorf("frontmatter too large (%d bytes, limit %d)", len(frontmatter), maxFrontmatterBytes)
	}
	if depth(frontmatter) > maxFrontmatterDepth {
		return "", fmt.Errorf("frontmatter nests deeper than %d levels", maxFrontmatterDepth)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(frontmatter, &fields); err != nil || fields == nil {
		return "", errors.New("frontmatter is not an object")
	}
	var name, description string
	if json.Unmarshal(fields["name"], &name) != nil || json.Unmarshal(fields["description"], &description) != nil || description == "" {
		return "", errors.New("frontmatter has no name and description")
	}
	if !skillname.IsPortable(name) {
		return "", fmt.Errorf("name %q is not 1 to 64 lower-case letters, digits and single hyphens", short(name))
	}
	return name, nil
}

// depth returns the nesting depth of JSON.
func depth(js []byte) int {
	d := json.NewDecoder(bytes.NewReader(js))
	deepest, now := 0, 0
	for {
		t, err := d.Token()
		if err != nil {
			return deepest
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			now++
			deepest = max(deepest, now)
		case json.Delim('}'), json.Delim(']'):
			now--
		}
	}
}

// parseResources parses the list of files of a skill with the given root.
func (e *Entry) parseResources(raw json.RawMessage, root string) error {
	if string(raw) == `"dynamic"` {
		e.Dynamic = true
		return nil
	}
	invalid := func(format string, args ...any) error { return &InvalidError{e.URI, fmt.Sprintf(format, args...)} }
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || list == nil {
		return invalid(`resources is neither a list of files nor "dynamic"`)
	}
	total, paths := int64(0), map[string]bool{}
	for i, item := range list {
		r, err := parseResource(item, root)
		if err != nil {
			return invalid("file %d: %v", i+1, err)
		}
		if paths[r.Path] {
			return invalid("%s is listed twice", short(r.URI))
		}
		paths[r.Path] = true
		e.Resources = append(e.Resources, r)
		total = min(total, math.MaxInt64-r.Size) + r.Size
	}
	if len(list) > skillfile.PortableFiles || total > skillfile.PortableBytes {
		return &TooLargeError{e.URI, len(list), total}
	}
	for _, r := range e.Resources {
		for i := strings.LastIndexByte(r.Path, '/'); i > 0; i = strings.LastIndexByte(r.Path[:i], '/') {
			if paths[r.Path[:i]] {
				return invalid("%s is below another file", short(r.URI))
			}
		}
	}
	slices.SortFunc(e.Resources, func(a, b Resource) int { return cmp.Compare(a.Path, b.Path) })
	if md, ok := e.Find(skill.FileName); !ok || md.URI != e.URI {
		return invalid("resources does not list %s", skill.FileName)
	}
	return nil
}

var digestPattern = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)

func parseResource(fields map[string]json.RawMessage, root string) (Resource, error) {
	var r Resource
	var digest string
	if err := json.Unmarshal(fields["uri"], &r.URI); err != nil {
		return r, errors.New("uri is not a string")
	}
	rest, ok := strings.CutPrefix(r.URI, root+"/")
	if !ok || len(r.URI) > maxURI {
		return r, fmt.Errorf("%s is not a file below %s", short(r.URI), short(root))
	}
	path, err := unescape(rest)
	if err != nil {
		return r, err
	}
	if r.Path = path; !fs.ValidPath(path) {
		return r, fmt.Errorf("%s is not a path", short(r.URI))
	}
	switch code, why := skillpath.Check(path); code { // other rules are for files on a disk
	case "name-control", "name-encoding", "path-too-long":
		return r, fmt.Errorf("%s: %s", short(r.URI), why)
	}
	if err := json.Unmarshal(fields["digest"], &digest); err != nil || !digestPattern.MatchString(digest) {
		return r, fmt.Errorf("%s has no digest of the form sha256: and 64 lower-case hexadecimal digits", short(r.URI))
	}
	r.SHA256 = strings.TrimPrefix(digest, "sha256:")
	if err := json.Unmarshal(fields["size"], &r.Size); err != nil || fields["size"] == nil || string(fields["size"]) == "null" || r.Size < 0 {
		return r, fmt.Errorf("%s has no size in bytes", short(r.URI))
	}
	return r, nil
}

// Find returns the file at a path inside the skill.
func (e *Entry) Find(path string) (Resource, bool) {
	i, ok := slices.BinarySearchFunc(e.Resources, path, func(r Resource, p string) int { return cmp.Compare(r.Path, p) })
	if !ok {
		return Resource{}, false
	}
	return e.Resources[i], true
}

// ErrDynamic is returned for the files of a skill whose content the server
// generates. It cannot be verified, so it is not used.
var ErrDynamic = errors.New("the server generates this skill's content, so it cannot be verified")

// Manifest returns the files of the skill with their hashes. Its digest
// identifies the files that a user approves. The error is [ErrDynamic].
func (e *Entry) Manifest() (skill.Manifest, error) {
	if e.Dynamic {
		return nil, ErrDynamic
	}
	m := make(skill.Manifest, len(e.Resources))
	for i, r := range e.Resources {
		m[i] = skill.File{Path: r.Path, Size: r.Size, SHA256: r.SHA256, Script: skillpath.IsScript(r.Path, 0o444)}
	}
	return m, nil
}

// Head returns the skill that the frontmatter describes, without instructions.
func (e *Entry) Head() (*skill.Skill, skill.Diagnostics) {
	// JSON without escapes for HTML is YAML.
	var fields any
	d := json.NewDecoder(bytes.NewReader(e.Frontmatter))
	d.UseNumber()
	if d.Decode(&fields) != nil {
		return nil, nil
	}
	var buf bytes.Buffer
	buf.WriteString("---\n")
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(fields) != nil {
		return nil, nil
	}
	buf.WriteString("---\n")
	return skill.ParseBytes(buf.Bytes(), "", e.Name)
}

// Equal reports whether two entries list the same frontmatter and files.
func (e *Entry) Equal(other *Entry) bool {
	return e == other || e.URI == other.URI && e.Dynamic == other.Dynamic && bytes.Equal(e.Frontmatter, other.Frontmatter) && slices.Equal(e.Resources, other.Resources)
}

// dirOf returns the path that identifies the skill among those of its server. It
// is the URI's path for the scheme skill, and otherwise begins with the scheme.
func dirOf(root string) string {
	scheme, rest, _ := strings.Cut(root, "://")
	first, _, _ := strings.Cut(rest, "/")
	if scheme == "skill" && !strings.Contains(first, ":") {
		return rest
	}
	return scheme + ":/" + rest
}

// uriOf reverses dirOf, and returns the URI of the skill's SKILL.md.
func uriOf(dir string) string {
	first, rest, ok := strings.Cut(dir, "/")
	if scheme, isScheme := strings.CutSuffix(first, ":"); ok && isScheme && uriScheme.MatchString(scheme) {
		return scheme + "://" + rest + "/" + skill.FileName
	}
	return "skill://" + dir + "/" + skill.FileName
}
