// Package config loads the configuration of the command from defaults, files,
// environment variables and flags, in increasing order of precedence. It
// records the source of each value. It does not open files or addresses that
// the configuration names.
package config

import (
	"cmp"
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

	"github.com/loadout-dev/loadout/internal/fileerror"
)

// FileName is the base name of a configuration file.
const FileName = "loadout.yaml"

const maxFile = 1 << 20

// Config is the effective configuration, merged from all sources.
type Config struct {
	Skills   Skills
	MCP      MCP
	Servers  Servers
	Sources  Sources
	Policy   Policy
	Sandbox  Sandbox
	Models   Models
	Usage    Usage
	Releases Releases
	Hub      Hub
	// User holds the user's own values, for ${{user.NAME}} in the configuration
	// of MCP servers.
	User map[string]string
	// Variables holds the platform values, for ${{NAME}} in the configuration
	// of the user's and of skills' MCP servers.
	Variables map[string]Variable

	// Inherited lists skill directories from legacy environment variables.
	Inherited []string
	// Notes lists ignored settings with the reason.
	Notes []Note
	// Files lists the configuration files that were read, in order.
	Files []string

	from    map[string]string // key → source of its value
	project map[string]string // project of each skill directory added by a project file
}

// Note reports a setting that was ignored.
type Note struct {
	Where   string `json:"where"`
	Message string `json:"message"`
}

// Input holds the arguments of [Load].
type Input struct {
	WorkDir string
	Home    string
	Getenv  func(string) string
	// File is the configuration file given by the user, or "".
	File string
	// Agent returns the name of the agent that chose File and the environment,
	// or "" if the user chose them; nil means the user. An agent cannot
	// approve: policy.approved has no effect in a file that an agent names.
	Agent func() string
	// Flags holds settings from the command line, by key.
	Flags map[string]string
	// Trusted reports whether the user trusts a project file with this content.
	// If it is nil, no project file is trusted.
	Trusted func(file string, data []byte) bool
	// Operator is the configuration file of the administrator of this machine;
	// nil means none.
	Operator OperatorFile
}

// Error reports all faults that were found in a configuration.
type Error struct{ Faults []string }

func (e *Error) Error() string {
	return "configuration: " + strings.Join(e.Faults, "\n  ")
}

// Load loads the configuration. It returns all faults in files that the user
// owns or specified as one [*Error], because silently ignoring a fault could
// drop a restriction. A project file can set only harmless keys. Its other keys
// are ignored and reported in Notes.
func Load(in Input) (*Config, error) {
	c := defaults()
	l := loader{c: c, in: in}
	administrator := l.readOperator()
	l.named = in.Getenv("LOADOUT_CONFIG") != ""
	l.applyFile(UserFile(in), "", l.named)
	if file, root := ProjectFile(in.WorkDir); file != "" && file != UserFile(in) {
		l.applyFile(file, root, false)
	}
	if in.File != "" {
		l.named = true
		l.applyFile(l.resolvePath(in.File, in.WorkDir), "", true)
	}
	l.applyLegacyEnvironment()
	l.applyEnvironment()
	l.applyFlags()
	l.applyOperator(administrator)
	if len(l.faults) > 0 {
		return nil, &Error{truncateList(l.faults, func(more int) string { return fmt.Sprintf("and %d more", more) })}
	}
	c.Notes = truncateList(c.Notes, func(more int) Note { return Note{"configuration", fmt.Sprintf("%d more settings are ignored", more)} })
	return c, nil
}

// truncateList truncates a list to 20 items, because a malicious file can make
// it very long. It appends one more item: the result of summarize for the
// number of removed items.
func truncateList[T any](list []T, summarize func(more int) T) []T {
	const most = 20
	if len(list) <= most {
		return list
	}
	return append(list[:most:most], summarize(len(list)-most))
}

// NamedFiles returns the paths of all configuration files that Load reads, including
// those that do not exist, except for the project's, which [ProjectFile] searches for.
func (in Input) NamedFiles() []string {
	var out []string
	if in.Operator != nil && in.Operator.Path() != "" {
		out = append(out, in.Operator.Path())
	}
	if f := UserFile(in); f != "" {
		out = append(out, f)
	}
	if in.File != "" {
		l := loader{in: in}
		out = append(out, l.resolvePath(in.File, in.WorkDir))
	}
	return out
}

// WatchedPaths returns the paths of NamedFiles, and those that decide what
// [ProjectFile] finds. It reads no files.
func (in Input) WatchedPaths() []string {
	out := in.NamedFiles()
	for d := in.WorkDir; ; d = filepath.Dir(d) {
		out = append(out, filepath.Join(d, ".git"), filepath.Join(d, FileName), filepath.Join(d, ".loadout", FileName))
		if d == filepath.Dir(d) {
			return out
		}
	}
}

// IsSet reports whether a key has a value from any source but the defaults.
func (c *Config) IsSet(key string) bool { return c.from[key] != "" }

// ProjectOf returns the project whose file added a directory in Skills.Dirs, or
// "" if the user added it.
func (c *Config) ProjectOf(dir string) string { return c.project[dir] }

// UserFile returns the path of the user's configuration file.
func UserFile(in Input) string {
	if f := in.Getenv("LOADOUT_CONFIG"); f != "" {
		l := loader{in: in}
		return l.resolvePath(f, in.WorkDir)
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

// ProjectFile finds the configuration file of the project that contains dir. It
// searches dir and its parents up to the repository root. Outside a repository
// it finds nothing.
func ProjectFile(dir string) (file, root string) {
	root = RepositoryRoot(dir)
	if root == "" {
		return "", ""
	}
	for d := dir; ; d = filepath.Dir(d) {
		for _, name := range []string{FileName, filepath.Join(".loadout", FileName)} {
			if p := filepath.Join(d, name); isFile(p) {
				return p, root
			}
		}
		if d == root {
			return "", root
		}
	}
}

// RepositoryRoot returns the nearest of dir and its parents that contains .git, or "".
func RepositoryRoot(dir string) string {
	for d := dir; d != ""; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	return ""
}

func isFile(p string) bool {
	fi, err := os.Stat(p)
	return err == nil && fi.Mode().IsRegular()
}

type loader struct {
	c      *Config
	in     Input
	faults []string
	// trusted is true if the user trusts the project file.
	trusted bool
	// operator is true while the administrator's file is read.
	operator bool
	// named is true while a file that the caller named is read.
	named bool
}

func (l *loader) addFault(where, format string, args ...any) {
	l.faults = append(l.faults, where+": "+fmt.Sprintf(format, args...))
}

// applyFile applies a configuration file. root is the project's root for a file
// of an untrusted project, and "" for a user's file. If required is true, the
// file must exist.
func (l *loader) applyFile(path, root string, required bool) {
	if path == "" {
		return
	}
	b, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !required:
		return
	case err != nil:
		l.report(root, path, fmt.Sprintf("cannot read the file: %v", fileerror.Cause(err)))
		return
	}
	l.applyData(path, b, root)
}

// applyData applies the content of a configuration file.
func (l *loader) applyData(path string, b []byte, root string) {
	var doc yaml.Node
	err := yaml.Load(b, &doc)
	le, positioned := errors.AsType[*yaml.LoadError](err)
	switch {
	case err == nil && len(doc.Content) > 0:
		l.c.Files = append(l.c.Files, path)
		l.trusted = root != "" && l.in.Trusted != nil && l.in.Trusted(path, b)
		l.mapping(doc.Content[0], "", path, root)
	case err == nil, strings.HasSuffix(err.Error(), "no documents in stream"):
		l.c.Files = append(l.c.Files, path) // the file contains only comments
	case strings.HasSuffix(err.Error(), "found multiple"):
		l.report(root, path, "contains more than one YAML document: delete the second --- and everything after it")
	case positioned && le.Mark.Line > 0:
		l.report(root, fmt.Sprintf("%s:%d:%d", path, le.Mark.Line, max(le.Mark.Column, 1)), "is not valid YAML: "+le.Message)
	case positioned:
		l.report(root, path, "is not valid YAML: "+le.Message)
	default:
		l.report(root, path, "is not valid YAML: "+err.Error())
	}
}

// report records a fault in a user's file, or a note about a project file.
func (l *loader) report(root, where, message string) {
	if root != "" {
		l.c.Notes = append(l.c.Notes, Note{where, message})
		return
	}
	l.addFault(where, "%s", message)
}

func (l *loader) mapping(n *yaml.Node, prefix, file, root string) {
	where := func(n *yaml.Node) string { return fmt.Sprintf("%s:%d:%d", file, n.Line, n.Column) }
	if n.Kind != yaml.MappingNode {
		if n.Kind != yaml.ScalarNode || n.Tag != "!!null" {
			l.report(root, where(n), "expected keys and values below "+cmp.Or(prefix, "the top level"))
		}
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := strings.TrimPrefix(prefix+"."+key.Value, ".")
		s, known := findSetting(name)
		switch {
		case name == "user" && prefix == "" && !l.operator && key.Kind == yaml.ScalarNode && !seen[name]:
			l.applyUserFields(value, root, where)
		case name == "variables" && prefix == "" && !l.operator && key.Kind == yaml.ScalarNode && !seen[name]:
			l.applyVariables(value, root, where)
		case key.Kind != yaml.ScalarNode || strings.Contains(key.Value, ".") || !known && !isGroup(name):
			l.report(root, where(key), unknownKey(prefix, key.Value))
		case seen[name]:
			l.report(root, where(key), "duplicate key "+name)
		case known:
			l.set(s, value, file, root, where(value))
		default:
			l.mapping(value, name, file, root)
		}
		seen[name] = true
	}
}

// applyUserFields reads the user's own values. Error messages never contain the
// values.
func (l *loader) applyUserFields(n *yaml.Node, root string, where func(*yaml.Node) string) {
	switch {
	case root != "":
		l.report(root, where(n), "user"+userOnlyNote)
		return
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return
	case n.Kind != yaml.MappingNode:
		l.addFault(where(n), "user: expected a map of names to values")
		return
	}
	l.c.User = map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode || key.Value == "" {
			l.addFault(where(key), "user.%s: expected a string", quoteKey(key.Value))
			continue
		}
		l.c.User[key.Value] = value.Value
	}
}

func (l *loader) set(s setting, n *yaml.Node, file, root, where string) {
	switch {
	case root != "" && s.project:
		l.appendProjectDirs(s, n, file, root, where)
		return
	case root != "":
		l.applyProjectValue(s, n, file, root, where)
		return
	case l.operator && !slices.Contains(operatorKeys, s.key):
		l.addFault(where, "%s: only %s can be set in this file", s.key, strings.Join(operatorKeys, ", "))
		return
	case s.key == "policy.approved" && l.named && l.in.Agent != nil:
		if agent := l.in.Agent(); agent != "" {
			l.c.Notes = append(l.c.Notes, Note{where, s.key + " is ignored, because an agent (" + agent + ") named this file; the user can set it in ~/.config/loadout/" + FileName})
			return
		}
	}
	err := decode(s.value(l.c), n)
	if err == nil {
		err = s.validate(l.c)
	}
	if err != nil {
		l.addFault(where, "%s: %v", s.key, err)
		return
	}
	l.recordSource(s, filepath.Dir(file), file)
}

// recordSource records the source of a setting's current value.
func (l *loader) recordSource(s setting, base, from string) {
	l.makeAbsolute(s, base)
	if s.key == "skills.dirs" {
		l.c.project = nil
	}
	l.c.from[s.key] = from
}

// appendProjectDirs appends the directories in a project file that are inside
// the project.
func (l *loader) appendProjectDirs(s setting, n *yaml.Node, file, root, where string) {
	var dirs []string
	if err := decodeList(&dirs, n); err != nil {
		l.report(root, where, fmt.Sprintf("%s: %v", s.key, err))
		return
	}
	for _, d := range dirs {
		d = l.resolvePath(d, filepath.Dir(file))
		if !isInside(root, d) {
			l.report(root, where, fmt.Sprintf("%s is ignored: outside the project", quoteValue(d)))
			continue
		}
		if slices.Contains(l.c.Skills.Dirs, d) {
			continue
		}
		if l.c.project == nil {
			l.c.project = map[string]string{}
			l.c.from[s.key] = strings.TrimPrefix(l.c.from[s.key]+", "+file, ", ")
		}
		l.c.project[d] = root
		l.c.Skills.Dirs = append(l.c.Skills.Dirs, d)
	}
}

// isInside reports whether path is inside root. It resolves symlinks in the
// part of path that exists, so that creating a missing path cannot lead outside
// root.
func isInside(root, path string) bool {
	rel, err := filepath.Rel(realPath(root), realPath(path))
	return err == nil && filepath.IsLocal(rel)
}

// realPath resolves the symlinks in the part of a path that exists. It returns
// "" for a dangling symlink.
func realPath(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	if _, err := os.Lstat(path); err == nil {
		return "" // dangling symlink
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

// makeAbsolute makes a setting's paths absolute.
func (l *loader) makeAbsolute(s setting, base string) {
	if !s.path {
		return
	}
	switch v := s.value(l.c).(type) {
	case *[]string:
		for i, p := range *v {
			(*v)[i] = l.resolvePath(p, base)
		}
	case *string:
		if *v != "" {
			*v = l.resolvePath(*v, base)
		}
	}
}

func (l *loader) resolvePath(p, base string) string {
	if rest, ok := strings.CutPrefix(p, "~"); ok && l.in.Home != "" && (rest == "" || os.IsPathSeparator(rest[0])) {
		return filepath.Join(l.in.Home, rest)
	}
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(base, p)
}

// requireAbsolute reports whether a path from an environment variable is
// absolute, and adds a note if not. A variable keeps its value when the user
// changes to another directory. A relative path could then refer to a project's
// file, whose servers would be treated as the user's own.
func (l *loader) requireAbsolute(variable, p string) bool {
	if filepath.IsAbs(l.resolvePath(p, "")) {
		return true
	}
	l.c.Notes = append(l.c.Notes, Note{variable, quoteValue(p) + " is ignored: a relative path depends on the working directory; write an absolute path"})
	return false
}

func decode(v any, n *yaml.Node) error {
	switch v := v.(type) {
	case *bool:
		if n.Kind != yaml.ScalarNode {
			return errors.New("expected true or false")
		}
		if n.Tag == "!!null" {
			return errors.New("missing value: want true or false")
		}
		b, err := parseBool(n.Value)
		if err != nil {
			return err
		}
		*v = b
	case *int:
		i := 0
		if err := n.Decode(&i); err != nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return fmt.Errorf("not a number: %s", quoteValue(n.Value))
		}
		*v = i
	case *string:
		if n.Kind != yaml.ScalarNode {
			return errors.New("expected a string")
		}
		*v = n.Value
		if n.Tag == "!!null" {
			*v = ""
		}
	case *[]string:
		return decodeList(v, n)
	case *map[string]Price:
		return decodePrices(v, n)
	case *map[string]NamedModel:
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
		return errors.New("expected a list of strings")
	}
	var out []string
	for _, c := range items {
		if c.Kind != yaml.ScalarNode {
			return errors.New("expected a list of strings")
		}
		if c.Tag == "!!null" || strings.TrimSpace(c.Value) == "" {
			return errors.New("empty list item")
		}
		out = append(out, c.Value)
	}
	*v = out
	return nil
}

// applyLegacyEnvironment applies the legacy environment variables, whose names
// start with LLP_.
func (l *loader) applyLegacyEnvironment() {
	for _, d := range filepath.SplitList(l.in.Getenv("LLP_SKILLS_DIRS")) {
		if d != "" {
			l.c.Inherited = append(l.c.Inherited, l.resolvePath(d, l.in.WorkDir))
		}
	}
	for _, name := range []string{"LLP_MCP_CONNECTIONS_FILE", "LLP_MCP_CONNECTIONS_DIR"} {
		if p := l.in.Getenv(name); p != "" && l.requireAbsolute(name, p) {
			l.c.Servers.Inherited = append(l.c.Servers.Inherited, l.resolvePath(p, l.in.WorkDir))
		}
	}
	if level := l.in.Getenv("LLP_MCP_DEFAULT_SAFETY"); level != "" {
		if s, _ := findSetting("servers.safety"); s.parse(l.c, strings.ToUpper(level)) == nil {
			l.recordSource(s, l.in.WorkDir, "LLP_MCP_DEFAULT_SAFETY")
		} else {
			l.c.Servers.Safety = "MEDIUM"
			l.c.Notes = append(l.c.Notes, Note{"LLP_MCP_DEFAULT_SAFETY", quoteValue(level) + " is not one of SAFE, LOW, MEDIUM, HIGH, CRITICAL; MEDIUM is used"})
		}
	}
	enabled := l.in.Getenv("LLP_ENABLE_CLAUDE_GLOBAL")
	if enabled != "" {
		on, err := parseBool(enabled)
		if err != nil { // the earlier system treated all values except 1 as false
			l.c.Notes = append(l.c.Notes, Note{"LLP_ENABLE_CLAUDE_GLOBAL", err.Error() + "; false is used"})
		}
		l.c.Skills.Home = on
		l.c.from["skills.home"] = "LLP_ENABLE_CLAUDE_GLOBAL"
		if !on {
			return
		}
	}
	if dir := l.in.Getenv("LLP_CLAUDE_SKILLS_DIR"); dir != "" {
		dir = l.resolvePath(dir, l.in.WorkDir)
		if fi, err := os.Stat(filepath.Join(dir, "skills")); err == nil && fi.IsDir() {
			dir = filepath.Join(dir, "skills")
		}
		l.c.Inherited = append(l.c.Inherited, dir)
	}
}

func (l *loader) applyEnvironment() {
	for _, s := range settings {
		for _, variable := range []string{s.also, s.env} {
			if variable == "" {
				continue
			}
			if text := l.in.Getenv(variable); text != "" {
				l.applyText(s, text, variable)
			}
		}
	}
}

func (l *loader) applyFlags() {
	for _, s := range settings {
		if text, ok := l.in.Flags[s.key]; ok {
			l.applyText(s, text, "command line")
		}
	}
}

func (l *loader) applyText(s setting, text, from string) {
	if err := s.parse(l.c, text); err != nil {
		l.addFault(from, "%s: %v", s.key, err)
		return
	}
	if list, ok := s.value(l.c).(*[]string); ok && s.path && from == s.env && strings.HasPrefix(s.key, "servers.") {
		*list = slices.DeleteFunc(*list, func(p string) bool { return !l.requireAbsolute(from, p) })
	}
	l.recordSource(s, l.in.WorkDir, from)
}

func findSetting(key string) (setting, bool) {
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

func unknownKey(prefix, name string) string {
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
	return fmt.Sprintf("unknown key %s%s; known keys: %s", strings.TrimPrefix(prefix+".", "."), quoteKey(name), strings.Join(near, ", "))
}

// quoteKey formats a key from a file for a message. It quotes keys with special
// characters.
func quoteKey(s string) string {
	if q := quoteValue(s); q != `"`+s+`"` || strings.ContainsAny(s, " .") || s == "" {
		return q
	}
	return s
}

// quoteValue quotes untrusted text for a message.
func quoteValue(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}

func readFile(path string) ([]byte, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if fi.Size() > maxFile || !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("want a regular file of at most %d bytes", maxFile)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}
