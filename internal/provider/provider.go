// Package provider plans how to start the provider of a skill's tools.
//
// A provider is a process that speaks MCP on standard input and output. It
// always runs in the sandbox, and only for an approved digest. It is an
// executable or a WebAssembly module of the skill, or a Python class in the
// style of Wegent, which has provider_name, supported_tools and create_tool. A
// shim loads the class. A function of a Python file is a provider too: it is
// the only tool, whose schema the shim derives from the signature and the
// docstring. The shim is a single Python file that is embedded in this program
// and needs only the standard library. It is mounted next to the skill and
// never read from the skill.
//
// [Plan] starts nothing. The runtime requests permission and creates the
// sandbox. A modified skill has a different digest, so the owner of the process
// starts a new process and drains the old one.
//
// A provider that is not a Python class reads its configuration, user and
// session from a JSON file, see [Context]. The variable LOADOUT_PROVIDER
// contains its path.
package provider

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

//go:embed shim.py
var shim []byte

// Dir is the directory of the provider's files in the sandbox.
const Dir = mountpoint.Needs + "/.loadout"

const (
	shimFile    = "provider.py"
	contextFile = "provider.json"
)

// Variable is the environment variable that contains the path of the [Context]
// file.
const Variable = "LOADOUT_PROVIDER"

// Variant is an environment variable that contains a digest of the [Context].
// It distinguishes processes of the same provider that provide different tools.
const Variant = "LOADOUT_PROVIDER_VARIANT"

// Kinds of providers.
const (
	Command  = "command"
	WASM     = "wasm"
	Python   = "python"
	Function = "function"
)

// ErrNone is returned if a skill has no provider.
var ErrNone = errors.New("skill has no provider")

// Options identifies the version of the skill, the user and the session.
type Options struct {
	Digest   string // digest of the skill
	UserName string // name of the user; "" to omit it
	Session  string // "" to omit it
}

// Start describes a provider process to start. The caller may modify it.
type Start struct {
	Kind string
	// Digest is the digest of the skill. A process must only be used for the
	// skill with this digest.
	Digest string
	// Command is the program and its arguments. The first word is an
	// interpreter or a path in the skill.
	Command []string
	Env     map[string]string
	// Files contains the files to mount read-only in [Dir], by name.
	Files map[string][]byte
}

// Context is the information that a provider receives. It never contains tokens
// or secrets.
type Context struct {
	Skill       string          `json:"skill"`
	Description string          `json:"description,omitempty"` // of the skill, for kind Function
	Module      string          `json:"module,omitempty"`      // name of the Python module, for kinds Python and Function
	Class       string          `json:"class,omitempty"`
	Function    string          `json:"function,omitempty"`
	Config      json.RawMessage `json:"config,omitempty"` // the skill's configuration
	Tools       []Declared      `json:"tools"`
	UserName    string          `json:"person,omitempty"`
	Session     string          `json:"session,omitempty"`
}

// Declared is a tool that the skill declares. Its configuration includes the
// defaults of the skill.
type Declared struct {
	skill.Tool
	Config map[string]any `json:"config,omitempty"`
}

var (
	moduleName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
	className  = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Plan returns the process to start for a skill's provider. If the skill has no
// provider, the error is [ErrNone]. Any other error describes a mistake in the
// frontmatter.
func Plan(s *skill.Skill, o Options) (*Start, error) {
	p := s.Provider
	if p == nil {
		return nil, ErrNone
	}
	c := Context{Skill: s.Name, Config: s.Config, Tools: []Declared{}, UserName: o.UserName, Session: o.Session}
	for _, t := range s.Tools {
		config, err := mergeSettings(s.Config, t.Config)
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
		start.Kind, start.Command = WASM, []string{skillPath(p.WASM)}
	case p.Class != "", p.Function != "":
		c.Module, c.Class, c.Function = strings.TrimSuffix(p.Module, ".py"), p.Class, p.Function
		start.Kind = Python
		if c.Function != "" {
			start.Kind, c.Description = Function, s.Description
		} else if c.Module == "" {
			c.Module = "provider"
		}
		if !moduleName.MatchString(c.Module) || !className.MatchString(c.Class+c.Function) {
			return nil, fmt.Errorf("skill %s: provider: invalid module %q or class or function %q in SKILL.md: want Python names, such as provider and PDFTools", s.Name, p.Module, p.Class+p.Function)
		}
		// The build step reads the required packages from the module in the
		// command.
		start.Command = []string{"python3", Dir + "/" + shimFile, mountpoint.Skill + "/" + strings.ReplaceAll(c.Module, ".", "/") + ".py"}
		start.Files[shimFile] = shim
	default:
		return nil, fmt.Errorf("skill %s: provider: missing class, command or wasm file; add one in SKILL.md", s.Name)
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("skill %s: provider: %w", s.Name, err)
	}
	start.Files[contextFile] = data
	start.Env[Variant] = skillfile.Hash(data)[:16]
	return start, nil
}

// skillPath returns the path of p in the skill directory of the sandbox. The
// result is always below that directory, so p cannot refer to a program on the
// host.
func skillPath(p string) string {
	if strings.HasPrefix(p, mountpoint.Skill+"/") {
		return p
	}
	return mountpoint.Skill + "/" + strings.TrimPrefix(p, "./")
}

// mergeSettings returns a tool's settings, with defaults from its skill's
// settings.
func mergeSettings(skillConfig, toolConfig json.RawMessage) (map[string]any, error) {
	out := map[string]any{}
	for _, text := range []json.RawMessage{skillConfig, toolConfig} {
		if len(text) == 0 {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, fmt.Errorf("invalid config: want an object: %w", err)
		}
		for k, v := range m {
			out[k] = v
		}
	}
	return out, nil
}
