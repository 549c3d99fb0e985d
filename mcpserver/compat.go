package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// Compats are the names of the earlier systems whose tools can be served.
func Compats() []string { return []string{"weknora", "ba-agent", "wegent"} }

// addCompatTools adds the tools of an earlier system. Where there is no skill
// to tell of, there is no tool, as it was there.
func (s *Server) addCompatTools() {
	snap := s.rt.Catalog().Snapshot()
	name := map[string]string{"weknora": "read_skill", "ba-agent": "activate_skill", "wegent": "load_skill"}[s.opts.Compat]
	if name == "" {
		panic(fmt.Sprintf("mcpserver: unknown Compat %q, want one of %s", s.opts.Compat, strings.Join(Compats(), ", ")))
	}
	if len(snap.Offered()) == 0 {
		s.sdk.RemoveTools(name)
		return
	}
	description, _ := s.compatDescription(name, snap)
	tool := &mcp.Tool{Name: name, Annotations: readOnly, Description: description}
	switch s.opts.Compat {
	case "weknora":
		mcp.AddTool(s.sdk, tool, s.compatRead)
	case "ba-agent":
		mcp.AddTool(s.sdk, tool, s.compatActivate)
	case "wegent":
		mcp.AddTool(s.sdk, tool, s.compatLoad)
	}
}

func (s *Server) compatDescription(tool string, snap *catalog.Snapshot) (string, bool) {
	list := catalog.Text(snap.Offered(), catalog.TextOptions{Characters: s.opts.TextBudget / 2, More: "… and %d more"})
	switch tool {
	case "read_skill":
		return "Read the instructions of a skill, or with file_path one of its files. Skills:\n" + list, true
	case "activate_skill":
		return "Activate a skill: 1. compare the task with the list; 2. call this tool with the name of the skill that fits; 3. read the instructions it returns; 4. follow them. Skills:\n" + list, true
	case "load_skill":
		return "Load the instructions of a skill before starting work that it fits. Skills:\n" + list, true
	}
	return "", false
}

func (s *Server) available() string {
	var names []string
	for _, e := range s.view().snap.Offered() {
		names = append(names, e.Name)
	}
	return strings.Join(names[:min(len(names), 50)], ", ")
}

// weknora

type compatReadArgs struct {
	SkillName string `json:"skill_name" jsonschema:"name of the skill"`
	FilePath  string `json:"file_path,omitempty" jsonschema:"path of a file inside the skill"`
}

type compatReadResult struct {
	SkillName          string   `json:"skill_name"`
	Description        string   `json:"description,omitempty"`
	Instructions       string   `json:"instructions,omitempty"`
	InstructionsLength int      `json:"instructions_length,omitempty"`
	Files              []string `json:"files,omitempty"`
	FilePath           string   `json:"file_path,omitempty"`
	Content            string   `json:"content,omitempty"`
	ContentLength      int      `json:"content_length,omitempty"`
}

func (s *Server) compatRead(ctx context.Context, req *mcp.CallToolRequest, in compatReadArgs) (*mcp.CallToolResult, *compatReadResult, error) {
	if in.FilePath != "" {
		res, file, err := s.readSkillFile(ctx, req, readArgs{Skill: in.SkillName, Path: in.FilePath})
		if err != nil || res.IsError {
			return res, nil, err
		}
		out := &compatReadResult{SkillName: in.SkillName, FilePath: file.Path}
		if t, ok := res.Content[0].(*mcp.TextContent); ok {
			out.Content, out.ContentLength = t.Text, len(t.Text)
		}
		return res, out, nil
	}
	m, err := s.fetchOne(ctx, in.SkillName)
	if err != nil {
		return failed(s.loadError(err)), nil, nil
	}
	out := &compatReadResult{SkillName: m.ID.Name, Instructions: m.Instructions, InstructionsLength: len(m.Instructions)}
	if e, err := s.view().snap.Get(m.ID.Key()); err == nil {
		out.Description = e.Description
	}
	for _, f := range m.Files {
		if skill.IsFileName(f.Path) {
			continue
		}
		if f.Script {
			f.Path += " (script)"
		}
		out.Files = append(out.Files, f.Path)
	}
	return text(out.Description + "\n\n" + session.Render(m)), out, nil
}

func (s *Server) fetchOne(ctx context.Context, name string) (*session.Material, error) {
	all, err := s.rt.Fetch(ctx, name)
	if err != nil {
		return nil, err
	}
	m := all[len(all)-1]
	m.Location = s.location(m)
	return m, nil
}

// ba-agent

type compatActivateArgs struct {
	SkillName string `json:"skill_name" jsonschema:"name of the skill"`
}

type compatMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
	IsMeta  bool   `json:"isMeta,omitempty"`
}

type compatActivateResult struct {
	SkillName       string          `json:"skill_name"`
	Success         bool            `json:"success"`
	Error           string          `json:"error,omitempty"`
	Messages        []compatMessage `json:"messages,omitempty"`
	ContextModifier map[string]any  `json:"context_modifier,omitempty"`
}

// compatActivate answers with the two messages that the system it stands for
// puts into its conversation. Permissions and a model that a skill asks for
// are no business of a server and are left out.
func (s *Server) compatActivate(ctx context.Context, _ *mcp.CallToolRequest, in compatActivateArgs) (*mcp.CallToolResult, *compatActivateResult, error) {
	m, err := s.fetchOne(ctx, in.SkillName)
	if err != nil {
		msg := fmt.Sprintf("%s. Available skills: %s", err, s.available())
		return failed(msg), &compatActivateResult{SkillName: in.SkillName, Error: msg}, nil
	}
	out := &compatActivateResult{SkillName: m.ID.Name, Success: true, Messages: []compatMessage{
		{Role: "user", Content: fmt.Sprintf("<command-message>The \"%s\" skill is loading</command-message>\n<command-name>%s</command-name>", m.Title, m.ID.Name)},
		{Role: "user", Content: "# " + m.Title + " Skill\n\n" + session.FillPlaces(m.Instructions, m.Location), IsMeta: true},
	}}
	if e, err := s.view().snap.Get(m.ID.Key()); err == nil && e.DisableModelInvocation {
		out.ContextModifier = map[string]any{"disable_model_invocation": true}
	}
	return text(session.Render(m)), out, nil
}

// wegent

type compatLoadArgs struct {
	SkillName string `json:"skill_name" jsonschema:"name of the skill"`
}

func (s *Server) compatLoad(ctx context.Context, _ *mcp.CallToolRequest, in compatLoadArgs) (*mcp.CallToolResult, any, error) {
	m, err := s.fetchOne(ctx, in.SkillName)
	switch {
	case err != nil:
		return failed(fmt.Sprintf("Error: Skill '%s' is not available. Available skills: %s", in.SkillName, s.available())), nil, nil
	case strings.TrimSpace(m.Instructions) == "":
		return failed(fmt.Sprintf("Error: Skill '%s' has no prompt content.", m.ID.Name)), nil, nil
	}
	return text(fmt.Sprintf("Skill '%s' has been loaded. Follow its instructions strictly.\n\n%s", m.ID.Name, session.Render(m))), nil, nil
}

// ValidCompat reports whether a name is one of [Compats], or "".
func ValidCompat(name string) bool { return name == "" || slices.Contains(Compats(), name) }
