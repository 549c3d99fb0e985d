package mcpserver

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
)

// texts remembers what each lasting connection was told of the catalog. A
// connection without a session (HTTP of the modern era) is told what is.
type texts struct {
	mu     sync.Mutex
	pinned map[*mcp.ServerSession]*catalog.Snapshot // first told
	told   map[*mcp.ServerSession]*catalog.Snapshot // last announced
}

// of returns the state of the catalog that the sender of req is told.
func (t *texts) of(s *Server, req mcp.Request) *catalog.Snapshot {
	now := s.view().snap
	ss := lasting(req)
	if ss == nil {
		return now
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if snap := t.pinned[ss]; snap != nil {
		return snap
	}
	if t.pinned == nil {
		t.pinned, t.told = map[*mcp.ServerSession]*catalog.Snapshot{}, map[*mcp.ServerSession]*catalog.Snapshot{}
	}
	t.forget(s)
	t.pinned[ss], t.told[ss] = now, now
	return now
}

// forget drops connections that have ended.
func (t *texts) forget(s *Server) {
	alive := map[*mcp.ServerSession]bool{}
	for ss := range s.sdk.Sessions() {
		alive[ss] = true
	}
	for ss := range t.pinned {
		if !alive[ss] {
			delete(t.pinned, ss)
			delete(t.told, ss)
		}
	}
}

// news appends to a result what changed in the catalog since the connection
// was last told.
func (t *texts) news(s *Server, req mcp.Request, res *mcp.CallToolResult) {
	ss := lasting(req)
	if ss == nil {
		return
	}
	now := s.view().snap
	t.mu.Lock()
	before := t.told[ss]
	if before == nil || before == now {
		t.mu.Unlock()
		return
	}
	t.told[ss] = now
	t.mu.Unlock()
	if text := changes(before, now); text != "" {
		res.Content = append(res.Content, &mcp.TextContent{Text: text})
	}
}

// changes says which skills came, went or say something else of themselves.
func changes(before, now *catalog.Snapshot) string {
	old := map[string]*catalog.Entry{}
	for _, e := range before.Offered() {
		old[e.Name] = e
	}
	var lines []string
	for _, e := range now.Offered() {
		was := old[e.Name]
		delete(old, e.Name)
		if was == nil || was.Description != e.Description {
			lines = append(lines, strings.TrimSuffix(catalog.Text([]*catalog.Entry{e}, catalog.TextOptions{Characters: 300}), "\n"))
		}
	}
	var gone []string
	for name := range old {
		gone = append(gone, name)
	}
	slices.Sort(gone)
	const most = 20
	var b strings.Builder
	if len(lines) > 0 {
		b.WriteString("New or changed skills since this connection began:\n")
		for _, l := range lines[:min(len(lines), most)] {
			b.WriteString(l + "\n")
		}
		if len(lines) > most {
			fmt.Fprintf(&b, "… and %d more: find them with search_skills\n", len(lines)-most)
		}
	}
	if len(gone) > 0 {
		fmt.Fprintf(&b, "Skills that are gone: %s\n", strings.Join(gone[:min(len(gone), most)], ", "))
	}
	return b.String()
}

// lasting returns the connection of a request if it outlives the request.
func lasting(req mcp.Request) *mcp.ServerSession {
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
	guide = "Skills are instructions and files for particular kinds of work. Before a task that a skill fits, call load_skill with its name and follow what it says; read its files with read_skill_file. If none of those listed fits, try search_skills."
	off   = "Skills are switched off by the configuration (skills.enabled)."
)

// instructions are the server's instructions: how to use the tools, and part
// of the catalog text. Clients differ in which of the two a model sees, and
// cut both at about 2,000 characters.
func (s *Server) instructions(snap *catalog.Snapshot) string {
	offered := snap.Offered()
	switch {
	case snap.Disabled:
		return off
	case len(offered) == 0:
		return guide
	}
	return guide + "\n\nSkills:\n" + catalog.Text(offered, catalog.TextOptions{Characters: s.share(offered, 2)})
}

// loadDescription is the description of load_skill.
func (s *Server) loadDescription(snap *catalog.Snapshot) string {
	const lead = "Load the instructions of a skill. Do this before starting work that a skill fits."
	offered := snap.Offered()
	if snap.Disabled || len(offered) == 0 {
		return lead
	}
	return lead + " Skills:\n" + catalog.Text(offered, catalog.TextOptions{Characters: s.share(offered, 3)})
}

// share is how many characters of catalog text one of the two places gets, in
// fifths of the budget; both get the whole text where it fits twice.
func (s *Server) share(offered []*catalog.Entry, fifths int) int {
	full := 0
	for _, e := range offered {
		full += len(e.Name) + len(e.Description) + len("- : \n")
		if 2*full > s.opts.TextBudget {
			return max(s.opts.TextBudget*fifths/5, 1)
		}
	}
	return s.opts.TextBudget / 2
}

// describe puts the connection's catalog text into a list of tools.
func (s *Server) describe(list *mcp.ListToolsResult, snap *catalog.Snapshot) {
	for i, t := range list.Tools {
		if text, ok := s.descriptionOf(t.Name, snap); ok {
			tool := *t
			tool.Description = text
			list.Tools[i] = &tool
		}
	}
}
