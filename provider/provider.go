// Package provider says how the tools that a skill brings as code are started.
//
// A provider is a process of its own that speaks MCP on standard input and
// output, always in the sandbox and for an approved digest only: an executable of
// the skill, a WebAssembly module of it, or a Python class in the style of Wegent
// (a module of the skill with a class that has provider_name, supported_tools and
// create_tool). The class is loaded by a shim, one file of Python that needs the
// standard library only, is part of this program, and is put beside the skill and
// not taken from it.
//
// [Plan] decides and starts nothing. Its result is given to the runtime, which
// asks for leave and makes the sandbox; a changed skill has another digest, and
// whoever holds the process starts the new one and drains the old.
//
// A provider that is no class finds for whom it works, and its configuration, in
// the JSON file that the variable LOADOUT_PROVIDER names: see [Context].
package provider

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/pattern"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

//go:embed shim.py
var shim []byte

// Dir is where a plan expects its files in the sandbox.
const Dir = sandbox.NeedsDir + "/.loadout"

const (
	shimFile    = "provider.py"
	contextFile = "provider.json"
)

// Variable names the file with the [Context].
const Variable = "LOADOUT_PROVIDER"

// Variant tells apart the processes of one provider that make different tools: it
// names the digest of what they are told.
const Variant = "LOADOUT_PROVIDER_VARIANT"

// Kinds of providers.
const (
	Command = "command"
	WASM    = "wasm"
	Python  = "python"
)

// ErrNone says that a skill has no provider.
var ErrNone = errors.New("the skill has no provider")

// Options say for whom tools are made.
type Options struct {
	Digest  string // of the skill
	Person  string // name for whom; "" is not told
	Session string // "" is not told
}

// Start is how a provider is started. It is the caller's to change.
type Start struct {
	Kind string
	// Digest is that of the skill: another one needs another process.
	Digest string
	// Command is the program and its arguments, the first word a path inside the
	// skill or an interpreter.
	Command []string
	Env     map[string]string
	// Files are to be in [Dir], read-only.
	Files map[string][]byte
}

// Context is what a provider is told: never a token or a secret.
type Context struct {
	Skill   string          `json:"skill"`
	Module  string          `json:"module,omitempty"` // of Python
	Class   string          `json:"class,omitempty"`
	Config  json.RawMessage `json:"config,omitempty"` // of the skill
	Tools   []Declared      `json:"tools"`
	Person  string          `json:"person,omitempty"`
	Session string          `json:"session,omitempty"`
}

// Declared is a tool as the skill declares it, with the skill's configuration
// merged under its own.
type Declared struct {
	skill.Tool
	Config map[string]any `json:"config,omitempty"`
}

var (
	moduleName = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
	className  = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Plan says how the provider of a skill is started. The error is [ErrNone] where
// it has none, else it says what of the front matter is wrong.
func Plan(s *skill.Skill, o Options) (*Start, error) {
	p := s.Provider
	if p == nil {
		return nil, ErrNone
	}
	c := Context{Skill: s.Name, Config: s.Config, Tools: []Declared{}, Person: o.Person, Session: o.Session}
	for _, t := range s.Tools {
		config, err := merge(s.Config, t.Config)
		if err != nil {
			return nil, fmt.Errorf("skill %s: tool %s: %w", s.Name, t.Name, err)
		}
		c.Tools = append(c.Tools, Declared{Tool: t, Config: config})
	}
	start := &Start{Digest: o.Digest, Env: map[string]string{Variable: Dir + "/" + contextFile}, Files: map[string][]byte{}}
	switch {
	case len(p.Command) > 0:
		start.Kind, start.Command = Command, p.Command
	case p.WASM != "":
		start.Kind, start.Command = WASM, []string{inside(p.WASM)}
	case p.Class != "":
		c.Module, c.Class = strings.TrimSuffix(p.Module, ".py"), p.Class
		if c.Module == "" {
			c.Module = "provider"
		}
		if !moduleName().MatchString(c.Module) || !className().MatchString(c.Class) {
			return nil, fmt.Errorf("skill %s: provider: module %q and class %q are not names of Python: write module: provider and class: NAME in SKILL.md", s.Name, p.Module, p.Class)
		}
		// The module is named for the build step: it says what packages are needed.
		start.Kind = Python
		start.Command = []string{"python3", Dir + "/" + shimFile, sandbox.SkillDir + "/" + strings.ReplaceAll(c.Module, ".", "/") + ".py"}
		start.Files[shimFile] = shim
	default:
		return nil, fmt.Errorf("skill %s: provider: it names neither a class nor a command nor a wasm file: add one in SKILL.md", s.Name)
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("skill %s: provider: %w", s.Name, err)
	}
	start.Files[contextFile] = data
	start.Env[Variant] = skill.Hash(data)[:16]
	return start, nil
}

// inside is a path as one inside the skill, never the name of a program.
func inside(p string) string {
	if strings.HasPrefix(p, sandbox.SkillDir+"/") {
		return p
	}
	return sandbox.SkillDir + "/" + strings.TrimPrefix(p, "./")
}

// merge puts a tool's settings over those of its skill.
func merge(under, over json.RawMessage) (map[string]any, error) {
	out := map[string]any{}
	for _, text := range []json.RawMessage{under, over} {
		if len(text) == 0 {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, fmt.Errorf("config is no object: %w", err)
		}
		for k, v := range m {
			out[k] = v
		}
	}
	return out, nil
}
