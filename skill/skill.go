// Package skill reads Agent Skills. A skill is a directory with a SKILL.md,
// which holds YAML frontmatter and Markdown instructions, and any other files.
//
// The package parses skills, lists and hashes their files ([Bundle],
// [Manifest]), and reads and writes skill archives ([OpenZIP], [WriteZIP]). A
// single parse returns two verdicts: a strict one, like the reference
// validator's, and a lenient one, for files with common faults. The package
// never executes code and never uses the network. It treats all input as
// hostile and limits sizes, counts, depth and paths. Start with [Parse].
//
// The format is specified at https://agentskills.io/specification.
package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unsafe"

	"github.com/loadout-dev/loadout/internal/skillfile"
)

// FileName is the name of the file that makes a directory a skill.
const FileName = "SKILL.md"

// lowerFileName is an alternative to FileName that the reference validator
// accepts.
const lowerFileName = "skill.md"

// Skill is the content of a SKILL.md. Fields that the file omits are zero,
// except UserInvocable. Lists are truncated to 1,000 items. Use [Parse] to
// create a Skill. The methods do not modify it and may be called concurrently.
type Skill struct {
	Name        string // NFKC-normalized; the folder's name if missing
	Description string // not truncated, even if it exceeds 1,024 characters

	License       string
	Compatibility string            // required environment
	Metadata      map[string]string // values that are not strings are converted to text
	AllowedTools  []string          // tool patterns, as in `Read, Bash(git add:*)`

	// The specification does not define the following fields. Other systems
	// use them at the top level or under metadata.
	DisplayName  string // for users, who otherwise see Name
	Version      string // as written, even if it is a number: 1.10 stays 1.10
	Author       string
	Category     string
	Tags         []string
	BindShells   []string // user interfaces that the skill is for; empty means all
	Dependencies []string // "name" or "name@constraint"
	Model        string   // model to use while the skill is active
	ArgumentHint string   // arguments that a user can type after the name
	WhenToUse    string
	Preload      bool // active from the start of a conversation
	// Requirements lists the Python packages that the skill's Python scripts
	// need if neither they nor a requirements.txt name any, as in
	// "pandas>=2.0". Each names a released package, never a URL or a path.
	Requirements []string
	Examples     []string // requests that the skill is for, as users write them

	DisableModelInvocation bool // hidden from the model, but users can invoke it
	UserInvocable          bool // default true

	Tools      []Tool          // tools that the skill's provider provides
	Provider   *Provider       // code in the skill that provides tools
	MCPServers Servers         // MCP servers that the skill defines or requests
	Config     json.RawMessage // settings shared by the tools; a JSON object or nil

	// Frontmatter is the YAML as written, without the fences. It aliases the
	// parsed bytes.
	Frontmatter []byte
	// Instructions is everything after the closing fence line, unchanged. It
	// is empty if only the head of a file was parsed.
	Instructions string

	Unnamed  bool // whether the file has no usable name, so that Name is the folder's name
	Repaired bool // whether the frontmatter was not valid YAML and was repaired
}

// Tool is a tool declaration in the frontmatter. Only the name is required.
type Tool struct {
	Name        string          `json:"name"`
	Provider    string          `json:"provider,omitempty"`
	Config      json.RawMessage `json:"config,omitempty"` // a JSON object
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // a JSON object; not checked further
	Category    string          `json:"category,omitempty"`
	ReadOnly    bool            `json:"readOnly,omitempty"`
}

// Provider is code in a skill that provides tools. Exactly one of Class (a
// Python class in Module), Function (a Python function in Module, which is the
// only tool), Command and WASM is set. Paths are relative to the skill.
type Provider struct {
	Module   string   `json:"module,omitempty"` // "provider" if Class is set without a module
	Class    string   `json:"class,omitempty"`
	Function string   `json:"function,omitempty"`
	Command  []string `json:"command,omitempty"` // program and arguments
	WASM     string   `json:"wasm,omitempty"`    // path of a WebAssembly module
}

// ModuleFile returns the path of the Python file with the provider's class or
// function. It returns "" for other providers.
func (p *Provider) ModuleFile() string {
	if p.Class == "" && p.Function == "" {
		return ""
	}
	return strings.ReplaceAll(strings.TrimSuffix(p.Module, ".py"), ".", "/") + ".py"
}

// Servers holds the MCP servers that a skill requests. They are either the
// names of servers that the host configures, or configurations by name.
type Servers struct {
	Names   []string        // in source order, or the keys of Configs
	Configs json.RawMessage // a JSON object of configurations by name; nil if only names are given
}

// errRepaired is returned for frontmatter that has no exact JSON form because
// it was repaired.
var errRepaired = errors.New("repaired frontmatter cannot be represented exactly in JSON")

// FrontmatterJSON returns the frontmatter as a JSON object according to the
// YAML 1.2 core schema. The object has every field in source order, with dates
// and yes/no as strings. It parses s.Frontmatter in each call. It returns an
// error if [Skill.Repaired] is set.
func (s *Skill) FrontmatterJSON() (json.RawMessage, error) {
	if s.Repaired {
		return nil, errRepaired
	}
	root, serr := parseYAML(s.Frontmatter)
	if serr != nil {
		return nil, serr
	}
	if root == nil {
		return json.RawMessage("{}"), nil
	}
	return toJSON(root)
}

// Parse parses the SKILL.md of a skill whose root is fsys. folder is the name
// of the skill's directory or archive. The skill's name must match folder,
// which also replaces a missing name. If folder is empty, neither applies.
// Parse also reports what [CheckFiles] finds.
//
// Faults in the file are reported as diagnostics, not errors. The skill is nil
// if nothing could be parsed. Check [Diagnostics.Loads] before using the skill.
// A file over 10 MiB is a fault too. An error means that the file could
// not be read. It wraps [fs.ErrNotExist] if there is no SKILL.md in any
// spelling.
func Parse(fsys fs.FS, folder string) (*Skill, Diagnostics, error) {
	name, err := skillfile.Find(fsys)
	if err != nil {
		return nil, nil, err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", name, err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, skillfile.MaxFileBytes+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", name, err)
	}
	s, ds := ParseBytes(src, name, folder)
	return s, append(ds, CheckFiles(fsys, src, s)...), nil
}

// ParseBytes parses the content of a SKILL.md. file is its file name, whose
// spelling is checked; if it is empty, [FileName] is assumed. folder, the skill
// and the diagnostics are as in [Parse]. The skill aliases src, which must not
// be modified afterwards.
func ParseBytes(src []byte, file, folder string) (*Skill, Diagnostics) {
	p := parser{src: src, whole: true, folder: folder}
	p.fileName(file)
	if len(src) > skillfile.MaxFileBytes {
		p.ds.add(Diagnostic{Error, "file-too-long", 0, 0, fmt.Sprintf("%s has more than %d bytes", FileName, skillfile.MaxFileBytes),
			"move material into reference files", 0})
		return nil, p.ds
	}
	s := p.parse()
	if s == nil {
		return nil, p.ds
	}
	s.Instructions = aliasString(src[p.lay.body:])
	p.body(s)
	return s, p.ds
}

// ParseHead parses the frontmatter from the head of a SKILL.md, for callers
// that read many skills. complete means that head is the whole file. ParseHead
// does not check the instructions and stores them only if complete is set. more
// reports whether the frontmatter does not end within head and the file may be
// longer. In that case, s and ds are nil: call ParseHead again with a longer
// head. A head of a few KiB more than 64 KiB is always enough. The skill
// aliases head. The other parameters are as in [ParseBytes].
func ParseHead(head []byte, complete bool, file, folder string) (s *Skill, ds Diagnostics, more bool) {
	p := parser{src: head, whole: complete, folder: folder}
	p.fileName(file)
	s = p.parse()
	if p.lay.open && len(head) <= skillfile.MaxFrontmatterBytes+2*headSlack {
		return nil, nil, true
	}
	if s != nil && complete {
		s.Instructions = aliasString(head[p.lay.body:])
	}
	return s, p.ds, false
}

// aliasString returns b as a string that shares its memory.
func aliasString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
