package mcpserver

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

var readOnly = &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(bool)}

func (s *Server) addTools() {
	if s.opts.Compat != "" {
		s.addCompatTools()
		return
	}
	mcp.AddTool(s.sdk, &mcp.Tool{Name: "search_skills", Title: "Search skills", Annotations: readOnly,
		Description: "Find skills by what they are for. An empty query lists all."}, s.searchSkills)
	s.addLoadTool()
	mcp.AddTool(s.sdk, &mcp.Tool{Name: "read_skill_file", Title: "Read a file of a skill", Annotations: readOnly,
		Description: "Read a file of a skill by its path, as a skill's instructions name it."}, s.readSkillFile)
}

// addLoadTool adds load_skill, or its stand-in.
func (s *Server) addLoadTool() {
	if s.opts.Compat != "" {
		s.addCompatTools()
		return
	}
	mcp.AddTool(s.sdk, &mcp.Tool{Name: "load_skill", Title: "Load a skill", Annotations: readOnly,
		InputSchema: loadSchema, Description: s.loadDescription(s.rt.Catalog().Snapshot())}, s.loadSkill)
}

// loadSchema says that one of two names of one argument is needed, which a Go
// struct cannot.
var loadSchema = func() *jsonschema.Schema {
	sch, err := jsonschema.For[loadArgs](nil)
	if err != nil {
		panic(err)
	}
	delete(sch.Properties, "skill_name") // accepted, not advertised
	sch.AdditionalProperties = nil
	return sch
}()

// descriptionOf returns the description of a tool that depends on the catalog.
func (s *Server) descriptionOf(tool string, snap *catalog.Snapshot) (string, bool) {
	if s.opts.Compat != "" {
		return s.compatDescription(tool, snap)
	}
	if tool == "load_skill" {
		return s.loadDescription(snap), true
	}
	return "", false
}

type searchArgs struct {
	Query  string `json:"query,omitempty" jsonschema:"a few words on the task"`
	Limit  int    `json:"limit,omitempty" jsonschema:"at most so many; default 10, at most 50"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next of the page before"`
}

type searchHit struct {
	Name        string  `json:"name"`
	Origin      string  `json:"origin"`
	Description string  `json:"description"`
	Score       float64 `json:"score"`
}

type searchResult struct {
	Hits []searchHit `json:"hits"`
	Next string      `json:"next,omitempty"`
}

func (s *Server) searchSkills(ctx context.Context, _ *mcp.CallToolRequest, in searchArgs) (*mcp.CallToolResult, *searchResult, error) {
	if s.view().snap.Disabled {
		return failed(off), nil, nil
	}
	limit := in.Limit
	if limit <= 0 {
		limit = 10
	}
	limit = min(limit, 50)
	skip, err := decodeCursor(in.Cursor)
	if err != nil {
		return failed(err.Error()), nil, nil
	}
	hits, err := s.rt.Catalog().Search(ctx, in.Query, catalog.SearchOptions{Limit: skip + limit + 1, ForModel: true})
	if err != nil {
		return nil, nil, err
	}
	out := &searchResult{Hits: []searchHit{}}
	hits = hits[min(skip, len(hits)):]
	if len(hits) > limit {
		hits, out.Next = hits[:limit], encodeCursor(skip+limit)
	}
	var b strings.Builder
	for _, h := range hits {
		out.Hits = append(out.Hits, searchHit{h.Name, h.Origin, h.Description, h.Score})
		fmt.Fprintf(&b, "- %s: %s\n", h.Name, skill.OneLine(h.Description))
	}
	switch {
	case len(hits) == 0:
		b.WriteString("No skill fits. Try other words, or an empty query for the whole list.\n")
	case out.Next != "":
		fmt.Fprintf(&b, "There are more: search again with cursor %q.\n", out.Next)
	}
	return text(b.String()), out, nil
}

func encodeCursor(n int) string { return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(n))) }

func decodeCursor(c string) (int, error) {
	if c == "" {
		return 0, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(c)
	if err == nil {
		if n, err := strconv.Atoi(string(b)); err == nil && n >= 0 && n <= 1_000_000 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("cursor %q is not one that was given out; start again without it", c)
}

type loadArgs struct {
	Name      string `json:"name,omitempty" jsonschema:"name of the skill"`
	SkillName string `json:"skill_name,omitempty" jsonschema:"the same"`
	Have      string `json:"have,omitempty" jsonschema:"digest of the instructions you still hold, for a short answer if they are current"`
}

type loadFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Script bool   `json:"script,omitempty"`
}

type loadTool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

type loadResult struct {
	State        session.LoadState `json:"state" jsonschema:"loaded, already, degraded or failed"`
	Name         string            `json:"name"`
	Origin       string            `json:"origin,omitempty"`
	Digest       string            `json:"digest,omitempty"`
	Instructions string            `json:"instructions,omitempty"`
	Files        []loadFile        `json:"files,omitempty"`
	Tools        []loadTool        `json:"tools,omitempty"`
	Problems     []string          `json:"problems,omitempty"`
	Tokens       int               `json:"tokens,omitempty"`
}

func (s *Server) loadSkill(ctx context.Context, _ *mcp.CallToolRequest, in loadArgs) (*mcp.CallToolResult, *loadResult, error) {
	name := in.Name
	if name == "" {
		name = in.SkillName
	}
	if name == "" {
		return failed("give the name of a skill, as listed by search_skills"), nil, nil
	}
	all, err := s.rt.Fetch(ctx, name)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, err
		}
		res := failed(s.loadError(err))
		return res, &loadResult{State: session.StateFailed, Name: name, Problems: []string{err.Error()}}, nil
	}
	m := all[len(all)-1]
	out := &loadResult{State: session.StateLoaded, Name: m.ID.Name, Origin: m.ID.Origin, Digest: m.Digest}
	if in.Have != "" && in.Have == m.Digest {
		out.State = session.StateAlready
		return text(fmt.Sprintf("Skill %s is unchanged: what you hold is current.", m.ID.Name)), out, nil
	}
	var texts []string
	for _, m := range all {
		m.Location = s.location(m)
		texts = append(texts, session.Render(m))
		out.Problems = append(out.Problems, m.Problems...)
		out.Tokens += m.Tokens
	}
	if len(out.Problems) > 0 {
		out.State = session.StateDegraded
	}
	for _, f := range m.Files {
		if !skill.IsFileName(f.Path) {
			out.Files = append(out.Files, loadFile{f.Path, f.Size, f.Script})
		}
	}
	body := strings.Join(texts, "\n")
	out.Instructions = body
	return text(body), out, nil
}

// loadError says what to do when a load failed.
func (s *Server) loadError(err error) string {
	if s.view().snap.Disabled {
		return off
	}
	msg := err.Error()
	if loadout.IsNotFound(err) {
		msg += ". Find skills with search_skills."
	}
	return msg
}

// location is where the model's client finds the files of a skill: a path
// where both are on one machine, else the skill's URI.
func (s *Server) location(m *session.Material) string {
	if m.Location != "" && !s.opts.Remote {
		return m.Location
	}
	if uri := s.view().uriOf(m.ID.Key()); uri != "" {
		return uri
	}
	return ""
}

type readArgs struct {
	Skill  string `json:"skill" jsonschema:"name of the skill"`
	Path   string `json:"path" jsonschema:"path inside the skill, as references/guide.md"`
	Offset int64  `json:"offset,omitempty" jsonschema:"byte to start from"`
	Limit  int64  `json:"limit,omitempty" jsonschema:"at most so many bytes, at most 65536"`
	Digest string `json:"digest,omitempty" jsonschema:"digest that the skill was loaded with"`
}

type readResult struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Offset int64  `json:"offset"`
	Next   int64  `json:"next,omitempty" jsonschema:"offset to go on from"`
}

func (s *Server) readSkillFile(ctx context.Context, _ *mcp.CallToolRequest, in readArgs) (*mcp.CallToolResult, *readResult, error) {
	if s.view().snap.Disabled {
		return failed(off), nil, nil
	}
	e, err := s.rt.Catalog().Resolve(ctx, in.Skill)
	if err != nil {
		return failed(s.loadError(err)), nil, nil
	}
	if in.Digest != "" {
		if now, err := s.rt.Digest(ctx, e); err != nil || now != in.Digest {
			return failed(fmt.Sprintf("Skill %s has changed since it was loaded: load it again, then read its files.", e.Name)), nil, nil
		}
	}
	c, err := s.rt.ReadFile(ctx, e, in.Path, in.Offset, in.Limit)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, err
		}
		return failed(readError(err)), nil, nil
	}
	out := &readResult{Path: c.Path, Size: c.Size, SHA256: c.SHA256, Offset: c.Offset, Next: c.Next}
	return &mcp.CallToolResult{Content: s.fileContent(e, c)}, out, nil
}

func readError(err error) string {
	msg := err.Error()
	if errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrNotExist) {
		msg = strings.TrimSuffix(strings.TrimSuffix(msg, ": "+fs.ErrInvalid.Error()), ": "+fs.ErrNotExist.Error())
	}
	return msg
}

// fileContent is a file as content of a tool's result.
func (s *Server) fileContent(e *catalog.Entry, c *loadout.Content) []mcp.Content {
	switch {
	case !c.Binary && c.Next > 0:
		return []mcp.Content{&mcp.TextContent{Text: c.Text},
			&mcp.TextContent{Text: fmt.Sprintf("[%d of %d bytes; go on with offset %d]", c.Next, c.Size, c.Next)}}
	case !c.Binary:
		return []mcp.Content{&mcp.TextContent{Text: c.Text}}
	case c.Data != nil:
		return []mcp.Content{&mcp.ImageContent{Data: c.Data, MIMEType: c.MIME}}
	}
	out := []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%s is not text: %s, %d bytes.", c.Path, c.MIME, c.Size)}}
	if uri := s.view().uriOf(e.Key()); uri != "" {
		out = append(out, &mcp.ResourceLink{URI: uri + "/" + escapePath(c.Path), Name: c.Path, MIMEType: c.MIME, Size: &c.Size})
	}
	return out
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// failed is a tool's own error, for the model to read.
func failed(s string) *mcp.CallToolResult {
	res := text(s)
	res.IsError = true
	return res
}
