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
	"io"
	"io/fs"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

const (
	maxEntryBytes       = 4 << 20   // of the JSON of an entry: 512 files with URIs of up to maxURI bytes
	maxFrontmatterBytes = 256 << 10 // of the frontmatter as JSON
	maxFrontmatterDepth = 64
	maxURI              = 4096
	maxSkillURI         = 900 // of SKILL.md: with its label it is the name in approvals, which have up to 1,024 bytes
)

// Entry describes a skill as its server published it: an element of the result
// of skills/list, or the result of skills/get. Entries are immutable.
type Entry struct {
	URI         string          // of SKILL.md
	Name        string          // from the frontmatter
	Frontmatter json.RawMessage // a JSON object, with sorted keys
	// Resources lists all files, sorted by path. It is nil if Dynamic is set.
	Resources []Resource
	// Dynamic is set if the server generates the content, so that it has no
	// hashes.
	Dynamic bool
}

// Memory returns about how many bytes of memory the entry occupies.
func (e *Entry) Memory() int {
	n := len(e.URI) + len(e.Name) + len(e.Frontmatter)
	for _, r := range e.Resources {
		n += len(r.URI) + len(r.Path) + len(r.SHA256) + 56
	}
	return n
}

// MarshalJSON implements [json.Marshaler]. [ParseEntry] reverses it.
func (e *Entry) MarshalJSON() ([]byte, error) {
	type file struct {
		URI    string `json:"uri"`
		Digest string `json:"digest"`
		Size   int64  `json:"size"`
	}
	out := struct {
		URI         string          `json:"uri"`
		Frontmatter json.RawMessage `json:"frontmatter"`
		Resources   any             `json:"resources"`
	}{e.URI, e.Frontmatter, "dynamic"}
	if !e.Dynamic {
		list := make([]file, len(e.Resources))
		for i, r := range e.Resources {
			list[i] = file{r.URI, "sha256:" + r.SHA256, r.Size}
		}
		out.Resources = list
	}
	return plainjson.Line(out)
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
	v, err := decode(raw)
	if err != nil {
		return nil, &InvalidError{Reason: "not JSON"}
	}
	return parseEntry(v)
}

// decode decodes JSON into maps, which distinguish keys by case, and keeps the
// text of numbers.
func decode(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err = d.Decode(&v); err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one JSON value")
		}
	}
	return v, err
}

// parseEntry is like ParseEntry for decoded JSON.
func parseEntry(v any) (*Entry, error) {
	fields, ok := v.(map[string]any)
	if !ok {
		return nil, &InvalidError{Reason: "not a JSON object"}
	}
	e := &Entry{}
	if e.URI, ok = fields["uri"].(string); !ok {
		return nil, &InvalidError{Reason: "uri is not a string"}
	}
	root, err := ParseURI(e.URI)
	if err == nil {
		err = e.parseFrontmatter(fields["frontmatter"])
	}
	if err != nil {
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
	case len(uri) > maxSkillURI:
		return "", fmt.Errorf("uri too long (%d bytes, limit %d)", len(uri), maxSkillURI)
	case !ok || !uriScheme.MatchString(scheme):
		return "", errors.New("uri has no scheme and path, as in skill://name/" + skill.FileName)
	case strings.EqualFold(scheme, "file"):
		return "", errors.New("uri names a local file")
	}
	// The URI is the name of the skill in lists and prompts.
	if strings.ContainsFunc(uri, func(r rune) bool { return r > unicode.MaxASCII }) {
		return "", errors.New("uri has characters that are not ASCII and not escaped")
	}
	path, err := unescape(rest)
	if err != nil {
		return "", err
	}
	if code, why := skillpath.Check(path); code == "name-control" || !untrusted.Inspect(path).Clean() {
		return "", fmt.Errorf("uri has hidden characters: %s", cmp.Or(why, "they are not visible"))
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

// parseFrontmatter checks the frontmatter and sets it and the name.
func (e *Entry) parseFrontmatter(v any) error {
	fields, ok := v.(map[string]any)
	if !ok {
		return errors.New("frontmatter is not an object")
	}
	if depth(v, maxFrontmatterDepth) > maxFrontmatterDepth {
		return fmt.Errorf("frontmatter nests deeper than %d levels", maxFrontmatterDepth)
	}
	name, ok := fields["name"].(string)
	description, ok2 := fields["description"].(string)
	if !ok || !ok2 || description == "" {
		return errors.New("frontmatter has no name and description")
	}
	if !skillname.IsPortable(name) {
		return fmt.Errorf("name %q is not 1 to 64 lower-case letters, digits and single hyphens", short(name))
	}
	text, err := plainjson.Line(v) // without HTML escapes, the text is also valid YAML and does not grow
	if err != nil {
		return errors.New("frontmatter cannot be encoded")
	}
	if len(text) > maxFrontmatterBytes {
		return fmt.Errorf("frontmatter too large (%d bytes, limit %d)", len(text), maxFrontmatterBytes)
	}
	e.Name, e.Frontmatter = name, bytes.Clone(text) // without the rest of the buffer
	return nil
}

// depth returns the nesting depth of a decoded value, or more than limit.
func depth(v any, limit int) int {
	deepest := 0
	below := func(v any) {
		if deepest <= limit {
			deepest = max(deepest, depth(v, limit-1))
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, item := range v {
			below(item)
		}
	case []any:
		for _, item := range v {
			below(item)
		}
	default:
		return 0
	}
	return deepest + 1
}

// parseResources parses the list of files of a skill with the given root.
func (e *Entry) parseResources(v any, root string) error {
	if v == "dynamic" {
		e.Dynamic = true
		return nil
	}
	invalid := func(format string, args ...any) error { return &InvalidError{e.URI, fmt.Sprintf(format, args...)} }
	list, ok := v.([]any)
	if !ok {
		return invalid(`resources is neither a list of files nor "dynamic"`)
	}
	if len(list) > 20*skillfile.PortableFiles { // further ones are not even counted
		return &TooLargeError{e.URI, len(list), 0}
	}
	total, paths := int64(0), make(map[string]bool, len(list))
	e.Resources = make([]Resource, 0, len(list))
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

func parseResource(v any, root string) (r Resource, err error) {
	fields, ok := v.(map[string]any)
	if !ok {
		return r, errors.New("not an object")
	}
	if r.URI, ok = fields["uri"].(string); !ok {
		return r, errors.New("uri is not a string")
	}
	rest, ok := strings.CutPrefix(r.URI, root+"/")
	if !ok || len(r.URI) > maxURI {
		return r, fmt.Errorf("%s is not a file below %s", short(r.URI), short(root))
	}
	if r.Path, err = unescape(rest); err != nil {
		return r, err
	}
	if !fs.ValidPath(r.Path) {
		return r, fmt.Errorf("%s is not a path", short(r.URI))
	}
	switch code, why := skillpath.Check(r.Path); code { // other rules are for files on a disk
	case "name-control", "name-encoding", "path-too-long":
		return r, fmt.Errorf("%s: %s", short(r.URI), why)
	}
	digest, _ := fields["digest"].(string)
	if r.SHA256, ok = strings.CutPrefix(digest, "sha256:"); !ok || !skillfile.IsHash(r.SHA256) {
		return r, fmt.Errorf("%s has no digest of the form sha256: and 64 lower-case hexadecimal digits", short(r.URI))
	}
	size, _ := fields["size"].(json.Number)
	if r.Size, err = strconv.ParseInt(string(size), 10, 64); err != nil || r.Size < 0 {
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
	text := make([]byte, 0, len(e.Frontmatter)+10)
	text = append(text, "---\n"...) // JSON without escapes for HTML is YAML
	text = append(text, e.Frontmatter...)
	text = append(text, "\n---\n"...)
	s, ds, _ := skill.ParseHead(text, true, "", e.Name)
	return s, ds
}

// Equal reports whether two entries list the same frontmatter and files.
func (e *Entry) Equal(other *Entry) bool {
	return e == other || e.URI == other.URI && e.Dynamic == other.Dynamic && bytes.Equal(e.Frontmatter, other.Frontmatter) && slices.Equal(e.Resources, other.Resources)
}

// PathOf returns the path that identifies a URI among those of its server. It is the
// URI without the scheme skill, and otherwise begins with the scheme, as in
// github:/owner/repo. [URIOf] reverses it.
func PathOf(uri string) string {
	scheme, rest, _ := strings.Cut(uri, "://")
	first, _, _ := strings.Cut(rest, "/")
	if scheme == "skill" && !strings.Contains(first, ":") {
		return rest
	}
	return scheme + ":/" + rest
}

// URIOf returns the URI with the given path.
func URIOf(path string) string {
	first, rest, ok := strings.Cut(path, "/")
	if scheme, isScheme := strings.CutSuffix(first, ":"); ok && isScheme && uriScheme.MatchString(scheme) {
		return scheme + "://" + rest
	}
	return "skill://" + path
}
