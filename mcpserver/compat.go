package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/clientprofile"
	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/internal/skilltext"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/session"
)

// compatTool returns the name of the tool that loads skills in an earlier
// system.
func compatTool(system string) string {
	switch system {
	case "weknora":
		return toolname.ReadSkill
	case "ba-agent":
		return toolname.ActivateSkill
	case "wegent":
		return toolname.LoadSkill
	}
	panic(fmt.Sprintf("mcpserver: unknown Compat %q, want one of %s", system, strings.Join(toolname.CompatSystems(), ", ")))
}

// addCompatTool adds an earlier system's tool unless skills are disabled. If
// there are no skills, the tool is hidden; see compatCatalogText. It reports
// whether the tool is registered.
func (s *Server) addCompatTool(sdk *mcp.Server) bool {
	if s.view().snap.Disabled {
		return s.hasLoadTool
	}
	tool := &mcp.Tool{Name: s.loadTool, Annotations: readOnly}
	switch s.opts.Compat {
	case "weknora":
		addTool(sdk, tool, (*Server).compatRead)
	case "ba-agent":
		addTool(sdk, tool, (*Server).compatActivate)
	case "wegent":
		mcp.AddTool(sdk, tool, s.compatLoad)
	}
	return true
}

// compatCatalogText returns a catalog text that has the whole catalog in the
// tool description, as in the earlier systems.
func (s *Server) compatCatalogText(snap *catalog.Snapshot) catalogText {
	const skills = "Skills are instructions and files for particular kinds of work. Before a task that a skill fits, call "
	offered := snap.ForModel()
	t := catalogText{hidden: snap.Disabled || len(offered) == 0}
	switch {
	case snap.Disabled:
		t.instructions = skillsDisabled
	case s.opts.Compat == "weknora":
		t.instructions = skills + "read_skill with its name and follow its instructions; the same tool reads its files with file_path."
		t.description = "Read the instructions of a skill, or one of its files with file_path."
	case s.opts.Compat == "ba-agent":
		t.instructions = skills + "activate_skill with its name and follow its instructions."
		t.description = "Activate a skill: 1. compare the task with the list; 2. call this tool with the name of the skill that fits; 3. read the instructions it returns; 4. follow them."
	default:
		t.instructions = skills + "load_skill with its name and follow its instructions."
		t.description = "Load the instructions of a skill before starting work that it fits."
	}
	if !t.hidden {
		t.description += " Skills:\n" + catalog.Format(offered, catalog.FormatOptions{Characters: cmp.Or(s.opts.TextBudget, clientprofile.Unknown().Catalog), More: "… and %d more"})
	}
	return t
}

// available returns the names of the skills that models may load, for a
// message.
func (s *Server) available() string { return namesOf(s.view().snap.ForModel(), 50) }

// The following functions serve weknora.

type compatReadArgs struct {
	SkillName string `json:"skill_name" jsonschema:"name of the skill"`
	FilePath  string `json:"file_path,omitempty" jsonschema:"path of a file inside the skill"`
	// Digest is needed only for the files of skills of MCP servers.
	Digest string `json:"digest,omitempty" jsonschema:"with file_path, the digest from the result that returned the skill, if it has one"`
}

type compatReadResult struct {
	SkillName          string   `json:"skill_name"`
	Description        string   `json:"description,omitempty"`
	Instructions       string   `json:"instructions,omitempty"`
	InstructionsLength int      `json:"instructions_length,omitempty"`
	Files              []string `json:"files,omitempty"`
	Digest             string   `json:"digest,omitempty"` // of a skill of an MCP server
	FilePath           string   `json:"file_path,omitempty"`
	Warning            string   `json:"warning,omitempty"` // about hidden characters of the content
	Content            string   `json:"content,omitempty"`
	ContentLength      int      `json:"content_length,omitempty"`
}

func (s *Server) compatRead(ctx context.Context, in compatReadArgs) (*mcp.CallToolResult, *compatReadResult, error) {
	if in.FilePath != "" {
		return s.compatReadFile(ctx, in)
	}
	all, err := s.fetch(ctx, in.SkillName)
	if err != nil {
		return s.compatFailed(ctx, err), nil, ctx.Err()
	}
	s.reportLoad(ctx, all)
	m := all[len(all)-1]
	instructions := renderInstructions(all)
	description := untrusted.New(m.Description).ForModelLines()
	out := &compatReadResult{SkillName: m.ID.Name, Description: description, Instructions: instructions, InstructionsLength: len(instructions)}
	for _, f := range m.Files {
		if skillpath.IsSkillFile(f.Path) {
			continue
		}
		path := untrusted.New(f.Path).ForModel()
		if f.Script {
			path += " (script)"
		}
		out.Files = append(out.Files, path)
	}
	text := description + "\n\n" + renderAll(all)
	if skillname.IsServed(m.ID.Name, m.ID.Origin) {
		out.Digest = m.Digest
		text += "\nDigest: " + shownDigest(m) + "\n"
	}
	return textResult(text), out, nil
}

func (s *Server) compatReadFile(ctx context.Context, in compatReadArgs) (*mcp.CallToolResult, *compatReadResult, error) {
	e, c, res, err := s.readFile(ctx, readArgs{Skill: in.SkillName, Path: in.FilePath, Digest: in.Digest})
	if c == nil {
		return res, nil, err
	}
	out := &compatReadResult{SkillName: e.Name, FilePath: c.Path, Warning: c.Warning, Content: c.Text, ContentLength: len(c.Text)}
	switch content := s.fileContent(e, c); {
	case c.Next > 0: // the earlier tool had no offset parameter
		out.Content += fmt.Sprintf("\n[truncated: %d of %d bytes]", c.Next, c.Size)
		text := out.Content
		if c.Warning != "" {
			text = c.Warning + "\n\n" + text
		}
		return textResult(text), out, nil
	case c.Binary:
		return &mcp.CallToolResult{Content: content}, nil, nil
	default:
		return &mcp.CallToolResult{Content: content}, out, nil
	}
}

func (s *Server) compatFailed(ctx context.Context, err error) *mcp.CallToolResult {
	if ctx.Err() != nil {
		return nil
	}
	if refused, ok := errors.AsType[*loadout.RefusedError](err); ok {
		return errorResult(s.refusalText(refused))
	}
	msg := strings.TrimSuffix(s.errorText(err), ".")
	if !strings.HasSuffix(msg, "?") {
		msg += "."
	}
	return errorResult(msg + " Available skills: " + s.available())
}

// The following functions serve ba-agent.

type compatActivateArgs struct {
	SkillName string `json:"skill_name" jsonschema:"name of the skill"`
}

// Some clients show the structured result to their model, so that it contains
// only what looks like a pattern of a tool or the name of a model.
var (
	compatToolPattern = lazyregexp.New(`^[A-Za-z_][\w.*/-]{0,100}(\([\w.*:@/~ ,=-]{0,100}\))?$`)
	compatModel       = lazyregexp.New(`^[A-Za-z0-9][\w.:/@-]{0,100}$`)
)

// compatActivate loads a skill and returns the messages that ba-agent adds to
// its conversation. For an approved skill, it also returns the skill's allowed
// tools and model. They are only data: a server cannot apply them.
func (s *Server) compatActivate(ctx context.Context, in compatActivateArgs) (*mcp.CallToolResult, *session.Activation, error) {
	all, err := s.fetch(ctx, in.SkillName)
	if err != nil {
		res := s.compatFailed(ctx, err)
		if res == nil {
			return nil, nil, ctx.Err()
		}
		failed := session.LoadResult{State: session.StateFailed, Text: res.Content[0].(*mcp.TextContent).Text}
		return res, failed.Activation(in.SkillName), nil
	}
	s.reportLoad(ctx, all)
	m := *all[len(all)-1]
	principal, _ := requestPrincipal(ctx)
	if !s.rt.Runner().IsTextApproved(ctx, m.ID.Key(), m.Digest, execution.Caller{Principal: principal, Session: s.opts.Session}) {
		m.AllowedTools, m.Model = nil, ""
	}
	m.AllowedTools = slices.DeleteFunc(slices.Clone(m.AllowedTools), func(tool string) bool { return !compatToolPattern.MatchString(tool) })
	if !compatModel.MatchString(m.Model) {
		m.Model = ""
	}
	instructions := renderInstructions(all)
	loaded := session.LoadResult{State: session.StateLoaded, Skill: &m, Text: instructions}
	return textResult(renderAll(all)), loaded.Activation(in.SkillName), nil
}

// The following functions serve wegent.

type compatLoadArgs struct {
	SkillName string `json:"skill_name" jsonschema:"name of the skill"`
}

func (s *Server) compatLoad(ctx context.Context, _ *mcp.CallToolRequest, in compatLoadArgs) (*mcp.CallToolResult, any, error) {
	all, err := s.fetch(ctx, in.SkillName)
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case isRefusedRun(err):
		return s.compatFailed(ctx, err), nil, nil
	case err != nil:
		return errorResult(fmt.Sprintf("Error: Skill '%s' is not available. Available skills: %s", in.SkillName, s.available())), nil, nil
	}
	s.reportLoad(ctx, all)
	m := all[len(all)-1]
	if skilltext.Body(m.Instructions, m.Location) == "" {
		return errorResult(fmt.Sprintf("Error: Skill '%s' has no prompt content.", m.ID.Name)), nil, nil
	}
	body := renderInstructions(all)
	if rest := skilltext.Appendix(m.Files, m.Location, m.Problems); rest != "" {
		body += "\n\n" + rest
	}
	return textResult(fmt.Sprintf("Skill '%s' has been loaded. These are its instructions; follow them strictly.\n\n%s", m.ID.Name, body)), nil, nil
}
