package skill

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
)

// Limits of CheckFiles.
const (
	maxProviderFiles = 64      // Python files that are read
	maxProviderBytes = 1 << 20 // bytes that are read of each
)

// CheckFiles reports what the skill's provider needs but fsys lacks: its
// module, class, command or WebAssembly file, or a Python file that the module
// imports with a relative import. s is the skill parsed from src, the content
// of its SKILL.md; if s is nil, there are no findings. The positions in the
// findings are those in SKILL.md. CheckFiles searches the text of Python files
// and never runs them. It reads at most 64 files. [Parse] includes its
// findings; [ParseBytes] does not.
func CheckFiles(fsys fs.FS, src []byte, s *Skill) Diagnostics {
	if s == nil || s.Provider == nil {
		return nil
	}
	block := s.Frontmatter
	if s.Repaired {
		block, _ = repair(block)
	}
	root, serr := parseYAML(block)
	if serr != nil || root == nil || root.Kind != yaml.MappingNode {
		return nil
	}
	var ds, ignored Diagnostics
	top := decoder{ds: &ds, line: findLayout(src, true, &ignored).line, top: index(root)}
	if m := top.top["metadata"]; m != nil && m.Kind == yaml.MappingNode {
		top.meta = index(m)
	}
	at := top.lookup("provider")
	if s.Provider.Function != "" {
		at = top.lookup("entrypoint")
	}
	if at == nil {
		return nil
	}
	c := providerCheck{decoder: top, fsys: fsys, at: at, fields: top.nested(at)}
	switch p := s.Provider; {
	case p.WASM != "":
		c.checkFile(c.position("wasm"), p.WASM)
	case p.Function != "":
		if name := p.ModuleFile(); c.exists(name) {
			c.checkImports(name)
		} else {
			c.checkFile(at, name)
		}
	case p.Class != "":
		c.checkClass(p)
	default:
		if name := commandFile(p.Command); name != "" {
			c.checkFile(c.position("command"), name)
		}
	}
	return ds
}

// providerCheck checks the files of one provider.
type providerCheck struct {
	decoder
	fsys   fs.FS
	at     *yaml.Node
	fields *decoder // of the provider
}

// position returns the node of a field of the provider or, if there is no such
// field, the node of the provider.
func (c *providerCheck) position(field string) *yaml.Node {
	if n := c.fields.lookup(field); n != nil {
		return n
	}
	return c.at
}

// checkFile reports a missing file that the provider needs to start.
func (c *providerCheck) checkFile(at *yaml.Node, name string) {
	name = pathInSkill(name)
	if !c.exists(name) {
		c.add(Warning, 0, "provider-file-missing", at, fmt.Sprintf("the file %s of the provider is missing, so it cannot start", quote(name)),
			"add the file, or correct its path")
	}
}

func (c *providerCheck) exists(name string) bool {
	fi, err := fs.Stat(c.fsys, name) // reports an invalid path
	return err == nil && fi.Mode().IsRegular()
}

// checkClass checks the module, the class and the files that the module
// imports.
func (c *providerCheck) checkClass(p *Provider) {
	base := strings.TrimSuffix(p.ModuleFile(), ".py")
	name := base + ".py"
	if !c.exists(name) {
		if name = base + "/__init__.py"; !c.exists(name) {
			c.checkFile(c.position("module"), base+".py")
			return
		}
	}
	text := c.read(name)
	if class, ok := definesName(text, p.Class); !ok {
		fix := "define the class, or name one that the file has"
		if len(class) > 0 {
			fix += ": " + strings.Join(class, ", ")
		}
		c.add(Warning, 0, "provider-class-missing", c.position("class"), fmt.Sprintf("%s has no class %s, so the provider cannot start", quote(name), quote(p.Class)), fix)
	}
	c.checkImports(name)
}

// checkImports reports the missing files that a Python file imports, directly
// or indirectly.
func (c *providerCheck) checkImports(name string) {
	queue, reported := []string{name}, map[string]bool{}
	for i := 0; i < len(queue); i++ {
		for _, im := range relativeImports(queue[i], c.read(queue[i])) {
			found := false
			for _, file := range []string{im.path + ".py", im.path + "/__init__.py"} {
				if found = c.exists(file); !found {
					continue
				}
				if !slices.Contains(queue, file) && len(queue) < maxProviderFiles {
					queue = append(queue, file)
				}
				break
			}
			if !found && !reported[im.path] && !c.isDir(im.path) && len(reported) < maxProviderFiles {
				reported[im.path] = true
				c.add(Warning, 0, "provider-import-missing", c.position("module"), fmt.Sprintf("%s imports %s in line %d, and the file is missing", quote(queue[i]), quote(im.path+".py"), im.line),
					"add the file, or delete the import; the tools that need it do not work")
			}
		}
	}
}

// isDir reports whether name is a directory, which Python can import.
func (c *providerCheck) isDir(name string) bool {
	fi, err := fs.Stat(c.fsys, name)
	return err == nil && fi.IsDir()
}

// read returns the start of a Python file without comments or multi-line
// strings. The removal does not change line numbers. It returns "" if the file
// cannot be read.
func (c *providerCheck) read(name string) string {
	f, err := c.fsys.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxProviderBytes))
	if err != nil {
		return ""
	}
	return pythonText.ReplaceAllStringFunc(string(data), func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
}

var (
	pythonText    = lazyregexp.New(`(?s)""".*?"""|'''.*?'''|\\\r?\n|\r|(?-s:[ \t]*#.*)`)
	pythonClass   = lazyregexp.New(`(?m)^[ \t]*class[ \t]+(\w+)`)
	dynamicNames  = lazyregexp.New(`(?m)\bglobals\(\)|\b__getattr__\b|\bsetattr\(|\bimport[ \t]*\(?[ \t]*\*|\bexec\(`)
	importAs      = lazyregexp.New(`(?ms)^([ \t]*)from[ \t]+(\.+)([\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n]*)`)
	pythonName    = lazyregexp.New(`^[A-Za-z_]\w*$`)
	interpreters  = []string{"python3", "python", "node", "bash", "sh", "ruby", "perl", "php", "deno", "bun"}
	maxClassNames = 5
)

// definesName reports whether Python text seems to define a name, as a class or
// otherwise. It also returns some of the classes in the text.
func definesName(text, name string) (classes []string, ok bool) {
	for _, m := range pythonClass.FindAllStringSubmatch(text, maxProviderFiles) {
		if m[1] == name {
			return nil, true
		}
		if len(classes) < maxClassNames {
			classes = append(classes, m[1])
		}
	}
	if !pythonName.MatchString(name) {
		return classes, false
	}
	// An import or an assignment can define it too.
	other := regexp.MustCompile(`(?m)^[ \t]*` + name + `[ \t]*(?::[^=\n]*)?=|\bimport\b[^(\n]*\b` + name + `\b|\bimport[ \t]*\([^)]*\b` + name + `\b|^[ \t]*class[ \t]+` + name + `\b`)
	return classes, other.MatchString(text) || dynamicNames.MatchString(text)
}

// relativeImport is an import of a file of the skill.
type relativeImport struct {
	path string // without the extension
	line int
}

// relativeImports returns the modules that a Python file imports relative to
// itself. It ignores optional imports (see isTried) and names in "from . import
// name" that may not be modules.
func relativeImports(file, text string) []relativeImport {
	var out []relativeImport
	for _, m := range importAs.FindAllStringSubmatchIndex(text, maxProviderFiles) {
		module := text[m[6]:m[7]]
		if module == "" || m[5]-m[4] > 8 || isTried(text[:m[0]], text[m[2]:m[3]]) {
			continue
		}
		dir := path.Dir(file)
		for range m[5] - m[4] - 1 {
			dir = path.Join(dir, "..")
		}
		at := path.Join(dir, strings.ReplaceAll(module, ".", "/"))
		if !fs.ValidPath(at) || strings.HasPrefix(at, "..") {
			continue // outside of the skill, where only Python knows what it is
		}
		out = append(out, relativeImport{at, 1 + strings.Count(text[:m[0]], "\n")})
	}
	return out
}

// isTried reports whether an import is optional: it is in a try statement, or
// in a block for type checkers. The import follows text and has the given
// indentation.
func isTried(text, indent string) bool {
	for len(text) > 0 && indent != "" {
		text = strings.TrimRight(text, "\n")
		line := text[strings.LastIndexByte(text, '\n')+1:]
		text = text[:len(text)-len(line)]
		if strings.TrimSpace(line) == "" {
			continue
		}
		if space := line[:len(line)-len(strings.TrimLeft(line, " \t"))]; len(space) < len(indent) {
			switch statement := strings.TrimSpace(line); {
			case strings.HasPrefix(statement, "try"), strings.HasPrefix(statement, "if ") && strings.HasSuffix(statement, "TYPE_CHECKING:"):
				return true
			}
			indent = space
		}
	}
	return false
}

// commandFile returns the file of the skill that a command starts, or "" if it
// starts none.
func commandFile(command []string) string {
	if len(command) == 0 {
		return ""
	}
	name := command[0]
	if slices.Contains(interpreters, name) {
		if len(command) == 1 || strings.HasPrefix(command[1], "-") || path.Ext(command[1]) == "" {
			return ""
		}
		name = command[1]
	} else if !strings.Contains(name, "/") {
		return "" // a program of the system
	}
	if name = pathInSkill(name); path.IsAbs(name) || strings.ContainsAny(name, "$:{}") {
		return ""
	}
	return name
}

// pathInSkill converts a path in the frontmatter to a path relative to the
// skill.
func pathInSkill(name string) string {
	for _, prefix := range []string{mountpoint.Skill + "/", "${SKILL_DIR}/", "${LOADOUT_SKILL}/", "./"} {
		name = strings.TrimPrefix(name, prefix)
	}
	return name
}
