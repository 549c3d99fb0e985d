package mcpserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
)

// told is what a connection is told of a catalog when it begins.
type told struct {
	instructions string // of the server
	description  string // of the tool that loads skills
	hidden       bool   // that tool is not listed
}

// toldOf returns what is told of a view.
func (s *Server) toldOf(v *view) told {
	v.once.Do(func() {
		switch {
		case s.opts.ToolsOnly:
			v.told = told{description: "Load a skill."}
		case s.opts.Compat != "":
			v.told = s.compatTold(v.snap)
		default:
			v.told = told{instructions: s.instructions(v.snap), description: s.loadDescription(v.snap)}
		}
	})
	return v.told
}

// texts remembers what each lasting connection was told of the catalog. A
// connection without a session (HTTP of the modern era) is told what is.
type texts struct {
	mu    sync.Mutex
	conns map[*mcp.ServerSession]*conn
}

type conn struct {
	told told
	seen *catalog.Snapshot // what the connection knows of
}

// of returns what the sender of req is told of the catalog.
func (t *texts) of(s *Server, req mcp.Request) told {
	now := s.view()
	ss := lasting(req)
	if ss == nil {
		return s.toldOf(now)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.conns[ss]; c != nil {
		return c.told
	}
	t.forget(s)
	c := &conn{told: s.toldOf(now), seen: now.snap}
	t.conns[ss] = c
	return c.told
}

// drop forgets connections that have ended.
func (t *texts) drop(s *Server) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(s)
}

// forget is drop with t.mu held.
func (t *texts) forget(s *Server) {
	alive := map[*mcp.ServerSession]*conn{}
	for ss := range s.sdk.Sessions() {
		if c := t.conns[ss]; c != nil {
			alive[ss] = c
		}
	}
	t.conns = alive
}

// news returns what changed in the catalog since the sender of req was last
// told, once.
func (t *texts) news(s *Server, req mcp.Request) string {
	if s.opts.Quiet {
		return ""
	}
	ss := lasting(req)
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
	return changes(before, now, s.opts.Compat == "")
}

// withNews returns the result of a tool with news at its end, and in its
// structured content where that is one of ours: some clients show a model only
// the one, some only the other.
func withNews(res *mcp.CallToolResult, news string, ours bool) *mcp.CallToolResult {
	out := *res
	out.Content = append(slices.Clip(res.Content), &mcp.TextContent{Text: news})
	raw, ok := res.StructuredContent.(json.RawMessage)
	if body, isObject := strings.CutSuffix(string(raw), "}"); ours && ok && isObject {
		if js, err := json.Marshal(news); err == nil {
			out.StructuredContent = json.RawMessage(body + `,"news":` + string(js) + "}")
		}
	}
	return &out
}

// changes says which skills came, went or say something else of themselves.
func changes(before, now *catalog.Snapshot, search bool) string {
	old := map[string]*catalog.Entry{}
	for _, e := range before.Offered() {
		old[e.Name] = e
	}
	var lines []string
	for _, e := range now.Offered() {
		was := old[e.Name]
		delete(old, e.Name)
		if was == nil || was.Description != e.Description {
			lines = append(lines, catalog.Text([]*catalog.Entry{e}, catalog.TextOptions{Characters: 300}))
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
		b.WriteString("Skills that are new or describe themselves anew since you were told of them:\n")
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
		b.WriteString("Skills that are gone: " + strings.Join(gone[:min(len(gone), most)], ", "))
		if rest := len(gone) - most; rest > 0 {
			fmt.Fprintf(&b, " and %d more", rest)
		}
		b.WriteByte('\n')
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
	if s.opts.Lead != "" {
		return shortened(s.opts.Lead, 8000) + "\n\n" + s.guide(snap)
	}
	return s.guide(snap)
}

func (s *Server) guide(snap *catalog.Snapshot) string {
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

// describe puts what the connection was told into a list of tools.
func (s *Server) describe(list *mcp.ListToolsResult, t told) {
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
