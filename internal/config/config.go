// Package config is the configuration of the command: defaults, files,
// environment and flags, in that order, in one struct that knows where each
// value came from. It decides nothing and opens nothing that the
// configuration names.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// FileName is the name of a configuration file.
const FileName = "loadout.yaml"

const maxFile = 1 << 20

// Config is the configuration in force.
type Config struct {
	Skills  Skills
	MCP     MCP
	Servers Servers
	Sources Sources
	Policy  Policy
	Sandbox Sandbox
	Models  Models
	Usage   Usage
	Hub     Hub
	// User are the person's own fields, which ${{user.NAME}} stands for in the
	// configuration of MCP servers.
	User map[string]string

	// Inherited are directories that variables of earlier systems name.
	Inherited []string
	// Notes are settings that are not in force, and why.
	Notes []Note
	// Files are the files that were read, in order.
	Files []string

	from    map[string]string // key → where its value is from
	project map[string]bool   // directories that a project's file added
}

// Note is a setting that was passed over.
type Note struct {
	Where   string `json:"where"`
	Message string `json:"message"`
}

// Input is what a configuration is made of.
type Input struct {
	WorkDir string
	Home    string
	Getenv  func(string) string
	// File is the file that the person named, "" for none.
	File string
	// Flags are settings by key that the person gave on the command line.
	Flags map[string]string
	// Trusted reports whether a person trusts the project's file at a path as
	// having these bytes; nil trusts none.
	Trusted func(file string, data []byte) bool
}

// Error lists everything that is wrong with a configuration.
type Error struct{ Faults []string }

func (e *Error) Error() string {
	return "configuration: " + strings.Join(e.Faults, "\n  ")
}

// Load reads the configuration. A fault in a file that the person named or
// owns is an [*Error] that names all of them: what was meant to restrict must
// not be passed over. A project's file may set only what cannot harm; the rest
// of it becomes a note.
func Load(in Input) (*Config, error) {
	c := defaults()
	l := loader{c: c, in: in}
	l.file(UserFile(in), "", in.Getenv("LOADOUT_CONFIG") != "")
	if file, root := ProjectFile(in.WorkDir); file != "" && file != UserFile(in) {
		l.file(file, root, false)
	}
	if in.File != "" {
		l.file(l.path(in.File, in.WorkDir), "", true)
	}
	l.earlier()
	l.environment()
	l.flags()
	if len(l.faults) > 0 {
		return nil, &Error{atMost(l.faults, func(more int) string { return fmt.Sprintf("and %d more", more) })}
	}
	c.Notes = atMost(c.Notes, func(more int) Note { return Note{"configuration", fmt.Sprintf("%d more settings are ignored", more)} })
	return c, nil
}

// atMost cuts a list that a hostile file could make endless.
func atMost[T any](list []T, rest func(more int) T) []T {
	const most = 20
	if len(list) <= most {
		return list
	}
	return append(list[:most:most], rest(len(list)-most))
}

// Candidates are the paths of the files that the configuration is read from,
// also of those that are not there.
func (in Input) Candidates() []string {
	var out []string
	if f := UserFile(in); f != "" {
		out = append(out, f)
	}
	if f, _ := ProjectFile(in.WorkDir); f != "" {
		out = append(out, f)
	}
	if in.File != "" {
		l := loader{in: in}
		out = append(out, l.path(in.File, in.WorkDir))
	}
	return out
}

// IsSet reports whether something else than the default gave a key its value.
func (c *Config) IsSet(key string) bool { return c.from[key] != "" }

// FromProject reports whether a directory of Skills.Dirs was added by a
// project's own file, and not by the person.
func (c *Config) FromProject(dir string) bool { return c.project[dir] }

// UserFile is the path of the person's own configuration file.
func UserFile(in Input) string {
	if f := in.Getenv("LOADOUT_CONFIG"); f != "" {
		l := loader{in: in}
		return l.path(f, in.WorkDir)
	}
	dir := in.Getenv("XDG_CONFIG_HOME")
	if dir == "" || !filepath.IsAbs(dir) {
		if in.Home == "" {
			return ""
		}
		dir = filepath.Join(in.Home, ".config")
	}
	return filepath.Join(dir, "loadout", FileName)
}

// ProjectFile finds the configuration file of the project around dir: in dir
// or above it, up to the root of the repository. Outside a repository there
// is none.
func ProjectFile(dir string) (file, root string) {
	for d := dir; d != ""; d = filepath.Dir(d) {
		for _, name := range []string{FileName, filepath.Join(".loadout", FileName)} {
			if p := filepath.Join(d, name); file == "" && isFile(p) {
				file = p
			}
		}
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return file, d
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	return "", ""
}

func isFile(p string) bool {
	fi, err := os.Stat(p)
	return err == nil && fi.Mode().IsRegular()
}

type loader struct {
	c      *Config
	in     Input
	faults []string
	// trusted says that the project's file counts, as far as one can.
	trusted bool
}

func (l *loader) fault(where, format string, args ...any) {
	l.faults = append(l.faults, where+": "+fmt.Sprintf(format, args...))
}

// file applies a file. With root it is a project's, which is not trusted.
func (l *loader) file(path, root string, must bool) {
	if path == "" {
		return
	}
	b, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !must:
		return
	case err != nil:
		l.bad(root, path, fmt.Sprintf("cannot be read: %v", cause(err)))
		return
	}
	var doc yaml.Node
	err = yaml.Load(b, &doc)
	le, positioned := errors.AsType[*yaml.LoadError](err)
	switch {
	case err == nil && len(doc.Content) > 0:
		l.c.Files = append(l.c.Files, path)
		l.trusted = root != "" && l.in.Trusted != nil && l.in.Trusted(path, b)
		l.mapping(doc.Content[0], "", path, root)
	case err == nil, strings.HasSuffix(err.Error(), "no documents in stream"):
		l.c.Files = append(l.c.Files, path) // nothing but comments
	case strings.HasSuffix(err.Error(), "found multiple"):
		l.bad(root, path, "holds more than one YAML document: delete the second --- and what follows")
	case positioned && le.Mark.Line > 0:
		l.bad(root, fmt.Sprintf("%s:%d:%d", path, le.Mark.Line, max(le.Mark.Column, 1)), "is not valid YAML: "+le.Message)
	case positioned:
		l.bad(root, path, "is not valid YAML: "+le.Message)
	default:
		l.bad(root, path, "is not valid YAML: "+err.Error())
	}
}

// bad is a fault, or in a project's file a note.
func (l *loader) bad(root, where, message string) {
	if root != "" {
		l.c.Notes = append(l.c.Notes, Note{where, message})
		return
	}
	l.fault(where, "%s", message)
}

func (l *loader) mapping(n *yaml.Node, prefix, file, root string) {
	where := func(n *yaml.Node) string { return fmt.Sprintf("%s:%d:%d", file, n.Line, n.Column) }
	if n.Kind != yaml.MappingNode {
		if n.Kind != yaml.ScalarNode || n.Tag != "!!null" {
			l.bad(root, where(n), "expected keys and values below "+nonEmpty(prefix, "the top level"))
		}
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := strings.TrimPrefix(prefix+"."+key.Value, ".")
		s, known := find(name)
		switch {
		case name == "user" && prefix == "" && key.Kind == yaml.ScalarNode && !seen[name]:
			l.userFields(value, root, where)
		case key.Kind != yaml.ScalarNode || strings.Contains(key.Value, ".") || !known && !isGroup(name):
			l.bad(root, where(key), unknown(prefix, key.Value))
		case seen[name]:
			l.bad(root, where(key), name+" is given twice")
		case known:
			l.set(s, value, file, root, where(value))
		default:
			l.mapping(value, name, file, root)
		}
		seen[name] = true
	}
}

// userFields reads the person's own fields. Their values are never repeated.
func (l *loader) userFields(n *yaml.Node, root string, where func(*yaml.Node) string) {
	switch {
	case root != "":
		l.bad(root, where(n), "user"+onlyYours)
		return
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return
	case n.Kind != yaml.MappingNode:
		l.fault(where(n), "user: expected names and values")
		return
	}
	l.c.User = map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode || key.Value == "" {
			l.fault(where(key), "user.%s: expected a text", shownKey(key.Value))
			continue
		}
		l.c.User[key.Value] = value.Value
	}
}

func (l *loader) set(s setting, n *yaml.Node, file, root, where string) {
	switch {
	case root != "" && s.project:
		l.projectDirs(s, n, file, root, where)
		return
	case root != "":
		l.setByProject(s, n, file, root, where)
		return
	}
	err := decode(s.value(l.c), n)
	if err == nil {
		err = s.valid(l.c)
	}
	if err != nil {
		l.fault(where, "%s: %v", s.key, err)
		return
	}
	l.given(s, filepath.Dir(file), file)
}

// given notes where a value comes from that replaces the one before.
func (l *loader) given(s setting, base, from string) {
	l.makeAbsolute(s, base)
	if s.key == "skills.dirs" {
		l.c.project = nil
	}
	l.c.from[s.key] = from
}

// projectDirs adds the directories that a project's file names to those of the
// person, if they are inside the project.
func (l *loader) projectDirs(s setting, n *yaml.Node, file, root, where string) {
	var dirs []string
	if err := decodeList(&dirs, n); err != nil {
		l.bad(root, where, fmt.Sprintf("%s: %v", s.key, err))
		return
	}
	for _, d := range dirs {
		d = l.path(d, filepath.Dir(file))
		if !inside(root, d) {
			l.bad(root, where, fmt.Sprintf("%s is ignored: it is outside the project", shown(d)))
			continue
		}
		if slices.Contains(l.c.Skills.Dirs, d) {
			continue
		}
		if l.c.project == nil {
			l.c.project = map[string]bool{}
			l.c.from[s.key] = strings.TrimPrefix(l.c.from[s.key]+", "+file, ", ")
		}
		l.c.project[d] = true
		l.c.Skills.Dirs = append(l.c.Skills.Dirs, d)
	}
}

// inside reports whether path is below root, links resolved as far as it
// exists: what is missing may come to exist, but not where a link leads out.
func inside(root, path string) bool {
	rel, err := filepath.Rel(realPath(root), realPath(path))
	return err == nil && filepath.IsLocal(rel)
}

// realPath resolves the links of a path as far as it exists; "" where one of
// them leads nowhere.
func realPath(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	if _, err := os.Lstat(path); err == nil {
		return "" // a link that leads nowhere now
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	if parent = realPath(parent); parent == "" {
		return ""
	}
	return filepath.Join(parent, filepath.Base(path))
}

// makeAbsolute makes the paths of a setting absolute.
func (l *loader) makeAbsolute(s setting, base string) {
	if !s.path {
		return
	}
	switch v := s.value(l.c).(type) {
	case *[]string:
		for i, p := range *v {
			(*v)[i] = l.path(p, base)
		}
	case *string:
		if *v != "" {
			*v = l.path(*v, base)
		}
	}
}

func (l *loader) path(p, base string) string {
	if rest, ok := strings.CutPrefix(p, "~"); ok && l.in.Home != "" && (rest == "" || os.IsPathSeparator(rest[0])) {
		return filepath.Join(l.in.Home, rest)
	}
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(base, p)
}

// whole reports whether a path of servers in a variable does not depend on the
// working directory: variables stay when that becomes somebody else's project,
// which must not be taken for the person's own servers.
func (l *loader) whole(variable, p string) bool {
	if filepath.IsAbs(l.path(p, "")) {
		return true
	}
	l.c.Notes = append(l.c.Notes, Note{variable, shown(p) + " is not read, as it would be another in each directory: write its whole path"})
	return false
}

func decode(v any, n *yaml.Node) error {
	switch v := v.(type) {
	case *bool:
		if n.Kind != yaml.ScalarNode {
			return errors.New("expected true or false")
		}
		if n.Tag == "!!null" {
			return errors.New("it has no value: write true or false")
		}
		b, err := parseBool(n.Value)
		if err != nil {
			return err
		}
		*v = b
	case *int:
		i := 0
		if err := n.Decode(&i); err != nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return fmt.Errorf("%s is not a number", shown(n.Value))
		}
		*v = i
	case *string:
		if n.Kind != yaml.ScalarNode {
			return errors.New("expected text")
		}
		*v = n.Value
		if n.Tag == "!!null" {
			*v = ""
		}
	case *[]string:
		return decodeList(v, n)
	case *map[string]Price:
		return decodePrices(v, n)
	case *map[string]Named:
		return decodeNames(v, n)
	}
	return nil
}

func decodeList(v *[]string, n *yaml.Node) error {
	items := n.Content
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		items = nil
	case n.Kind == yaml.ScalarNode:
		items = []*yaml.Node{n}
	case n.Kind != yaml.SequenceNode:
		return errors.New("expected a list of texts")
	}
	var out []string
	for _, c := range items {
		if c.Kind != yaml.ScalarNode {
			return errors.New("expected a list of texts")
		}
		if c.Tag == "!!null" || strings.TrimSpace(c.Value) == "" {
			return errors.New("an item of the list is empty")
		}
		out = append(out, c.Value)
	}
	*v = out
	return nil
}

// earlier honours the variables of an earlier system.
func (l *loader) earlier() {
	for _, d := range filepath.SplitList(l.in.Getenv("LLP_SKILLS_DIRS")) {
		if d != "" {
			l.c.Inherited = append(l.c.Inherited, l.path(d, l.in.WorkDir))
		}
	}
	for _, name := range []string{"LLP_MCP_CONNECTIONS_FILE", "LLP_MCP_CONNECTIONS_DIR"} {
		if p := l.in.Getenv(name); p != "" && l.whole(name, p) {
			l.c.Servers.Inherited = append(l.c.Servers.Inherited, l.path(p, l.in.WorkDir))
		}
	}
	if level := l.in.Getenv("LLP_MCP_DEFAULT_SAFETY"); level != "" {
		if s, _ := find("servers.safety"); s.parse(l.c, strings.ToUpper(level)) == nil {
			l.given(s, l.in.WorkDir, "LLP_MCP_DEFAULT_SAFETY")
		} else {
			l.c.Servers.Safety = "MEDIUM"
			l.c.Notes = append(l.c.Notes, Note{"LLP_MCP_DEFAULT_SAFETY", shown(level) + " is not one of SAFE, LOW, MEDIUM, HIGH, CRITICAL; it is taken as MEDIUM"})
		}
	}
	enabled := l.in.Getenv("LLP_ENABLE_CLAUDE_GLOBAL")
	if enabled != "" {
		on, err := parseBool(enabled)
		if err != nil { // that system took everything but 1 for no
			l.c.Notes = append(l.c.Notes, Note{"LLP_ENABLE_CLAUDE_GLOBAL", err.Error() + "; it is taken as false"})
		}
		l.c.Skills.Home = on
		l.c.from["skills.home"] = "LLP_ENABLE_CLAUDE_GLOBAL"
		if !on {
			return
		}
	}
	if dir := l.in.Getenv("LLP_CLAUDE_SKILLS_DIR"); dir != "" {
		dir = l.path(dir, l.in.WorkDir)
		if fi, err := os.Stat(filepath.Join(dir, "skills")); err == nil && fi.IsDir() {
			dir = filepath.Join(dir, "skills")
		}
		l.c.Inherited = append(l.c.Inherited, dir)
	}
}

func (l *loader) environment() {
	for _, s := range settings {
		for _, variable := range []string{s.also, s.env} {
			if variable == "" {
				continue
			}
			if text := l.in.Getenv(variable); text != "" {
				l.text(s, text, variable)
			}
		}
	}
}

func (l *loader) flags() {
	for _, s := range settings {
		if text, ok := l.in.Flags[s.key]; ok {
			l.text(s, text, "command line")
		}
	}
}

func (l *loader) text(s setting, text, from string) {
	if err := s.parse(l.c, text); err != nil {
		l.fault(from, "%s: %v", s.key, err)
		return
	}
	if list, ok := s.value(l.c).(*[]string); ok && s.path && from == s.env && strings.HasPrefix(s.key, "servers.") {
		*list = slices.DeleteFunc(*list, func(p string) bool { return !l.whole(from, p) })
	}
	l.given(s, l.in.WorkDir, from)
}

func find(key string) (setting, bool) {
	for _, s := range settings {
		if s.key == key {
			return s, true
		}
	}
	return setting{}, false
}

func isGroup(name string) bool {
	for _, s := range settings {
		if strings.HasPrefix(s.key, name+".") {
			return true
		}
	}
	return false
}

func unknown(prefix, name string) string {
	var near []string
	for _, s := range settings {
		group, _, _ := strings.Cut(s.key, ".")
		switch {
		case strings.HasPrefix(s.key, prefix+"."):
			near = append(near, s.key)
		case prefix == "" && !slices.Contains(near, group):
			near = append(near, group)
		}
	}
	if prefix == "" {
		near = append(near, "user")
	}
	return fmt.Sprintf("there is no key %s%s; the keys are %s", strings.TrimPrefix(prefix+".", "."), shownKey(name), strings.Join(near, ", "))
}

// shownKey is a key from a file as part of a message: in quotes where it is not
// plain.
func shownKey(s string) string {
	if q := shown(s); q != `"`+s+`"` || strings.ContainsAny(s, " .") || s == "" {
		return q
	}
	return s
}

// shown is a text from a file as part of a message: it may be hostile.
func shown(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}

func nonEmpty(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func readFile(path string) ([]byte, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if fi.Size() > maxFile || !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("it is no regular file of at most %d bytes", maxFile)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
