package mcpserver

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/sandbox"
)

// addScriptTool adds the tool that runs scripts, if the runtime can run
// scripts.
func (s *Server) addScriptTool(sdk *mcp.Server) {
	if !s.rt.RunsScripts() {
		return
	}
	switch s.opts.Compat {
	case "":
		addCallTool(sdk, &mcp.Tool{Name: toolname.RunSkillScript, Title: "Run a script of a skill", Annotations: destructive,
			InputSchema: schemaOf[scriptArgs](), OutputSchema: scriptResultSchema(), Description: "Run a script of a skill in a sandbox and get its output and the files it left in /work/out."}, (*Server).runScript)
	case "weknora":
		addCallTool(sdk, &mcp.Tool{Name: toolname.ExecuteSkillScript, Annotations: destructive,
			InputSchema: schemaOf[compatScriptArgs](), OutputSchema: sharedSchema(schemaKey{reflect.TypeFor[compatScriptResult](), toolname.ExecuteSkillScript},
				func() *jsonschema.Schema { return allowExtraProperties(newSchema[compatScriptResult]()) }),
			Description: "Run a script of a skill in an isolated environment and get its output."}, (*Server).compatExecute)
	default:
		return
	}
	addFolders(sdk)
}

// destructive holds the annotations of tools whose effects are unknown.
var destructive = &mcp.ToolAnnotations{DestructiveHint: new(true), OpenWorldHint: new(true)}

// addCallTool is like addTool, but passes the request to the handler, so that
// it can report progress.
func addCallTool[In, Out any](sdk *mcp.Server, t *mcp.Tool, h func(*Server, context.Context, *mcp.CallToolRequest, In) (*mcp.CallToolResult, *Out, error)) {
	mcp.AddTool(sdk, t, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		res, out, err := h(serverOf(ctx), ctx, req, in)
		return withStructured(ctx, res, out, err)
	})
}

// normalizeArguments adapts arguments to the strict schemas. To support simple
// clients, these have a single type for each value. args may be a string, which
// is split as in a shell, and name may be spelled skill_name.
func (s *Server) normalizeArguments(call *mcp.CallToolParamsRaw) error {
	var change func(map[string]json.RawMessage) error
	switch runs := s.rt.RunsScripts(); {
	case s.opts.Compat == "" && call.Name == toolname.LoadSkill:
		change = renameSkillName
	case runs && s.opts.Compat == "" && call.Name == toolname.RunSkillScript, runs && s.opts.Compat == "weknora" && call.Name == toolname.ExecuteSkillScript:
		change = splitArgs
	default:
		return nil
	}
	var in map[string]json.RawMessage
	if json.Unmarshal(call.Arguments, &in) != nil || in == nil {
		return nil // schema validation reports the error
	}
	if err := change(in); err != nil {
		return err
	}
	out, err := json.Marshal(in)
	if err == nil {
		call.Arguments = out
	}
	return err
}

func renameSkillName(in map[string]json.RawMessage) error {
	other, ok := in["skill_name"]
	if ok {
		delete(in, "skill_name")
		if n, given := in["name"]; !given || string(n) == `""` {
			in["name"] = other
		}
	}
	return nil
}

func splitArgs(in map[string]json.RawMessage) error {
	raw, ok := in["args"]
	var line *string
	if !ok || json.Unmarshal(raw, &line) != nil || line == nil {
		return nil
	}
	words, err := script.Split(*line)
	if err != nil {
		return err
	}
	in["args"], err = json.Marshal(append([]string{}, words...))
	return err
}

type scriptArgs struct {
	Skill  string        `json:"skill" jsonschema:"name of the skill"`
	Script string        `json:"script" jsonschema:"path of the script inside the skill"`
	Args   []string      `json:"args,omitempty" jsonschema:"arguments; files that are given are at /work/in/NAME"`
	Stdin  string        `json:"stdin,omitempty"`
	Inputs []scriptInput `json:"inputs,omitempty" jsonschema:"files to give the script as /work/in/NAME"`
	Folder string        `json:"folder,omitempty" jsonschema:"folder of a run before, to go on with its files in /work"`
	Digest string        `json:"digest,omitempty" jsonschema:"digest that the skill was loaded with"`
}

type scriptInput struct {
	Name   string  `json:"name,omitempty"`
	Text   *string `json:"text,omitempty"` // may be set to an empty string
	Base64 *string `json:"base64,omitempty"`
	Path   string  `json:"path,omitempty" jsonschema:"or a path in the workspace"`
}

// scriptResult is a [loadout.RunResult] without the fields that a model does
// not need.
type scriptResult struct {
	loadout.RunResult
	Limits    *struct{} `json:"limits,omitempty"` // hides the embedded field, which is of no use to a model
	MoreFiles int       `json:"more_files,omitempty"`
	notice
}

func newScriptResult(r *loadout.RunResult) *scriptResult {
	out := &scriptResult{RunResult: *r}
	out.HeldChanges = slices.Clone(r.HeldChanges)
	for i := range out.HeldChanges {
		out.HeldChanges[i].Diff = "" // for the user, and of any length
	}
	if rest := len(r.Files) - maxFiles; rest > 0 {
		out.Files, out.MoreFiles = r.Files[:maxFiles], rest
	}
	return out
}

// scriptResultSchema describes the fields of a script result that a model can
// act on.
var scriptResultSchema = sync.OnceValue(func() *jsonschema.Schema {
	type file struct {
		Path string `json:"path"`
		Size int64  `json:"size"`
	}
	type shape struct {
		ExitCode int    `json:"exit_code"`
		Stdout   string `json:"stdout"`
		Stderr   string `json:"stderr"`
		Reason   string `json:"reason" jsonschema:"ok, exit, timeout, oom, …"`
		Files    []file `json:"files"`
		Folder   string `json:"folder,omitempty" jsonschema:"where its files are, for the next run"`
	}
	return allowExtraProperties(newSchema[shape]())
})

func (s *Server) runScript(ctx context.Context, req *mcp.CallToolRequest, in scriptArgs) (*mcp.CallToolResult, *scriptResult, error) {
	if question := s.approveSkill(ctx, req); question != nil {
		return question, nil, nil
	}
	run := loadout.Run{Skill: in.Skill, Script: in.Script, Args: in.Args, Folder: in.Folder, NewFolder: true}
	if in.Stdin != "" {
		run.Stdin = strings.NewReader(in.Stdin)
	}
	before := s.scanFigures(run.Folder)
	res, bad, err := s.runSkillScript(ctx, req, run, in.Digest, in.Inputs...)
	if res == nil {
		return bad, nil, err
	}
	text := s.scriptResultText(res)
	if res.ExitCode != 0 {
		text += s.skillAlternatives(ctx, in.Skill, nil)
	}
	out := textResult(text)
	out.IsError = res.ExitCode != 0
	out.Content = append(out.Content, s.folderLinks(res)...)
	out.Content = append(out.Content, s.newFigures(res.Folder, before)...)
	return out, newScriptResult(res), nil
}

// runSkillScript runs a script and reports progress. held is the digest of the
// loaded skill, if the client gave one. If the script was refused or could not
// start, runSkillScript returns a tool result that says why.
func (s *Server) runSkillScript(ctx context.Context, req *mcp.CallToolRequest, run loadout.Run, held string, inputs ...scriptInput) (*loadout.RunResult, *mcp.CallToolResult, error) {
	if s.opts.Refresh != nil {
		if err := s.opts.Refresh(ctx); err != nil {
			return nil, errorResult("Nothing was run, as the configuration cannot be read: " + s.errorText(err)), nil
		}
	}
	if s.view().snap.Disabled || s.rt.Catalog().Snapshot().Disabled {
		return nil, errorResult(skillsDisabled), nil
	}
	e, err := s.rt.Catalog().Resolve(ctx, run.Skill)
	if err != nil {
		e = nil // Run reports the error
	}
	if e != nil && e.DisableModelInvocation && (s.opts.InvokedByUser == nil || !s.opts.InvokedByUser(e)) {
		s.reportRefusal(useScript, e)
		return nil, errorResult((&userOnlyError{e}).Error() + "." + s.skillAlternatives(ctx, run.Skill, nil)), nil
	}
	if e != nil {
		run.Script = pathInSkill(e, run.Script)
	}
	// The earlier tools have no digest: their scripts are those that the user approved.
	if e != nil && e.Server != "" && s.opts.Compat == "" {
		if _, res, err := s.checkHeld(ctx, e, held); res != nil || err != nil {
			return nil, res, err
		}
	}
	for _, i := range inputs { // Refresh may have created the workspace
		input, closer, err := s.openInput(i)
		if err != nil {
			return nil, errorResult(err.Error()), nil
		}
		defer closer()
		run.Inputs = append(run.Inputs, input)
	}
	run.Workspace, run.Session = s.opts.Workspace, s.opts.Session
	if s.opts.ActiveSkills != nil {
		run.Skills = s.opts.ActiveSkills()
	}
	run.ApproveChanges = s.approveChanges(req)
	run.Principal, _ = requestPrincipal(ctx) // the zero value means the runtime's principal
	done := s.reportProgress(ctx, req, &run)
	began := time.Now()
	res, err := s.rt.Run(ctx, run)
	took := time.Since(began)
	done()
	if ctx.Err() == nil {
		s.reportScript(e, res, err, took)
	}
	switch {
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case err != nil && res == nil:
		alternatives := ""
		if !isCorrectable(err) {
			alternatives = s.skillAlternatives(ctx, run.Skill, err)
		}
		return nil, errorResult(s.runError(err, alternatives != "") + alternatives), nil
	}
	res.Stdout, res.Stderr = truncateMiddle(res.Stdout), truncateMiddle(res.Stderr)
	if err != nil { // the script ran, but its files could not be saved
		return nil, errorResult(strings.TrimSuffix(s.errorText(err), ".") + ". " + s.scriptResultText(res)), nil
	}
	return res, nil, nil
}

// pathInSkill returns a file's path relative to the skill. name may be
// absolute, because instructions may contain absolute paths.
func pathInSkill(e *catalog.Entry, name string) string {
	place := e.Location()
	if place == "" || !filepath.IsAbs(name) {
		return name
	}
	rel, err := filepath.Rel(place, name)
	if err != nil || !filepath.IsLocal(rel) {
		return name // refused later
	}
	return filepath.ToSlash(rel)
}

// reportProgress sends progress notifications while a script runs, if the
// client requested them.
func (s *Server) reportProgress(ctx context.Context, req *mcp.CallToolRequest, run *loadout.Run) (done func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	began := time.Now()
	says := make(chan string, 4)
	run.Progress = func(what string) {
		select {
		case says <- what:
		default: // drop the message; the next one replaces it
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		what := "preparing"
		for n := 1.0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case what = <-says:
			case <-tick.C:
			}
			msg := what
			if d := time.Since(began).Round(time.Second); d > 0 {
				msg += ", " + d.String()
			}
			if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: msg}); err != nil {
				return // the client has disconnected
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// isCorrectable reports whether a model can correct the arguments of the run that
// failed with err.
func isCorrectable(err error) bool {
	return errors.Is(err, loadout.ErrNoFolder) || isError[*script.NotFoundError](err) ||
		isError[*script.NotScriptError](err) || isError[*script.OutsideError](err)
}

func isError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// runError returns a message with the next step for err, the reason why a
// script could not start. hasMore means that the caller appends alternatives to
// the message.
func (s *Server) runError(err error, hasMore bool) string {
	if e, ok := errors.AsType[*loadout.RefusedError](err); ok {
		return s.refusalText(e)
	}
	if e, ok := errors.AsType[*sandbox.UnavailableError](err); ok && e.Fix != "" {
		return strings.TrimSuffix(s.errorText(err), ".") + ". Fix: " + e.Fix
	}
	if errors.Is(err, fs.ErrNotExist) {
		return s.loadError(err, hasMore)
	}
	if errors.Is(err, loadout.ErrNoFolder) {
		return s.errorText(err) + "; omit folder to start a new one"
	}
	return s.errorText(err)
}

// refusalText returns a message about a refused skill. It begins with what the
// user can do.
func (s *Server) refusalText(e *loadout.RefusedError) string {
	if e.Decision.Code == decision.Unreadable && s.opts.Remote {
		return fmt.Sprintf("skill %s may not run scripts: what was approved cannot be read.", e.Skill)
	}
	msg := e.Error() + "."
	switch how := cmp.Or(s.howToApprove(e), e.Decision.Hint); {
	case isUserAction(how):
		return "The user can " + how + ": " + msg
	case how != "":
		msg += " Next step: " + how + "."
	}
	return msg
}

// maxOutput is the maximum number of characters of stdout and of stderr shown
// to a model.
const maxOutput = 24_000

// truncateMiddle truncates long output in the middle.
func truncateMiddle(text string) string {
	runes := []rune(text)
	if len(runes) <= maxOutput {
		return text
	}
	return string(runes[:maxOutput/2]) + fmt.Sprintf("\n[… %d characters are left out …]\n", len(runes)-maxOutput) + string(runes[len(runes)-maxOutput/2:])
}

// endReason returns the reason why a script ended, or "" if the exit code is
// sufficient.
func endReason(r *loadout.RunResult) string {
	detail := r.Detail
	switch {
	case detail != "":
	case r.Reason == sandbox.OK || r.Reason == sandbox.Exited:
		return ""
	case r.Reason == sandbox.Disabled:
		detail = "its grant was revoked"
	default:
		return string(r.Reason)
	}
	return fmt.Sprintf("%s: %s", r.Reason, detail)
}

// scriptResultText renders the result of a run for models that see only text.
func (s *Server) scriptResultText(r *loadout.RunResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Exit code %d", r.ExitCode)
	if why := endReason(r); why != "" {
		fmt.Fprintf(&b, " (%s)", why)
	}
	b.WriteString(".\n")
	for _, out := range []struct{ name, text string }{{"Output", r.Stdout}, {"Errors", r.Stderr}} {
		if out.text != "" {
			fmt.Fprintf(&b, "%s:\n%s\n", out.name, strings.TrimSuffix(out.text, "\n"))
		}
	}
	if r.Truncated {
		b.WriteString("More was written than is kept.\n")
	}
	if len(r.DeniedHosts) > 0 {
		fmt.Fprintf(&b, "Connections were refused to: %s.\n", strings.Join(r.DeniedHosts, ", "))
	}
	for _, n := range r.Notes {
		b.WriteString("Note: " + n + ".\n")
	}
	if r.Folder == "" {
		return b.String()
	}
	fmt.Fprintf(&b, "Files in the working folder %s", r.Folder)
	if s.opts.Compat == "" {
		b.WriteString("; to go on with them, run with this folder")
	}
	b.WriteString(":\n")
	dir := ""
	if !s.opts.Remote {
		dir, _ = s.rt.FolderPath(r.Folder) // the folder existed a moment ago
	}
	for i, f := range r.Files {
		if i == maxFiles {
			fmt.Fprintf(&b, "… and %d more\n", len(r.Files)-i)
			break
		}
		fmt.Fprintf(&b, "- %s (%d bytes)\n", filepath.Join(dir, filepath.FromSlash(f.Path)), f.Size)
	}
	return b.String()
}

// openInput opens an input file that a client passes with a call. It returns a
// function that closes the file.
func (s *Server) openInput(in scriptInput) (loadout.Input, func(), error) {
	value := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	// Some clients send empty values for unused arguments.
	text, encoded := value(in.Text), value(in.Base64)
	switch {
	case in.Path != "" && (text != "" || encoded != ""), text != "" && encoded != "", in.Path == "" && in.Text == nil && in.Base64 == nil:
		return loadout.Input{}, nil, fmt.Errorf("input %q: set exactly one of text, base64 and path", in.Name)
	case in.Path == "":
		data := []byte(text)
		if encoded != "" {
			var err error
			if data, err = base64.StdEncoding.DecodeString(encoded); err != nil {
				return loadout.Input{}, nil, fmt.Errorf("input %q: %w", in.Name, err)
			}
		}
		return loadout.Input{Name: in.Name, Data: data}, func() {}, nil
	case s.opts.Workspace == "":
		return loadout.Input{}, nil, fmt.Errorf("input %q: this server has no workspace (loadout mcp --workspace DIR); pass the content as text or base64", in.Path)
	}
	root, err := os.OpenRoot(s.opts.Workspace)
	if err != nil {
		return loadout.Input{}, nil, fmt.Errorf("open workspace: %w", err)
	}
	p := in.Path
	if filepath.IsAbs(p) {
		if rel, err := filepath.Rel(s.opts.Workspace, p); err == nil {
			p = rel
		}
	}
	p = filepath.ToSlash(filepath.Clean(p))
	if !fs.ValidPath(p) || p == "." {
		root.Close()
		return loadout.Input{}, nil, fmt.Errorf("input %q is not a path in the workspace", in.Path)
	}
	name := in.Name
	if name == "" {
		name = filepath.Base(p)
	}
	return loadout.Input{Name: name, FS: root.FS(), Path: p}, func() { root.Close() }, nil
}

// The following functions serve weknora.

type compatScriptArgs struct {
	SkillName  string   `json:"skill_name" jsonschema:"name of the skill"`
	ScriptPath string   `json:"script_path" jsonschema:"path of the script inside the skill, as scripts/analyze.py"`
	Args       []string `json:"args,omitempty" jsonschema:"arguments of the script"`
	Input      string   `json:"input,omitempty" jsonschema:"what the script reads from its standard input"`
}

type compatScriptResult struct {
	SkillName  string   `json:"skill_name"`
	ScriptPath string   `json:"script_path"`
	Args       []string `json:"args"`
	ExitCode   int      `json:"exit_code"`
	Stdout     string   `json:"stdout"`
	Stderr     string   `json:"stderr"`
	DurationMS int64    `json:"duration_ms"`
	Killed     bool     `json:"killed"`
	Error      string   `json:"error,omitempty"`
}

// compatEnv contains the environment variables with which weknora passes
// directories to scripts. The skills directory is /needs, which contains the
// dependencies of a skill.
var compatEnv = map[string]string{
	"WEKNORA_SKILL_OUTPUT_DIR": mountpoint.Out, "WEKNORA_SKILL_HISTORY_ROOT": mountpoint.Out, "WEKNORA_SESSION_INPUT_DIR": mountpoint.In, "WEKNORA_SKILLS_DIR": mountpoint.Needs,
}

func (s *Server) compatExecute(ctx context.Context, req *mcp.CallToolRequest, in compatScriptArgs) (*mcp.CallToolResult, *compatScriptResult, error) {
	run := loadout.Run{Skill: in.SkillName, Script: in.ScriptPath, Args: in.Args, NewFolder: true, Env: compatEnv}
	if in.Input != "" {
		run.Stdin = strings.NewReader(in.Input)
	}
	res, bad, err := s.runSkillScript(ctx, req, run, "")
	if res == nil {
		return bad, nil, err
	}
	out := &compatScriptResult{SkillName: res.Skill, ScriptPath: res.Script, Args: append([]string{}, in.Args...), ExitCode: res.ExitCode,
		Stdout: res.Stdout, Stderr: res.Stderr, DurationMS: res.DurationMS, Killed: res.Killed}
	if res.Reason != sandbox.OK {
		out.Error = fmt.Sprintf("Script exited with code %d", res.ExitCode)
		if why := endReason(res); why != "" {
			out.Error += " (" + why + ")"
		}
	}
	result := textResult(fmt.Sprintf("Script %s of skill %s took %d ms. %s", res.Script, res.Skill, res.DurationMS, s.scriptResultText(res)))
	result.Content = append(result.Content, s.folderLinks(res)...)
	result.Content = append(result.Content, s.newFigures(res.Folder, nil)...)
	result.IsError = res.ExitCode != 0
	return result, out, nil
}
