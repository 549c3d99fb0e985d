// Package skill reads Agent Skills: a directory whose SKILL.md holds YAML
// frontmatter and Markdown instructions, beside any other files.
//
// It parses (one pass, two verdicts: strict as the reference validator, and
// lenient as messy real files need), lists and hashes the files of a skill
// ([Bundle], [Manifest]), and reads and writes skill archives ([OpenZIP],
// [WriteZIP]). It never executes anything, never touches the network, and
// treats every byte as hostile: sizes, counts, depth and paths are bounded.
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
)

// FileName is the name of the file that makes a directory a skill.
const FileName = "SKILL.md"

// lowerFileName is the other spelling that the reference validator accepts.
const lowerFileName = "skill.md"

// Skill is what a SKILL.md says. Fields that the file leaves out are zero,
// except UserInvocable. The zero value is not useful; use [Parse].
type Skill struct {
	Name        string // as given, NFKC-normalised; the folder's where none is given
	Description string

	License       string
	Compatibility string
	Metadata      map[string]string // values that are no strings, as text
	AllowedTools  []string          // tool patterns, split as [SplitTools] does

	// Fields beyond the specification that other systems use, at the top
	// level or under metadata.
	DisplayName  string
	Version      string // text, also where the file has a number: 1.10 stays 1.10
	Author       string
	Category     string
	Tags         []string
	BindShells   []string // kinds of face the skill is for; empty: all
	Dependencies []string // "name" or "name@constraint"
	Model        string
	ArgumentHint string
	WhenToUse    string
	Preload      bool

	DisableModelInvocation bool // hidden from the model, usable by a person
	UserInvocable          bool // default true

	Tools      []Tool          // tools that a provider of the skill offers
	Provider   *Provider       // code in the skill that offers tools
	MCPServers Servers         // MCP servers the skill brings or asks for
	Config     json.RawMessage // settings shared by the tools; a JSON object or nil

	// Frontmatter is the YAML as written, without the fences. It aliases the
	// bytes that were parsed.
	Frontmatter []byte
	// Instructions is everything after the line that closes the frontmatter,
	// byte for byte. It is empty where only the head of a file was parsed.
	Instructions string

	repaired bool // the YAML as written could not be read
	unnamed  bool // the name is the folder's
}

// Tool is one tool a skill declares.
type Tool struct {
	Name        string          `json:"name"`
	Provider    string          `json:"provider,omitempty"`
	Config      json.RawMessage `json:"config,omitempty"` // a JSON object
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // a JSON object
	Category    string          `json:"category,omitempty"`
	ReadOnly    bool            `json:"readOnly,omitempty"`
}

// Provider is the code in a skill that offers tools: exactly one of a Python
// Class (in Module), a Command, or a WASM file, by path inside the skill.
type Provider struct {
	Module  string   `json:"module,omitempty"`
	Class   string   `json:"class,omitempty"`
	Command []string `json:"command,omitempty"`
	WASM    string   `json:"wasm,omitempty"`
}

// Servers is what a skill says of MCP servers: names of servers that the host
// has, or configurations of its own by name.
type Servers struct {
	Names   []string        // in the order given, or the keys of Configs
	Configs json.RawMessage // a JSON object by name, nil where only names are given
}

// Title is the display name, or the name where there is none.
func (s *Skill) Title() string {
	if s.DisplayName != "" {
		return s.DisplayName
	}
	return s.Name
}

// Verbatim reports whether the frontmatter could be read as it is written.
func (s *Skill) Verbatim() bool { return !s.repaired }

// Named reports whether the skill names itself, as opposed to going by the
// name of its folder.
func (s *Skill) Named() bool { return !s.unnamed }

// ErrNoVerbatim says that frontmatter has no verbatim JSON form, because it
// could only be read after a repair.
var ErrNoVerbatim = errors.New("the frontmatter was repaired to be read, so it has no verbatim form")

// FrontmatterJSON renders the frontmatter as a JSON object by the YAML 1.2
// core schema: every field the author wrote, in the author's order, dates and
// yes/no as strings. It returns [ErrNoVerbatim] for repaired frontmatter.
func (s *Skill) FrontmatterJSON() (json.RawMessage, error) {
	if s.repaired {
		return nil, ErrNoVerbatim
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

// Parse reads the SKILL.md of the skill that is rooted at fsys. folder is the
// name of the skill's directory or archive, against which the name is checked
// and which stands in for a missing one; "" skips both.
//
// A file with faults is not an error: they come back as diagnostics, and the
// skill is nil only where nothing could be read of it. Use [Diagnostics.Loads]
// before using it. An error means the file could not be read; it wraps
// [fs.ErrNotExist] where there is no SKILL.md in any spelling.
func Parse(fsys fs.FS, folder string) (*Skill, Diagnostics, error) {
	name, err := FindFile(fsys)
	if err != nil {
		return nil, nil, err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", name, err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", name, err)
	}
	s, ds := ParseBytes(src, name, folder)
	return s, ds, nil
}

// FindFile returns the spelling of SKILL.md that fsys has. The error wraps
// [fs.ErrNotExist] where it has none.
func FindFile(fsys fs.FS) (string, error) {
	name := FileName
	info, err := fs.Stat(fsys, name)
	if err != nil {
		if name, err = otherSpelling(fsys); err != nil {
			return "", err
		}
		if info, err = fs.Stat(fsys, name); err != nil {
			return "", fmt.Errorf("look at %s: %w", name, err)
		}
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for a writer
		return "", fmt.Errorf("%s is not a regular file", name)
	}
	return name, nil
}

// otherSpelling finds the file where its name is not quite [FileName], of
// several the one that the reference validator would take.
func otherSpelling(fsys fs.FS) (string, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return "", fmt.Errorf("look for %s: %w", FileName, err)
	}
	found := ""
	for _, e := range entries {
		if name := e.Name(); IsFileName(name) && !e.IsDir() && (found == "" || name == lowerFileName) {
			found = name
		}
	}
	if found == "" {
		return "", fmt.Errorf("find %s: %w", FileName, fs.ErrNotExist)
	}
	return found, nil
}

// IsFileName reports whether name is SKILL.md in any spelling of case; the
// reference knows SKILL.md and skill.md, real folders have two more.
func IsFileName(name string) bool {
	return len(name) == len(FileName) && strings.EqualFold(name, FileName)
}

// ParseBytes parses the content of a SKILL.md. file is its name, for the
// check of its spelling; folder is as in [Parse]. The skill aliases src.
func ParseBytes(src []byte, file, folder string) (*Skill, Diagnostics) {
	p := parser{src: src, whole: true, folder: folder}
	p.fileName(file)
	if len(src) > MaxFileBytes {
		p.ds.add(Diagnostic{Error, "file-too-long", 0, 0, fmt.Sprintf("%s has more than %d bytes", FileName, MaxFileBytes),
			"move material into reference files", 0})
		return nil, p.ds
	}
	s := p.parse()
	if s == nil {
		return nil, p.ds
	}
	s.Instructions = string(src[p.lay.body:])
	p.body(s)
	return s, p.ds
}

// ParseHead parses level 1 from the beginning of a SKILL.md, as a scan of many
// skills needs it: instructions are not checked, and only kept where complete
// says that head is the whole file. more reports that the frontmatter does not
// end within head, and that head is not all there may be (complete is false);
// read on, up to a few KiB beyond [MaxFrontmatterBytes], and call again.
func ParseHead(head []byte, complete bool, file, folder string) (s *Skill, ds Diagnostics, more bool) {
	p := parser{src: head, whole: complete, folder: folder}
	p.fileName(file)
	s = p.parse()
	if p.lay.open && len(head) <= MaxFrontmatterBytes+2*headSlack {
		return nil, nil, true
	}
	if s != nil && complete {
		s.Instructions = string(head[p.lay.body:])
	}
	return s, p.ds, false
}
