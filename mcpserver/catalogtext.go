package mcpserver

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"
	"unique"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/clientprofile"
	"github.com/loadout-dev/loadout/internal/sources"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// catalogText is the description of the catalog that a connection receives when
// it starts.
type catalogText struct {
	instructions string // server instructions
	listed       int    // length of the list of skills at the end of the instructions
	description  string // description of the tool that loads skills
	hidden       bool   // whether that tool is not listed
}

// catalogTextOf returns the catalog text of a view for clients with the given
// profile.
func (s *Server) catalogTextOf(v *view, p *clientprofile.Profile) catalogText {
	if s.opts.ToolsOnly || s.opts.Compat != "" {
		p = clientprofile.Unknown() // the text is the same for all clients
	}
	v.textMu.Lock()
	defer v.textMu.Unlock()
	if hour := time.Now().Unix() / 3600; s.opts.FirstSkills != nil && v.hour != hour {
		v.texts, v.hour = nil, hour
	}
	if t, ok := v.texts[p]; ok {
		return t.Value()
	}
	var t catalogText
	complete := true
	switch {
	case s.opts.ToolsOnly:
		t = catalogText{description: "Load a skill."}
	case s.opts.Compat != "":
		t = s.compatCatalogText(v.snap)
	default:
		t, complete = s.newCatalogText(v.snap, p)
	}
	if !complete {
		return t
	}
	if v.texts == nil {
		v.texts = map[*clientprofile.Profile]unique.Handle[catalogText]{}
	}
	v.texts[p] = unique.Make(t)
	return v.texts[p].Value()
}

// catalogTexts stores the catalog text of each long-lived connection. Requests
// without a session (HTTP since 2026-07-28) get the current text.
type catalogTexts struct {
	mu    sync.Mutex
	conns map[*mcp.ServerSession]*conn
}

// conn records the profile of a connection's client, the catalog text for the
// client, and what was reported to it later. The profile and the text do not
// change, except that skills may be added to the description until the client
// lists the tools.
type conn struct {
	text    catalogText
	profile *clientprofile.Profile
	seen    *catalog.Snapshot // latest snapshot reported to the connection
	loaded  loadedSkills

	roots    connRoots
	hasTools bool // whether the client has the description in text; guarded by catalogTexts.mu

	serversOnce sync.Once
	servers     string // description of find_tools; set by serversOnce
}

// get returns the catalog text for the connection of req.
func (t *catalogTexts) get(s *Server, req mcp.Request) catalogText {
	if c := t.conn(s, req); c != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		return c.text
	}
	return s.catalogTextOf(s.view(), profileOf(req))
}

// forTools is like get, but returns the text for a list of tools. If the client
// has roots, the description in the first list includes the skills that were
// found in the roots since the instructions were sent.
func (t *catalogTexts) forTools(s *Server, req mcp.Request) catalogText {
	c := t.conn(s, req)
	if c == nil || !s.handlesRoots(req) {
		return t.get(s, req)
	}
	now := s.view()
	c.roots.mu.Lock()
	project := c.roots.project
	c.roots.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !c.hasTools && c.seen.Version < now.snap.Version {
		c.text = s.continueText(c, now, project)
	}
	c.hasTools = true
	return c.text
}

// hasTools reports whether a client has received the list of tools.
func (t *catalogTexts) hasTools(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c.hasTools
}

// isTextOnly reports whether the client of req gets only text from the tools in
// [textTools].
func (t *catalogTexts) isTextOnly(s *Server, req mcp.Request) bool {
	if c := t.conn(s, req); c != nil {
		return c.profile.StructuredOnly
	}
	return profileOf(req).StructuredOnly
}

// haveChanged reports whether the catalog text of a view differs from that of
// an earlier view for any client.
func (t *catalogTexts) haveChanged(s *Server, before, now *view) bool {
	profiles := map[*clientprofile.Profile]bool{clientprofile.Unknown(): true}
	before.textMu.Lock()
	for p := range before.texts {
		profiles[p] = true
	}
	before.textMu.Unlock()
	t.mu.Lock()
	for _, c := range t.conns {
		profiles[c.profile] = true
	}
	t.mu.Unlock()
	for p := range profiles {
		if s.catalogTextOf(before, p) != s.catalogTextOf(now, p) {
			return true
		}
	}
	return false
}

// conn returns the record of the connection of req, or nil if the connection
// does not outlive the request.
func (t *catalogTexts) conn(s *Server, req mcp.Request) *conn {
	ss := longLivedSession(req)
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
	p := profileOf(req)
	c := &conn{text: s.catalogTextOf(now, p), profile: p, seen: now.snap}
	t.conns[ss] = c
	return c
}

// dropEnded removes the records of closed connections.
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
// connection, and the changes to skills that it has loaded. It returns "" if
// there are none.
func (t *catalogTexts) changesSince(ctx context.Context, s *Server, req mcp.Request) string {
	ss := longLivedSession(req)
	if ss == nil {
		return ""
	}
	now := s.view().snap
	t.mu.Lock()
	c := t.conns[ss]
	if c == nil {
		t.mu.Unlock()
		return ""
	}
	before := c.seen
	if before.Version < now.Version {
		c.seen = now
	}
	t.mu.Unlock()
	text := ""
	if before.Version < now.Version {
		text = describeChanges(before, now, s.opts.Compat == "")
	}
	return text + t.updatesSince(ctx, s, c, now)
}

// notice is the part of structured content that reports catalog changes.
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

// longLivedSession returns the request's connection if it outlives the request,
// or nil.
func longLivedSession(req mcp.Request) *mcp.ServerSession {
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
	guide          = "Skills are instructions and files for particular kinds of work. Before a task that a skill fits, call load_skill with its name and follow what it says; read its files with read_skill_file. If none of those listed fits, call search_skills with several phrasings of the task."
	skillsDisabled = "Skills are switched off by the configuration (skills.enabled)."
	loadLead       = "Load the instructions of a skill. Do this before starting work that a skill fits."
	moreInTool     = ", continued in the description of load_skill"
	skillsLead     = " Skills"
	moreSkills     = " More skills"
	endLead        = ":\n"
)

// newCatalogText returns the catalog text for clients with the given profile.
// Each skill has a line in the instructions or in the description. The list
// begins in the instructions if the client shows them, and continues in the
// description if the client truncates the instructions. complete is false if
// [Options.FirstSkills] failed.
func (s *Server) newCatalogText(snap *catalog.Snapshot, p *clientprofile.Profile) (t catalogText, complete bool) {
	t = catalogText{instructions: s.guideText(snap), description: loadLead}
	if snap.Disabled || snap.Count() == 0 {
		return t, true
	}
	const before = "\n\nSkills"
	o, shown := s.listOptions(snap, p)
	sizes := [2]int{shown[0] - length(t.instructions+before+moreInTool+endLead), shown[1] - length(t.description+moreSkills+endLead)}
	o.Fits = func(text string) bool {
		_, rest := splitLines(text, sizes[0])
		return length(rest) <= sizes[1]
	}
	complete = true
	if s.opts.FirstSkills != nil {
		o.First = func() (keys []string) {
			keys, complete = s.opts.FirstSkills()
			return keys
		}
	}
	o.Omit = s.omitNative(p, nil)
	list := snap.Text(o)
	first, rest := splitLines(list, sizes[0])
	t.listed = len(first)
	switch {
	case list == "":
	case rest == "":
		t.instructions += before + endLead + first
		t.description += " The instructions of this server list the skills."
	case first == "":
		t.description += skillsLead + endLead + rest
	default:
		t.instructions += before + moreInTool + endLead + first
		t.description += moreSkills + endLead + rest
	}
	return t, complete
}

// listOptions returns the limits on the list of skills for clients with a profile,
// and how many characters of the instructions and of the description they show.
func (s *Server) listOptions(snap *catalog.Snapshot, p *clientprofile.Profile) (o catalog.FormatOptions, shown [2]int) {
	const shortName = len("- abcde\n")
	shown = [2]int{p.Instructions, p.Description}
	o = catalog.FormatOptions{Characters: p.Catalog, Partial: partialList}
	if snap.Count() > o.Characters/shortName {
		o.Characters = partialList // without reading all the names
	}
	if s.opts.TextBudget > 0 {
		o.Characters, o.Partial = s.opts.TextBudget, 0
		if p.Recording == "" { // the user knows better
			shown[1] = clientprofile.All
		}
	}
	return o, shown
}

// omitNative returns a function that reports whether a client lists a skill
// itself, or nil if it lists none. root lists the directory of another project
// of the client and its parents up to the repository root; it may be nil.
func (s *Server) omitNative(p *clientprofile.Profile, root []string) func(*catalog.Entry) bool {
	if s.opts.ClientHome == "" || len(p.Reads) == 0 {
		return nil
	}
	dirs := clientprofile.Dirs{Home: s.opts.ClientHome, Project: s.clientProject, Getenv: s.opts.ClientGetenv}
	inProject := p.ReadsItself(dirs)
	var plugins []string
	if dir := p.PluginDir(dirs); dir != "" {
		project := s.opts.ClientProject
		if len(root) > 0 {
			project = root[0]
		}
		plugins = sources.EnabledPluginSkills(dir, project)
	}
	dirs.Project = root
	inRoot := p.ReadsItself(dirs)
	return func(e *catalog.Entry) bool {
		return inProject != nil && inProject(e.Path) || len(root) > 0 && inRoot != nil && inRoot(e.Path) ||
			slices.Contains(plugins, filepath.Dir(e.Path))
	}
}

// continueText returns the text of a connection with the skills of a newer
// view. The client already has the instructions, so all skills that they do not
// list are in the description. project lists the client's project directory and
// its parents up to the repository root; it may be nil.
func (s *Server) continueText(c *conn, now *view, project []string) catalogText {
	if s.opts.ToolsOnly || s.opts.Compat != "" {
		t := s.catalogTextOf(now, c.profile)
		t.instructions = c.text.instructions
		c.see(now.snap)
		return t
	}
	t := c.text
	list := t.instructions[len(t.instructions)-t.listed:]
	listed := namesIn(list)
	before := map[string]*catalog.Entry{}
	for _, e := range c.seen.ForModel() {
		before[e.Name] = e
	}
	omit := s.omitNative(c.profile, project)
	o, shown := s.listOptions(now.snap, c.profile)
	o.Characters = max(o.Characters-utf8.RuneCountInString(list), 1)
	o.Omit = func(e *catalog.Entry) bool {
		was := before[e.Name]
		return omit != nil && omit(e) || was != nil && was.Description == e.Description && listed[untrusted.New(e.Name).ForModel()]
	}
	lead := loadLead + moreSkills + endLead
	if list == "" {
		lead = loadLead + skillsLead + endLead
	}
	o.Fits = func(text string) bool { return length(lead)+length(text) <= shown[1] }
	if s.opts.FirstSkills != nil {
		o.First = func() []string { keys, _ := s.opts.FirstSkills(); return keys }
	}
	more := now.snap.Text(o)
	if more == "" {
		return t
	}
	t.description = lead + more
	c.see(now.snap)
	return t
}

// see records that the skills in a snapshot have been sent to the client. If
// skills were removed, the next result reports the changes.
func (c *conn) see(now *catalog.Snapshot) {
	names := map[string]bool{}
	for _, e := range now.ForModel() {
		names[e.Name] = true
	}
	if !slices.ContainsFunc(c.seen.ForModel(), func(e *catalog.Entry) bool { return !names[e.Name] }) {
		c.seen = now
	}
}

// namesIn returns the names in a list of skills.
func namesIn(list string) map[string]bool {
	names := map[string]bool{}
	for line := range strings.Lines(list) {
		if line, ok := strings.CutPrefix(line, "- "); ok {
			name, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			names[name] = true
		}
	}
	return names
}

// partialList is the maximum size of a list that omits some of the names. Such
// a list is less useful than a search, but adds to the cost of each
// conversation.
const partialList = 2000

// splitLines splits text after the last line that fits within size.
func splitLines(text string, size int) (first, rest string) {
	if length(text) <= size {
		return text, ""
	}
	end, used := 0, 0
	for line := range strings.Lines(text) {
		if used += length(line); used > size {
			break
		}
		end += len(line)
	}
	return text[:end], text[end:]
}

// length returns the length of text as clients count it, in UTF-16 units.
// Claude Code replaces an ellipsis with three dots.
func length(text string) int {
	n := 0
	for _, r := range text {
		if n += utf16.RuneLen(r); r == '…' {
			n += 2
		}
	}
	return n
}

// guideText returns the server's instructions without the list of skills.
func (s *Server) guideText(snap *catalog.Snapshot) string {
	text := guide
	if snap.Disabled {
		text = skillsDisabled
	}
	if s.opts.ToolsFor != nil || s.opts.Tools != nil && len(s.opts.Tools.ConfiguredSummaries()) > 0 {
		text += " " + serverGuide
	}
	if s.opts.Preamble != "" {
		return truncate(s.opts.Preamble, 8000) + "\n\n" + text
	}
	return text
}

// setDescription sets the description of the load tool in a list of tools to a
// connection's catalog text.
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
