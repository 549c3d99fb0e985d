package agents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/skill"
)

// Document is a resource definition as written by a user.
type Document struct {
	APIVersion  string
	Kind        string
	Namespace   string // as written: "", default, public or the name of a group; "" and default mean the user's own
	Name        string
	Description string
	// BaseGeneration is the generation that the edit started from. Apply refuses
	// the document if the current generation differs; 0 permits any.
	BaseGeneration int64
	// MustBeNew refuses the document if it would change an existing one, or if
	// references by name would resolve to it instead of an existing resource. A
	// document that exceeds a quota or MaxReferences is then refused too; otherwise
	// [Registry.Apply] returns an error.
	MustBeNew bool
	// ComingSkills maps the names of skills that are added to the document's namespace
	// before it is applied to their digests, for a dry run. References to them are
	// valid. A digest is "" if it is unknown.
	ComingSkills map[string]string
	// Spec is nil if it is invalid or the document is skipped.
	Spec Spec

	// Line and Column locate the name, or the document if it has none.
	Line, Column int
	// Findings lists problems. A document with an error is refused.
	Findings skill.Diagnostics
	// Skipped is set if the kind is unknown.
	Skipped bool
}

// Spec is the content of a document: a *[Ghost], *[Bot], *[Team], *[Model],
// *[MCPServer] or *[Skill].
type Spec interface {
	kind() string
	// references returns the references in the spec to other resources.
	references() []reference
}

// reference is a reference in a spec to another resource.
type reference struct {
	slot string // field that contains the reference, such as skills
	kind string
	name string
	in   string   // namespace as written; may be empty
	ref  SkillRef // only for a skill
}

// References yields the kind of each resource to which the document refers, and its
// name as written. A resource can occur more than once.
func (d *Document) References() iter.Seq2[string, Ref] {
	return func(yield func(kind string, ref Ref) bool) {
		if d.Spec == nil {
			return
		}
		for _, ref := range d.Spec.references() {
			if !yield(ref.kind, Ref{ref.name, cmp.Or(ref.in, ref.ref.Namespace)}) {
				return
			}
		}
	}
}

// Ref names a resource. Without a namespace, it is looked up in all namespaces
// that the document can refer to.
type Ref struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

func (r Ref) String() string {
	if r.Namespace != "" {
		return r.Namespace + "/" + r.Name
	}
	return r.Name
}

// SkillRef restricts which skill a name can refer to. An empty field matches any
// skill.
type SkillRef struct {
	ID        string `json:"skill_id,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Public    bool   `json:"is_public,omitempty"`
	Digest    string `json:"content_hash,omitempty"`
}

// Selection names the skills and MCP servers of a Ghost or Bot. A Bot also gets
// the skills and servers of its Ghost. Names are resolved when they are used.
type Selection struct {
	// Skills lists the available skills. Nil means all; an empty list means none.
	Skills []string `json:"skills,omitzero"`
	// Preload lists the skills that are loaded from the start.
	Preload []string `json:"preload_skills,omitempty"`
	// SkillRefs restricts which skills the names can refer to.
	SkillRefs map[string]SkillRef `json:"skill_refs,omitempty"`
	// MCPServers is a map of servers, or a list of names of servers defined
	// elsewhere, in the syntax of [upstream.ParseMap].
	MCPServers json.RawMessage `json:"mcpServers,omitempty"`

	serverNames []string // names listed in MCPServers
}

// Ghost is an agent configuration without a model: instructions, skills and
// servers.
type Ghost struct {
	SystemPrompt string `json:"systemPrompt,omitempty"`
	Selection
	// Expose selects how MCP clients see the agent's tools: meta, direct, or ""
	// for the default.
	Expose string `json:"expose,omitempty"`
	// Policy lists rules for tool calls, in the syntax of [policy.ParseRules].
	Policy []string `json:"policy,omitempty"`
}

// Bot combines a Ghost with a model.
type Bot struct {
	Ghost Ref `json:"ghostRef"`
	// Model is nil for the hub's default model.
	Model *Ref `json:"modelRef,omitempty"`
	Selection
}

// Team is a group of Bots. Users talk to the first member with the role leader,
// or to the first member if there is no leader.
type Team struct {
	Members       []Member `json:"members"`
	Collaboration string   `json:"collaborationModel,omitempty"` // stored but not used
}

// Member is a Bot of a Team.
type Member struct {
	Bot    Ref    `json:"botRef"`
	Prompt string `json:"prompt,omitempty"` // appended to the Ghost's prompt
	Role   string `json:"role,omitempty"`   // leader, or any text
	// Confirm requires the user's approval before the member receives a task.
	Confirm bool `json:"requireConfirmation,omitempty"`
}

// LeaderRole is the role of the member that users talk to.
const LeaderRole = "leader"

// Model configures a language model.
type Model struct {
	Vendor string `json:"vendor"` // anthropic, openai (or compatible) or demo
	Model  string `json:"model,omitempty"`
	// BaseURL is the address of the API; "" selects the vendor's.
	BaseURL string `json:"baseUrl,omitempty"`
	// Key is a reference to the API key, such as ${{secrets.NAME}}; "" for none.
	Key string `json:"apiKey,omitempty"`
	// Images reports whether the model reads images; nil if the document does not
	// say so, see [Model.ReadsImages].
	Images *bool `json:"images,omitempty"`
	// Window is the size of the context window in tokens; 0 if the document does not
	// say so.
	Window int `json:"window,omitempty"`
}

// MCPServer defines an MCP server for all users who can see the resource.
type MCPServer struct {
	// Config is the server's configuration, in the syntax of the values of
	// [upstream.ParseMap].
	Config json.RawMessage
}

// Skill is a skill that consists only of instructions.
type Skill struct {
	// Fields is the frontmatter without the name, as a JSON object.
	Fields json.RawMessage
	Prompt string
}

func (*Ghost) kind() string     { return GhostKind }
func (*Bot) kind() string       { return BotKind }
func (*Team) kind() string      { return TeamKind }
func (*Model) kind() string     { return ModelKind }
func (*MCPServer) kind() string { return ServerKind }
func (*Skill) kind() string     { return SkillKind }

// MarshalJSON returns the configuration as stored.
func (s *MCPServer) MarshalJSON() ([]byte, error) { return s.Config, nil }

// UnmarshalJSON stores a copy of data as the configuration.
func (s *MCPServer) UnmarshalJSON(data []byte) error {
	s.Config = bytes.Clone(data)
	return nil
}

// MarshalJSON encodes the frontmatter fields and adds the instructions as the
// field "prompt".
func (s *Skill) MarshalJSON() ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(s.Fields, &fields); err != nil {
		return nil, err
	}
	prompt, err := plainjson.Line(s.Prompt)
	fields["prompt"] = prompt
	if err != nil {
		return nil, err
	}
	return plainjson.Line(fields)
}

// Encode encodes the document as JSON that [Parse] accepts, with [APIVersion]. It
// returns an error if the document has no spec.
func (d *Document) Encode() ([]byte, error) {
	if d.Spec == nil {
		return nil, fmt.Errorf("%s %q has no spec", d.Kind, d.Name)
	}
	spec, err := plainjson.Line(d.Spec)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", d.Kind, d.Name, err)
	}
	type metadata struct {
		Name        string `json:"name"`
		Namespace   string `json:"namespace,omitempty"`
		Description string `json:"description,omitempty"`
	}
	return plainjson.Line(struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Metadata   metadata        `json:"metadata"`
		Spec       json.RawMessage `json:"spec"`
	}{APIVersion, d.Kind, metadata{d.Name, d.Namespace, d.Description}, spec})
}

// skillFile returns the skill as a SKILL.md.
func (s *Skill) skillFile(name string) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(s.Fields, &fields); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	quoted, err := plainjson.Line(name)
	fmt.Fprintf(&b, "---\nname: %s\n", quoted)
	for _, key := range sortedKeys(fields) {
		fmt.Fprintf(&b, "%s: %s\n", key, fields[key])
	}
	b.WriteString("---\n" + s.Prompt)
	return b.Bytes(), err
}

func (s *Selection) references() []reference {
	var out []reference
	for _, name := range s.Skills {
		out = append(out, reference{slot: "skills", kind: SkillKind, name: name, ref: s.SkillRefs[name]})
	}
	for _, name := range s.serverNames {
		out = append(out, reference{slot: "mcpServers", kind: ServerKind, name: name})
	}
	return out
}

func (g *Ghost) references() []reference { return g.Selection.references() }

func (b *Bot) references() []reference {
	out := []reference{b.Ghost.toReference("ghostRef", GhostKind)}
	if b.Model != nil {
		out = append(out, b.Model.toReference("modelRef", ModelKind))
	}
	return append(out, b.Selection.references()...)
}

func (t *Team) references() []reference {
	var out []reference
	for _, m := range t.Members {
		out = append(out, m.Bot.toReference("members", BotKind))
	}
	return out
}

func (*Model) references() []reference     { return nil }
func (*MCPServer) references() []reference { return nil }
func (*Skill) references() []reference     { return nil }

func (r Ref) toReference(slot, kind string) reference {
	return reference{slot: slot, kind: kind, name: r.Name, in: r.Namespace}
}
