package agents

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/loadout-dev/loadout/skill"
)

// Document is one thing that is to be there, as somebody wrote it.
type Document struct {
	APIVersion  string
	Kind        string
	Namespace   string // as written: "" and default are one's own, public is everybody's, else a group
	Name        string
	Description string
	// BaseGeneration is the generation of the thing that it was made from: where the thing is of
	// another one by now, it is refused. 0 takes the place of whatever is there.
	BaseGeneration int64
	// Spec is what it consists of, nil where that cannot be read or is passed over.
	Spec Spec

	// Line and Column are where its name is, or the document begins.
	Line, Column int
	// Findings are what is wrong with it. With an [skill.Error] it is refused.
	Findings skill.Diagnostics
	// Skipped says that it is of a kind that there is none of here.
	Skipped bool
}

// Spec is what one kind consists of: a *[Ghost], *[Bot], *[Team], *[Model],
// *[MCPServer] or *[Skill].
type Spec interface {
	kind() string
	// references are the things that it names.
	references() []reference
}

// reference is one thing that a spec names.
type reference struct {
	slot string // where, as in: skills
	kind string
	name string
	in   string   // the namespace as written, "" for none
	ref  SkillRef // of a skill that is named precisely
}

// Ref names a thing of another kind: by its name, looked for in the namespace of who
// names it, or in one that is written.
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

// SkillRef names a skill more precisely than its name. What is empty is not asked for.
type SkillRef struct {
	ID        string `json:"skill_id,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Public    bool   `json:"is_public,omitempty"`
	Digest    string `json:"content_hash,omitempty"`
}

// Selection is the skills and MCP servers that a Ghost has, or a Bot besides those of
// its Ghost. It is kept as it was asked for, and what it names is found when it is used.
type Selection struct {
	// Skills are the names of those that there are; nil is all, and an empty list none.
	Skills []string `json:"skills,omitzero"`
	// Preload are those of Skills that are in force from the beginning.
	Preload []string `json:"preload_skills,omitempty"`
	// SkillRefs say which skills are meant by some of the names.
	SkillRefs map[string]SkillRef `json:"skill_refs,omitempty"`
	// MCPServers is a map of servers, or a list of names of those defined elsewhere,
	// in a form that [upstream.ParseMap] reads.
	MCPServers json.RawMessage `json:"mcpServers,omitempty"`

	serverNames []string // of servers, in MCPServers
}

// Ghost is what an agent knows and can do: instructions, skills, servers.
type Ghost struct {
	SystemPrompt string `json:"systemPrompt,omitempty"`
	Selection
	// Expose is how its tools are shown over MCP: meta, direct, or "" for the default.
	Expose string `json:"expose,omitempty"`
	// Policy are rules about calls of tools, as [policy.ParseRules] reads them.
	Policy []string `json:"policy,omitempty"`
}

// Bot is a Ghost with a model.
type Bot struct {
	Ghost Ref `json:"ghostRef"`
	// Model is the one that it runs on; without a name it is the hub's default.
	Model *Ref `json:"modelRef,omitempty"`
	Selection
}

// Team is Bots that work together. The first that is a leader, else the first of all,
// is talked with.
type Team struct {
	Members       []Member `json:"members"`
	Collaboration string   `json:"collaborationModel,omitempty"` // as written; it is not acted upon
}

// Member is one Bot of a Team.
type Member struct {
	Bot    Ref    `json:"botRef"`
	Prompt string `json:"prompt,omitempty"` // behind what its Ghost says
	Role   string `json:"role,omitempty"`   // leader, or whatever its author calls it
	// Confirm says that a person is asked before a task is handed to it.
	Confirm bool `json:"requireConfirmation,omitempty"`
}

// LeaderRole is the role of the member that is talked with.
const LeaderRole = "leader"

// Model is a language model at an address.
type Model struct {
	Vendor string `json:"vendor"` // anthropic, openai (and all that speak like it) or demo
	Model  string `json:"model,omitempty"`
	// BaseURL is where it answers; "" is the vendor's own address.
	BaseURL string `json:"baseUrl,omitempty"`
	// Key is a reference to its key, as ${{secrets.NAME}}, "" for none.
	Key string `json:"apiKey,omitempty"`
}

// MCPServer is an MCP server that is not of one Ghost: those who see it have it.
type MCPServer struct {
	// Config is one server, in a form that [upstream.ParseMap] reads below its name.
	Config json.RawMessage
}

// Skill is a skill that is no more than instructions.
type Skill struct {
	// Fields are its frontmatter without the name, a JSON object.
	Fields json.RawMessage
	Prompt string
}

func (*Ghost) kind() string     { return GhostKind }
func (*Bot) kind() string       { return BotKind }
func (*Team) kind() string      { return TeamKind }
func (*Model) kind() string     { return ModelKind }
func (*MCPServer) kind() string { return ServerKind }
func (*Skill) kind() string     { return SkillKind }

// MarshalJSON is the configuration as it is.
func (s *MCPServer) MarshalJSON() ([]byte, error) { return s.Config, nil }

// UnmarshalJSON keeps the configuration.
func (s *MCPServer) UnmarshalJSON(data []byte) error {
	s.Config = bytes.Clone(data)
	return nil
}

// MarshalJSON is the fields with the instructions among them as prompt.
func (s *Skill) MarshalJSON() ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(s.Fields, &fields); err != nil {
		return nil, err
	}
	prompt, err := encodeJSON(s.Prompt)
	fields["prompt"] = prompt
	if err != nil {
		return nil, err
	}
	return encodeJSON(fields)
}

// encodeJSON is a value as JSON on one line, members of maps in order, with no character
// escaped that need not be.
func encodeJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// canonicalJSON is JSON as it is kept: the same value is the same bytes.
func canonicalJSON(raw json.RawMessage) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return encodeJSON(v)
}

// Encode returns the document as JSON that [Parse] reads, with the API version of
// ours. It fails for one that has no spec.
func (d *Document) Encode() ([]byte, error) {
	if d.Spec == nil {
		return nil, fmt.Errorf("%s %q has no spec", d.Kind, d.Name)
	}
	spec, err := encodeJSON(d.Spec)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", d.Kind, d.Name, err)
	}
	type metadata struct {
		Name        string `json:"name"`
		Namespace   string `json:"namespace,omitempty"`
		Description string `json:"description,omitempty"`
	}
	return encodeJSON(struct {
		APIVersion string          `json:"apiVersion"`
		Kind       string          `json:"kind"`
		Metadata   metadata        `json:"metadata"`
		Spec       json.RawMessage `json:"spec"`
	}{APIVersion, d.Kind, metadata{d.Name, d.Namespace, d.Description}, spec})
}

// skillFile is the SKILL.md of a skill.
func (s *Skill) skillFile(name string) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(s.Fields, &fields); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	quoted, err := encodeJSON(name)
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
