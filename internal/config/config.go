// Package config is the configuration of the command: defaults, files,
// environment and flags, in that order, in one struct that knows where each
// value came from. It decides nothing and opens nothing that the
// configuration names.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"
)

// FileName is the name of a configuration file.
const FileName = "loadout.yaml"

const maxFile = 1 << 20

// Config is the configuration in force.
type Config struct {
	Skills Skills
	MCP    MCP

	// Inherited are directories that variables of earlier systems name.
	Inherited []string
	// Notes are settings that are not in force, and why.
	Notes []Note
	// Files are the files that were read, in order.
	Files []string

	from map[string]string // key → where its value is from
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
	l.file(UserFile(in), "", false)
	if file, root := ProjectFile(in.WorkDir); file != "" && file != UserFile(in) {
		l.file(file, root, false)
	}
	if in.File != "" {
		l.file(in.File, "", true)
	}
	l.earlier()
	l.environment()
	l.flags()
	if len(l.faults) > 0 {
		return nil, &Error{l.faults}
	}
	return c, nil
}

// UserFile is the path of the person's own configuration file.
func UserFile(in Input) string {
	if f := in.Getenv("LOADOUT_CONFIG"); f != "" {
		return f
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
		l.fault(path, "cannot be read: %v", cause(err))
		return
	}
	var doc yaml.Node
	if err := yaml.Load(b, &doc); err != nil {
		if strings.HasSuffix(err.Error(), "no documents in stream") {
			l.c.Files = append(l.c.Files, path)
			return
		}
		var le *yaml.LoadError
		if errors.As(err, &le) && le.Mark.Line > 0 {
			l.bad(root, fmt.Sprintf("%s:%d:%d", path, le.Mark.Line, le.Mark.Column), "is not valid YAML: "+le.Message)
		} else {
			l.bad(root, path, "is not valid YAML: "+err.Error())
		}
		return
	}
	l.c.Files = append(l.c.Files, path)
	l.mapping(doc.Content[0], "", path, root)
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
		if seen[name] {
			l.bad(root, where(key), name+" is given twice")
			continue
		}
		seen[name] = true
		if s, ok := find(name); ok {
			l.set(s, value, file, root, where(value))
			continue
		}
		if isGroup(name) {
			l.mapping(value, name, file, root)
			continue
		}
		l.bad(root, where(key), unknown(name))
	}
}

func (l *loader) set(s setting, n *yaml.Node, file, root, where string) {
	if root != "" && !s.project {
		l.c.Notes = append(l.c.Notes, Note{where, s.key + " is ignored: a project's file may only add skill directories inside the project"})
		return
	}
	if err := decode(s.value(l.c), n); err != nil {
		l.bad(root, where, fmt.Sprintf("%s: %v", s.key, err))
		return
	}
	if s.key == "skills.dirs" {
		l.dirs(file, root, where)
	}
	if err := s.valid(l.c); err != nil {
		l.bad(root, where, fmt.Sprintf("%s: %v", s.key, err))
		return
	}
	l.c.from[s.key] = file
}

// dirs makes directories absolute, and keeps those of a project inside it.
func (l *loader) dirs(file, root, where string) {
	var kept []string
	for _, d := range l.c.Skills.Dirs {
		d = l.path(d, filepath.Dir(file))
		if root != "" && !inside(root, d) {
			l.c.Notes = append(l.c.Notes, Note{where, fmt.Sprintf("%s is ignored: it is outside the project", d)})
			continue
		}
		kept = append(kept, d)
	}
	l.c.Skills.Dirs = kept
}

// inside reports whether path is below root, links resolved.
func inside(root, path string) bool {
	resolve := func(p string) string {
		if r, err := filepath.EvalSymlinks(p); err == nil {
			return r
		}
		return p
	}
	rel, err := filepath.Rel(resolve(root), resolve(path))
	return err == nil && filepath.IsLocal(rel)
}

func (l *loader) path(p, base string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok && l.in.Home != "" {
		return filepath.Join(l.in.Home, rest)
	}
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(base, p)
}

func decode(v any, n *yaml.Node) error {
	switch v := v.(type) {
	case *bool:
		if n.Kind != yaml.ScalarNode {
			return errors.New("expected true or false")
		}
		b, err := parseBool(n.Value)
		if err != nil {
			return err
		}
		*v = b
	case *int:
		if err := n.Decode(v); err != nil {
			return fmt.Errorf("%q is not a number", n.Value)
		}
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
	}
	return nil
}

func decodeList(v *[]string, n *yaml.Node) error {
	*v = nil
	switch n.Kind {
	case yaml.SequenceNode:
		for _, c := range n.Content {
			if c.Kind != yaml.ScalarNode {
				return errors.New("expected a list of texts")
			}
			*v = append(*v, c.Value)
		}
	case yaml.ScalarNode:
		if n.Tag != "!!null" {
			*v = []string{n.Value}
		}
	default:
		return errors.New("expected a list of texts")
	}
	return nil
}

// earlier honours the variables of an earlier system.
func (l *loader) earlier() {
	for _, d := range filepath.SplitList(l.in.Getenv("LLP_SKILLS_DIRS")) {
		if d != "" {
			l.c.Inherited = append(l.c.Inherited, l.path(d, l.in.WorkDir))
		}
	}
	enabled := l.in.Getenv("LLP_ENABLE_CLAUDE_GLOBAL")
	if enabled != "" {
		on, err := parseBool(enabled)
		if err != nil {
			l.c.Notes = append(l.c.Notes, Note{"LLP_ENABLE_CLAUDE_GLOBAL", err.Error()})
			return
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
		if text := l.in.Getenv(s.env); text != "" {
			l.text(s, text, s.env)
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
	if s.key == "skills.dirs" {
		for i, d := range l.c.Skills.Dirs {
			l.c.Skills.Dirs[i] = l.path(d, l.in.WorkDir)
		}
	}
	l.c.from[s.key] = from
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

func unknown(name string) string {
	var near []string
	prefix := name[:strings.LastIndex(name, ".")+1]
	for _, s := range settings {
		if strings.HasPrefix(s.key, prefix) {
			near = append(near, s.key)
		}
	}
	return fmt.Sprintf("there is no key %s; the keys are %s", name, strings.Join(near, ", "))
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
	return os.ReadFile(path)
}

func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
