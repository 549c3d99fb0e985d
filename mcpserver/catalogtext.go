package mcpserver

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// catalogText is the description of the catalog that a connection receives when
// it starts.
type catalogText struct {
	instructions string // server instructions
	description  string // description of the tool that loads skills
	hidden       bool   // whether that tool is not listed
}

// catalogTextOf returns the catalog text of a view.
func (s *Server) catalogTextOf(v *view) catalogText {
	v.textOnce.Do(func() {
		switch {
		case s.opts.ToolsOnly:
			v.text = catalogText{description: "Load a skill."}
		case s.opts.Compat != "":
			v.text = s.compatCatalogText(v.snap)
		default:
			v.text = catalogText{instructions: s.instructions(v.snap), description: s.loadDescription(v.snap)}
		}
	})
	return v.text
}

// catalogTexts stores the catalog text of each lasting connection. Requests
// without a session (HTTP since 2026-07-28) get the current text.
type catalogTexts struct {
	mu    sync.Mutex
	conns map[*mcp.ServerSession]*conn
}

// conn records the catalog text and the variant of the tools that were first
// sent to a connection. They do not change.
type conn struct {
	text     catalogText
	textOnly bool              // see isTextOnly
	seen     *catalog.Snapshot // latest snapshot reported to the connection
}

// get returns the catalog text for the connection of req.
func (t *catalogTexts) get(s *Server, req mcp.Request) catalogText {
	if c := t.conn(s, req); c != nil {
		return c.text
	}
	return s.catalogTextOf(s.view())
}

// isTextOnly reports whether the client of req gets only text from the tools in
// [textTools].
func (t *catalogTexts) isTextOnly(s *Server, req mcp.Request) bool {
	if c := t.conn(s, req); c != nil {
		return c.textOnly
	}
	return isStructuredOnly(req)
}

// conn returns the record of the connection of req, or nil if the connection
// does not outlive the request.
func (t *catalogTexts) conn(s *Server, req mcp.Request) *conn {
	ss := lastingSession(req)
	if ss == nil {
		return nil
	}
	now := s.view()
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.conns[ss]; c != nil {
		return c
	}
	t.dropEndedLocked(s)
	c := &conn{text: s.catalogTextOf(now), textOnly: isStructuredOnly(req), seen: now.snap}
	t.conns[ss] = c
	return c
}

// dropEnded removes closed connections.
func (t *catalogTexts) dropEnded(s *Server) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropEndedLocked(s)
}

// dropEndedLocked is like dropEnded, but requires t.mu to be held.
func (t *catalogTexts) dropEndedLocked(s *Server) {
	alive := map[*mcp.ServerSession]*conn{}
	for ss := range s.sessions() {
		if c := t.conns[ss]; c != nil {
			alive[ss] = c
		}
	}
	t.conns = alive
}

// changesSince describes the catalog changes since the last call for the same
// connection. It returns "" if there are none.
func (t *catalogTexts) changesSince(s *Server, req mcp.Request) string {
	if s.opts.WithoutNotices {
		return ""
	}
	ss := lastingSession(req)
	if ss == nil {
		return ""
	}
	now := s.view().snap
	t.mu.Lock()
	c := t.conns[ss]
	if c == nil || c.seen.Version >= now.Version {
		t.mu.Unlock()
		return ""
	}
	before := c.seen
	c.seen = now
	t.mu.Unlock()
	return describeChanges(before, now, s.opts.Compat == "")
}

// notice is the field of structured content for catalog changes.
type notice struct {
	Changes string `json:"news,omitempty"`
}

func (n *notice) set(changes string) { n.Changes = changes }

// withNotice appends catalog changes to a tool result. If the structured content has
// a field for them, it sets that too, because some clients show the model only one of
// the two.
func withNotice(res *mcp.CallToolResult, changes string) *mcp.CallToolResult {
	out := *res
	out.Content = append(slices.Clip(res.Content), &mcp.TextContent{Text: changes})
	if structured, ok := res.StructuredContent.(interface{ set(changes string) }); ok {
		structured.set(changes)
	}
	return &out
}

// describeChanges lists the skills that were added, removed or given a new
// description.
func describeChanges(before, now *catalog.Snapshot, search bool) string {
	old := map[string]*catalog.Entry{}
	for _, e := range before.ForModel() {
		old[e.Name] = e
	}
	var lines []string
	for _, e := range now.ForModel() {
		was := old[e.Name]
		delete(old, e.Name)
		if was == nil || was.Description != e.Description {
			lines = append(lines, catalog.Format([]*catalog.Entry{e}, catalog.FormatOptions{Characters: 300}))
		}
	}
	var gone []string
	for name := range old {
		gone = append(gone, untrusted.New(name).ForModel())
	}
	slices.Sort(gone)
	const most = 20
	var b strings.Builder
	if len(lines) > 0 {
		b.WriteString("New or changed skills:\n")
		b.WriteString(strings.Join(lines[:min(len(lines), most)], ""))
		if rest := len(lines) - most; rest > 0 {
			fmt.Fprintf(&b, "… and %d more", rest)
			if search {
				b.WriteString(": find them with search_skills")
			}
			b.WriteByte('\n')
		}
	}
	if len(gone) > 0 {
		b.WriteString("Removed skills: " + strings.Join(gone[:min(len(gone), most)], ", "))
		if rest := len(gone) - most; rest > 0 {
			fmt.Fprintf(&b, " and %d more", rest)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// lastingSession returns the request's connection if it outlives the request,
// or nil.
func lastingSession(req mcp.Request) *mcp.ServerSession {
	ss, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || ss == nil {
		return nil
	}
	if extra := req.GetExtra(); extra != nil && extra.Header != nil && ss.ID() == "" {
		return nil
	}
	return ss
}

const (
	guide          = "Skills are instructions and files for particular kinds of work. Before a task that a skill fits, call load_skill with its name and follow what it says; read its files with read_skill_file. If none of those listed fits, try search_skills."
	skillsDisabled = "Skills are switched off by the configuration (skills.enabled)."
)

// instructions returns the server's instructions: how to use the tools, and
// part of the catalog text. Clients show a model different parts of the
// instructions and tool descriptions, and truncate both at about 2,000
// characters.
func (s *Server) instructions(snap *catalog.Snapshot) string {
	if s.opts.Preamble != "" {
		return truncate(s.opts.Preamble, 8000) + "\n\n" + s.guideText(snap)
	}
	return s.guideText(snap)
}

func (s *Server) guideText(snap *catalog.Snapshot) string {
	switch {
	case snap.Disabled:
		return skillsDisabled
	case snap.Count() == 0:
		return guide
	}
	return guide + "\n\nSkills:\n" + snap.Text(catalog.FormatOptions{Characters: s.textShare(snap, 2)})
}

// loadDescription returns the description of load_skill.
func (s *Server) loadDescription(snap *catalog.Snapshot) string {
	const lead = "Load the instructions of a skill. Do this before starting work that a skill fits."
	if snap.Count() == 0 {
		return lead
	}
	return lead + " Skills:\n" + snap.Text(catalog.FormatOptions{Characters: s.textShare(snap, 3)})
}

// textShare returns the maximum length, in characters, of the catalog text in
// the instructions or in the tool description. If the whole text fits into half
// of the budget, both get all of it. Otherwise fifths is the part's share of
// the budget, in fifths.
func (s *Server) textShare(snap *catalog.Snapshot, fifths int) int {
	if 2*snap.TextLength(s.opts.TextBudget/2) > s.opts.TextBudget {
		return max(s.opts.TextBudget*fifths/5, 1)
	}
	return s.opts.TextBudget / 2
}

// setDescription adds a connection's catalog text to a list of tools.
func (s *Server) setDescription(list *mcp.ListToolsResult, t catalogText) {
	i := slices.IndexFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == s.loadTool })
	switch {
	case i < 0:
	case t.hidden:
		list.Tools = slices.Delete(list.Tools, i, i+1)
	default:
		tool := *list.Tools[i]
		tool.Description = t.description
		list.Tools[i] = &tool
	}
}
