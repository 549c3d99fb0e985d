package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/internal/skilltext"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

// Some clients show a model only the structured content of a result, and only the
// text of an error (anthropics/claude-code#79944, #86032). Other clients show only
// the text. Therefore both contain as much as possible, and the text of an error is
// complete. For the tools that deliver texts, see [textTools].

var readOnly = &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(bool)}

func (s *Server) addTools(sdk *mcp.Server) {
	if s.opts.Compat != "" {
		return // addCompatTool adds the tool of the earlier system
	}
	addTool(sdk, &mcp.Tool{Name: toolname.SearchSkills, Title: "Search skills", Annotations: readOnly, InputSchema: schemaOf[searchArgs](),
		Description: "Find skills by what they are for. It matches words, best in the language of the skills; give several phrasings. No query lists all."}, (*Server).searchSkills)
	addTool(sdk, &mcp.Tool{Name: toolname.ReadSkillFile, Title: "Read a file of a skill", Annotations: readOnly,
		Description: "Read a file of a skill by its path, as a skill's instructions name it."}, (*Server).readSkillFile)
}

var ourTools = []string{toolname.SearchSkills, toolname.LoadSkill, toolname.ReadSkillFile, toolname.RunSkillScript, toolname.FindTools, toolname.CallTool, toolname.ReadTool}

// isOurTool reports whether the tool is one of this server's own, whose results
// have a field for notices.
func (s *Server) isOurTool(tool string) bool {
	return s.opts.Compat == "" && slices.Contains(ourTools, tool)
}

// addLoadTool adds or replaces the tool that loads skills, whose description is
// set in each list. It reports whether the tool is registered.
func (s *Server) addLoadTool(sdk *mcp.Server) bool {
	if s.opts.Compat != "" {
		return s.addCompatTool(sdk)
	}
	addAskingTool(sdk, &mcp.Tool{Name: s.loadTool, Title: "Load a skill", Annotations: readOnly,
		InputSchema: schemaOf[loadArgs]()}, (*Server).approveSkill, (*Server).loadSkill)
	return true
}

// addTool is like [mcp.AddTool], but its handler may omit the structured
// content.
func addTool[In, Out any](sdk *mcp.Server, t *mcp.Tool, h func(*Server, context.Context, In) (*mcp.CallToolResult, *Out, error)) {
	addAskingTool(sdk, t, func(*Server, context.Context, *mcp.CallToolRequest) *mcp.CallToolResult { return nil }, h)
}

// addAskingTool is like addTool, but calls ask before the handler. If ask
// returns a result, it is sent and the handler is not called.
func addAskingTool[In, Out any](sdk *mcp.Server, t *mcp.Tool, ask func(*Server, context.Context, *mcp.CallToolRequest) *mcp.CallToolResult,
	h func(*Server, context.Context, In) (*mcp.CallToolResult, *Out, error)) {
	t.OutputSchema = sharedSchema(schemaKey{reflect.TypeFor[Out](), t.Name}, func() *jsonschema.Schema {
		out := allowExtraProperties(newSchema[Out]())
		if tools := out.Properties["tools"]; tools != nil && t.Name == toolname.LoadSkill {
			tools.Items = &jsonschema.Schema{Type: "object"} // find_tools describes them in full
		}
		if messages := out.Properties["messages"]; messages != nil { // a server does not return the other kind of content, permissions
			messages.Items.Properties["content"] = &jsonschema.Schema{Type: "string"}
		}
		return out
	})
	mcp.AddTool(sdk, t, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		s := serverOf(ctx)
		if question := ask(s, ctx, req); question != nil {
			return question, nil, nil
		}
		res, out, err := h(s, ctx, in)
		return withStructured(ctx, res, out, err)
	})
}

// withStructured adds out to a result as structured content, unless out is nil
// or the client gets only text. It does not return out, because the SDK would
// then encode it now and decode it again for validation.
func withStructured[Out any](ctx context.Context, res *mcp.CallToolResult, out *Out, err error) (*mcp.CallToolResult, any, error) {
	if err == nil && out != nil && !isTextOnly(ctx) {
		res.StructuredContent = out
	}
	return res, nil, err
}

// allowExtraProperties allows objects to have properties that the schema does not
// declare. Clients validate results against the first schema that they receive,
// and later versions of this server may add fields. Arguments remain strict, so
// that a model learns about wrong ones.
func allowExtraProperties(sch *jsonschema.Schema) *jsonschema.Schema {
	top := sch.Required
	walkSchema(sch, func(sch *jsonschema.Schema) { sch.AdditionalProperties, sch.Required = nil, nil }) // long schemas cost tokens at each start
	sch.Required = top
	return sch
}

// useSingleTypes gives every value in a schema a single type. No value is ever
// null, and some clients do not support lists of types.
func useSingleTypes(sch *jsonschema.Schema) *jsonschema.Schema {
	return walkSchema(sch, func(sch *jsonschema.Schema) {
		if i := slices.Index(sch.Types, "null"); i >= 0 && len(sch.Types) == 2 {
			sch.Type, sch.Types = sch.Types[1-i], nil
		}
	})
}

// walkSchema applies fn to a schema and all its subschemas.
func walkSchema(sch *jsonschema.Schema, fn func(*jsonschema.Schema)) *jsonschema.Schema {
	fn(sch)
	for _, p := range sch.Properties {
		walkSchema(p, fn)
	}
	if sch.Items != nil {
		walkSchema(sch.Items, fn)
	}
	return sch
}

// schemas holds the resolved schemas of tools, and sharedSchemas the schemas
// themselves, by schemaKey. All servers share them, because a hub creates one
// for each conversation.
var (
	schemas       = mcp.NewSchemaCache()
	sharedSchemas sync.Map
)

// schemaKey identifies the schema of a type's values or of a tool's results.
type schemaKey struct {
	typ  reflect.Type
	tool string // "" for arguments
}

// sharedSchema returns the schema stored under key. If there is none, it stores
// and returns the result of create.
func sharedSchema(key schemaKey, create func() *jsonschema.Schema) *jsonschema.Schema {
	if sch, ok := sharedSchemas.Load(key); ok {
		return sch.(*jsonschema.Schema)
	}
	sch, _ := sharedSchemas.LoadOrStore(key, create())
	return sch.(*jsonschema.Schema)
}

// schemaOf returns the schema of a type, which the caller must not modify.
func schemaOf[T any]() *jsonschema.Schema {
	return sharedSchema(schemaKey{typ: reflect.TypeFor[T]()}, newSchema[T])
}

func newSchema[T any]() *jsonschema.Schema {
	sch, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[untrusted.Text](): {Type: "string"}}})
	if err != nil {
		panic(err)
	}
	return useSingleTypes(sch)
}

type loadArgs struct {
	Name string `json:"name,omitempty" jsonschema:"name of the skill"`
	Have string `json:"have,omitempty" jsonschema:"digest of what you hold; if current, the answer is short"`
}

type loadFile struct {
	Path   untrusted.Text `json:"path"`
	Size   int64          `json:"size"`
	Script bool           `json:"script,omitempty"`
}

type loadResult struct {
	State        session.LoadState `json:"state" jsonschema:"loaded, already, degraded, failed"`
	Name         untrusted.Text    `json:"name"`
	Origin       untrusted.Text    `json:"origin,omitzero"`
	Digest       string            `json:"digest,omitempty"`
	Instructions string            `json:"instructions,omitempty"`
	Location     string            `json:"location,omitempty" jsonschema:"where its files are"`
	Files        []loadFile        `json:"files,omitempty"`
	MoreFiles    int               `json:"more_files,omitempty"`
	Tools        []toolInfo        `json:"tools,omitempty" jsonschema:"to call with call_tool"`
	Problems     []untrusted.Text  `json:"problems,omitempty"`
	Tokens       int               `json:"tokens,omitempty"`
	notice
}

// maxFiles is the maximum number of files listed for a loaded skill. It is
// limited because the list takes up the model's context.
const maxFiles = 100

func (s *Server) loadSkill(ctx context.Context, in loadArgs) (*mcp.CallToolResult, *loadResult, error) {
	if in.Name == "" && !s.view().snap.Disabled {
		return errorResult("Give the name of a skill, as search_skills lists them."), nil, nil
	}
	all, err := s.fetch(ctx, in.Name)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, err
		}
		alternatives := s.skillAlternatives(ctx, in.Name, err)
		msg := s.loadError(err, alternatives != "")
		return errorResult(msg + alternatives), &loadResult{State: session.StateFailed, Name: untrusted.New(in.Name), Problems: untrusted.List([]string{msg})}, nil
	}
	m := all[len(all)-1]
	out := &loadResult{State: session.StateLoaded, Name: untrusted.New(m.ID.Name), Origin: untrusted.New(m.ID.Origin), Digest: m.Digest}
	if holds(in.Have, m) {
		noteDelivered(ctx, m)
		s.reportUse(Use{Kind: useLoad, Skill: m.ID.Name, Key: m.ID.Key()})
		out.State, out.Problems = session.StateAlreadyLoaded, untrusted.List(m.Problems)
		return textResult(unchangedText(m)), out, nil
	}
	for _, m := range all {
		out.Problems = append(out.Problems, untrusted.List(m.Problems)...)
		out.Tokens += m.Tokens
	}
	s.reportLoad(ctx, all)
	toolText := s.connectTools(ctx, all, out)
	if len(out.Problems) > 0 {
		out.State = session.StateDegraded
	}
	out.Location = m.Location
	for _, f := range m.Files {
		switch {
		case skillpath.IsSkillFile(f.Path):
		case len(out.Files) == maxFiles:
			out.MoreFiles++
		default:
			out.Files = append(out.Files, loadFile{untrusted.New(f.Path), f.Size, f.Script})
		}
	}
	if !isTextOnly(ctx) {
		out.Instructions = renderInstructions(all)
	}
	state := ""
	if out.State == session.StateDegraded {
		state = "State: degraded, because of the problems above.\n"
	}
	return textResult(renderAll(all) + toolText + "\nDigest: " + shownDigest(m) + "\n" + state), out, nil
}

// connectTools connects the servers of the skills and returns a description of
// their tools for the model.
func (s *Server) connectTools(ctx context.Context, all []*session.Skill, out *loadResult) string {
	set := s.tools(ctx)
	if set == nil {
		return ""
	}
	var entries []*catalog.Entry
	for _, m := range all {
		if !m.UsesTools {
			continue
		}
		if e, err := s.view().snap.Get(m.ID.Key()); err == nil {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return ""
	}
	connected := set.ConnectSkills(ctx, entries)
	s.markApprovals(ctx, connected.Tools)
	recordLoaded(ctx, connected.Tools)
	out.Problems = append(out.Problems, untrusted.List(connected.Problems)...)
	var b strings.Builder
	if len(connected.Tools) > 0 {
		var schemas bool
		out.Tools, schemas = toolInfos(connected.Tools, nil)
		b.WriteString("\nTools of this skill, to be called with call_tool:\n")
		writeTools(&b, out.Tools)
		if !schemas {
			fmt.Fprintf(&b, "For their arguments: find_tools with a query and skill %q.\n", out.Name)
		}
	}
	if len(connected.Problems) > 0 {
		b.WriteString("\nProblems:\n")
		for _, p := range connected.Problems {
			b.WriteString("- " + untrusted.New(p).ForModel() + "\n")
		}
	}
	return b.String()
}

// renderAll renders loaded skills as a single text.
func renderAll(all []*session.Skill) string {
	var texts []string
	for _, m := range all {
		texts = append(texts, session.Render(m))
	}
	return strings.Join(texts, "\n")
}

// renderInstructions renders the dependencies as renderAll does, followed by
// only the instructions of the last skill.
func renderInstructions(all []*session.Skill) string {
	m := all[len(all)-1]
	text := skilltext.Body(m.Instructions, m.Location)
	if m.Warning != "" {
		text = m.Warning + "\n\n" + text
	}
	if len(all) == 1 {
		return text
	}
	return renderAll(all[:len(all)-1]) + "\n" + text
}

// fetch is like [loadout.Runtime.Fetch], but refuses skills that only users may
// load. It sets the location of each skill to where the client can find it.
func (s *Server) fetch(ctx context.Context, name string) ([]*session.Skill, error) {
	e, err := s.rt.Catalog().Resolve(ctx, name)
	if err != nil {
		if ctx.Err() == nil {
			s.reportFailure(useLoad, nil)
		}
		return nil, err
	}
	if e.DisableModelInvocation {
		s.reportRefusal(useLoad, e)
		return nil, &userOnlyError{e}
	}
	return s.fetchEntry(ctx, e)
}

func (s *Server) fetchEntry(ctx context.Context, e *catalog.Entry) ([]*session.Skill, error) {
	all, err := s.rt.Fetch(ctx, e.Key())
	if err != nil {
		if ctx.Err() == nil {
			s.reportFailedFetch(useLoad, e, err)
		}
		return nil, err
	}
	for _, m := range all {
		m.Location = s.location(m)
	}
	return all, nil
}

// userOnlyError reports that only users may load a skill.
type userOnlyError struct{ e *catalog.Entry }

func (p *userOnlyError) Error() string {
	s := fmt.Sprintf("only users can load skill %s (disable-model-invocation)", p.e.Name)
	if p.e.UserInvocable {
		s += fmt.Sprintf("; the user can choose the prompt %s of this server", promptName(p.e))
	}
	return s
}

// shortDigest is the number of hexadecimal digits of a digest that are shown to a
// model. They suffice to distinguish versions of a file; a full digest would cost
// 30 more tokens for each loaded skill.
const shortDigest = 12

func shortenDigest(digest string) string {
	return strings.TrimPrefix(digest, "sha256:")[:shortDigest]
}

// shownDigest returns the digest of a loaded skill as it is shown to a model. An MCP
// server chooses all versions of its skills, so it could find two whose digests
// begin alike: those are shown in full.
func shownDigest(m *session.Skill) string {
	if skillname.IsServed(m.ID.Name, m.ID.Origin) {
		return wholeDigest(m.Digest)
	}
	return shortenDigest(m.Digest)
}

// holds reports whether known, a digest from a client, is that of m.
func holds(known string, m *session.Skill) bool {
	if skillname.IsServed(m.ID.Name, m.ID.Origin) {
		return wholeDigest(known) == wholeDigest(m.Digest)
	}
	return matchesDigest(known, m.Digest)
}

// wholeDigest returns the hexadecimal digits of a digest.
func wholeDigest(digest string) string {
	return strings.ToLower(strings.TrimPrefix(strings.TrimSpace(digest), "sha256:"))
}

// matchesDigest reports whether known, a digest from a client, is digest or a
// shortened form of it.
func matchesDigest(known, digest string) bool {
	known = wholeDigest(known)
	return len(known) >= shortDigest && strings.HasPrefix(strings.TrimPrefix(digest, "sha256:"), known)
}

func unchangedText(m *session.Skill) string {
	s := fmt.Sprintf("Skill %s (from %s) is unchanged: what you hold, digest %s, is current.", untrusted.New(m.ID.Name), untrusted.New(m.ID.Origin), shownDigest(m))
	if len(m.Needs) > 0 {
		s += " It needs " + strings.Join(m.Needs, ", ") + ": load what you do not hold of these."
	}
	return s
}

// maxNamed is the maximum number of skills whose names an error lists.
const maxNamed = 20

// skillAlternatives returns a text that lists what the model may use instead of a
// skill that could not be loaded, or whose script failed; see
// [tools.Set.DescribeSkillAlternatives].
func (s *Server) skillAlternatives(ctx context.Context, skill string, err error) string {
	set := s.tools(ctx)
	if set == nil || s.opts.Compat != "" || s.view().snap.Disabled {
		return ""
	}
	return set.DescribeSkillAlternatives(ctx, skill, err, &tools.Call{Principal: s.principal(ctx), Session: s.opts.Session})
}

// loadError returns a message with the next step for err, the reason why a
// skill cannot be loaded. hasMore means that the caller appends alternatives,
// so the message does not list the available skills.
func (s *Server) loadError(err error, hasMore bool) string {
	snap := s.view().snap
	if snap.Disabled {
		return skillsDisabled
	}
	if refused, ok := errors.AsType[*loadout.RefusedError](err); ok {
		return s.refusalText(refused)
	}
	msg := strings.TrimSuffix(s.errorText(err), ".")
	if !errors.Is(err, fs.ErrNotExist) {
		return msg + "."
	}
	if !strings.HasSuffix(msg, "?") {
		msg += "."
	}
	offered := snap.ForModel()
	if missing, ok := errors.AsType[*catalog.NotFoundError](err); ok && !hasMore && len(missing.Suggestions) == 0 && len(offered) > 0 && len(offered) <= maxNamed {
		return msg + " Available skills: " + namesOf(offered, maxNamed) + "."
	}
	return msg + " Find skills with search_skills."
}

// errorText returns the text of an error for a client. For remote clients, it
// omits local paths.
func (s *Server) errorText(err error) string {
	msg := err.Error()
	if !s.opts.Remote {
		return msg
	}
	if b, ok := errors.AsType[*catalog.BrokenError](err); ok {
		msg = strings.ReplaceAll(msg, " at "+b.Path, "")
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok && p.Path != "" {
		msg = strings.ReplaceAll(msg, p.Op+" "+p.Path+": ", "")
	}
	return msg
}

// namesOf joins the names of up to limit entries.
func namesOf(entries []*catalog.Entry, limit int) string {
	var names []string
	for _, e := range entries[:min(len(entries), limit)] {
		names = append(names, untrusted.New(e.Name).ForModel())
	}
	s := strings.Join(names, ", ")
	if rest := len(entries) - limit; rest > 0 {
		s += fmt.Sprintf(" and %d more", rest)
	}
	return s
}

// location returns the location at which the client can find a skill's files: a
// path if it runs on the same machine, and the skill's URI otherwise.
func (s *Server) location(m *session.Skill) string {
	if m.Location != "" && !s.opts.Remote {
		return m.Location
	}
	v := s.view()
	if e := v.snap.ByKey(m.ID.Key()); e != nil {
		return v.uriOf(e)
	}
	return ""
}

type readArgs struct {
	Skill  string `json:"skill" jsonschema:"name of the skill"`
	Path   string `json:"path" jsonschema:"as references/guide.md"`
	Offset int64  `json:"offset,omitempty" jsonschema:"byte to start from"`
	Limit  int64  `json:"limit,omitempty" jsonschema:"bytes, at most 65536"`
	Digest string `json:"digest,omitempty" jsonschema:"digest that the skill was loaded with"`
}

type readResult struct {
	Path     untrusted.Text `json:"path"`
	Size     int64          `json:"size"`
	SHA256   string         `json:"sha256"`
	Type     string         `json:"type"`
	Offset   int64          `json:"offset"`
	Next     int64          `json:"next,omitempty" jsonschema:"the next offset"`
	Warning  string         `json:"warning,omitempty"`
	Text     string         `json:"text,omitempty"`
	Location string         `json:"location,omitempty" jsonschema:"location of a binary file"`
	notice
}

func (s *Server) readSkillFile(ctx context.Context, in readArgs) (*mcp.CallToolResult, *readResult, error) {
	e, c, res, err := s.readFile(ctx, in)
	if c == nil {
		return res, nil, err
	}
	out := &readResult{Path: untrusted.New(c.Path), Size: c.Size, SHA256: c.SHA256, Type: c.MIME, Offset: c.Offset, Next: c.Next, Warning: c.Warning, Text: c.Text}
	if c.Binary {
		out.Location = s.fileLocation(e, c)
	}
	content := s.fileContent(e, c)
	if isTextOnly(ctx) {
		content = append(content, &mcp.TextContent{Text: fileNote(e, c)})
	}
	return &mcp.CallToolResult{Content: content}, out, nil
}

// fileNote returns a note that says which file was read, for a client that gets
// only text.
func fileNote(e *catalog.Entry, c *loadout.Content) string {
	s := fmt.Sprintf("[%s of skill %s (from %s)", untrusted.New(c.Path), untrusted.New(e.Name), untrusted.New(e.Origin))
	if c.SHA256 != "" {
		s += ", sha256 " + shortenDigest(c.SHA256)
	}
	return s + "]"
}

// readFile reads a file of a skill. If that fails, it returns a tool result or
// an error that says why.
func (s *Server) readFile(ctx context.Context, in readArgs) (*catalog.Entry, *loadout.Content, *mcp.CallToolResult, error) {
	if s.view().snap.Disabled {
		return nil, nil, errorResult(skillsDisabled), nil
	}
	e, err := s.rt.Catalog().Resolve(ctx, in.Skill)
	if err != nil {
		s.reportFailure(useFile, nil)
		return nil, nil, errorResult(s.loadError(err, false)), nil
	}
	held := "" // the version of a skill of an MCP server that the client has loaded
	if e.Server != "" {
		var res *mcp.CallToolResult
		if held, res, err = s.checkHeld(ctx, e, in.Digest); res != nil || err != nil {
			return nil, nil, res, err
		}
	} else if in.Digest != "" {
		_, src, err := s.rt.Catalog().Read(ctx, e)
		switch {
		case ctx.Err() != nil:
			return nil, nil, nil, ctx.Err()
		case err != nil:
			return nil, nil, errorResult(s.loadError(err, false)), nil
		case !matchesDigest(in.Digest, skillfile.Hash(src)):
			return nil, nil, changedResult(e), nil
		}
	}
	c, err := s.rt.ReadSessionFile(ctx, s.opts.Session, e, pathInSkill(e, in.Path), in.Offset, in.Limit)
	switch {
	case ctx.Err() != nil:
		return nil, nil, nil, ctx.Err()
	case err != nil:
		s.reportFailedFetch(useFile, e, err)
		if refused, ok := errors.AsType[*loadout.RefusedError](err); ok {
			return nil, nil, errorResult(s.refusalText(refused)), nil
		}
		return nil, nil, errorResult(s.errorText(err)), nil
	case c.SkillDigest != "" && c.SkillDigest != held:
		return nil, nil, changedResult(e), nil
	}
	s.reportFile(e, useFile, c.Text)
	return e, c, nil, nil
}

func changedResult(e *catalog.Entry) *mcp.CallToolResult {
	return errorResult(fmt.Sprintf("Skill %s has changed since it was loaded: load it again, then use its files.", e.Name))
}

// checkHeld returns a tool result that refuses to use a file of a skill of an MCP
// server, unless the client names the version that it loaded. This server does
// not know what its client has loaded, and a file of another version must not be
// used. Otherwise, it returns the digest of that version. checkHeld fetches nothing.
func (s *Server) checkHeld(ctx context.Context, e *catalog.Entry, held string) (digest string, res *mcp.CallToolResult, err error) {
	if s.opts.ActiveSkills != nil {
		held = ""
		for _, a := range s.opts.ActiveSkills() {
			if a.Skill.Key() == e.Key() {
				held = a.Digest
			}
		}
		if held == "" {
			return "", errorResult(fmt.Sprintf("Skill %s is not loaded: load it, then use its files.", e.Name)), nil
		}
	}
	if held == "" {
		return "", errorResult(fmt.Sprintf("Skill %s comes from an MCP server: give the digest that it was loaded with, all of its digits.", e.Name)), nil
	}
	now, err := s.rt.Catalog().Digest(ctx, e)
	switch {
	case ctx.Err() != nil:
		return "", nil, ctx.Err()
	case err != nil:
		return "", errorResult(s.loadError(err, false)), nil
	case wholeDigest(held) != wholeDigest(now):
		return "", changedResult(e), nil
	}
	return now, nil, nil
}

// fileContent converts a file to the content of a tool result. A warning is a
// separate content item, so that the text of the file is unchanged.
func (s *Server) fileContent(e *catalog.Entry, c *loadout.Content) []mcp.Content {
	if c.Warning != "" {
		return append([]mcp.Content{&mcp.TextContent{Text: c.Warning}}, s.plainFileContent(e, c)...)
	}
	return s.plainFileContent(e, c)
}

func (s *Server) plainFileContent(e *catalog.Entry, c *loadout.Content) []mcp.Content {
	switch {
	case !c.Binary && c.Next > 0:
		return []mcp.Content{&mcp.TextContent{Text: c.Text},
			&mcp.TextContent{Text: fmt.Sprintf("[%d of %d bytes; go on with offset %d]", c.Next, c.Size, c.Next)}}
	case !c.Binary && c.Text == "": // some clients fail on empty text content
		return []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("[%s ends at byte %d]", c.Path, c.Size)}}
	case !c.Binary:
		return []mcp.Content{&mcp.TextContent{Text: c.Text}}
	case c.Data != nil:
		return []mcp.Content{&mcp.ImageContent{Data: c.Data, MIMEType: c.MIME}}
	}
	what := "is not text"
	if c.TooLarge {
		what = "is too large to be read here"
	}
	msg := fmt.Sprintf("%s %s: %s, %d bytes", c.Path, what, c.MIME, c.Size)
	if at := s.fileLocation(e, c); at != "" {
		msg += ", at " + at
	}
	out := []mcp.Content{&mcp.TextContent{Text: msg}}
	if uri := s.view().uriOf(e); uri != "" {
		out = append(out, &mcp.ResourceLink{URI: uri + "/" + escapePath(c.Path), Name: c.Path, MIMEType: c.MIME, Size: &c.Size})
	}
	return out
}

// fileLocation returns the location at which the client can find a file; see
// location.
func (s *Server) fileLocation(e *catalog.Entry, c *loadout.Content) string {
	if dir := e.Location(); dir != "" && !s.opts.Remote {
		return filepath.Join(dir, filepath.FromSlash(c.Path))
	}
	if uri := s.view().uriOf(e); uri != "" {
		return uri + "/" + escapePath(c.Path)
	}
	return ""
}

func textResult(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// errorResult returns a tool error with a message for the model. The message may
// contain untrusted text.
func errorResult(s string) *mcp.CallToolResult {
	res := textResult(untrusted.New(s).ForModelLines())
	res.IsError = true
	return res
}
