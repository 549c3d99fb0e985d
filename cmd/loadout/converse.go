package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/pattern"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/workspace"
)

// conversation is a chat under way.
type conversation struct {
	*agent.Agent
	session *session.Session
	runtime *loadout.Runtime
	set     *toolset
	id      string
	desk    *ask.Desk
	folder  string // that it works on
	named   string // the same, where the person named it
}

// converse opens a conversation, and does something with it.
func (a *app) converse(ctx context.Context, c *config.Config, o *chatFlags, model llm.Model, asks bool, do func(*conversation) error, input *typed) error {
	p, err := a.profile(o.profile)
	if err != nil {
		return err
	}
	log, id, err := a.sessionLog(o.session)
	if err != nil {
		return err
	}
	defer log.Close()
	if o.workspace == "" {
		if o.workspace, err = folderOf(ctx, log); err != nil {
			return err
		}
	}
	dir, rules, err := a.chatFolder(o.workspace, id)
	if err != nil {
		return err
	}
	if err := a.projectSkills(ctx, c, o); err != nil {
		return err
	}
	rt, err := a.chatRuntime(ctx, c, o, chosen(p))
	if err != nil {
		return err
	}
	defer rt.Close()
	if o.workspace != "" {
		if err := rt.CheckWorkspace(dir); err != nil {
			return fail(exitRefused, "name another directory, or work without --workspace", "%w", err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	t := &conversation{runtime: rt, id: id, desk: ask.New(a.askStore()), folder: dir}
	set, _, err := a.toolsetOf(ctx, c, rt, toolsetOptions{files: o.files, profile: p, rules: rules, session: id, folder: dir,
		builtin: workspace.New(root, &workspace.Options{Run: shellCommands(rt, dir), Made: func(link string) ([]byte, error) { return mcpserver.ReadLink(rt, link) }, Elsewhere: t.elsewhere, Project: a.projectDir(o.workspace), Saved: rt.Catalog().Reload})})
	if err != nil {
		return err
	}
	defer set.Close()
	follow := a.newFollower(rt, c, set, p)
	defer follow.start(ctx)()
	s, err := rt.NewSession(ctx, &loadout.SessionOptions{Log: a.counted(log, c, rt), ID: id, Tools: set.Hold(), Retention: c.Skills.Keep, Budget: c.Skills.Budget})
	if err != nil {
		return err
	}
	defer s.Close()
	t.session, t.set = s, set
	if o.workspace != "" {
		t.named = dir
	}
	opts, hangUp, err := a.agentOptions(ctx, c, t, lead(p), asks, follow.refresh)
	if err != nil {
		return err
	}
	defer hangUp()
	t.Agent = agent.New(model, s, opts)
	marked, err := a.marked(ctx, t, o)
	if err != nil {
		return err
	}
	if err := t.preload(ctx, append(marked, o.preload...)); err != nil {
		return err
	}
	defer a.questions(ctx, t.desk, input)()
	return do(t)
}

// agentOptions are the tools of an agent, and how it asks: the tools of the MCP face,
// but that it loads skills in its conversation and calls tools by itself, and those of
// its working folder. hangUp ends the connection to them.
func (a *app) agentOptions(ctx context.Context, c *config.Config, t *conversation, lead string, asks bool, refresh func(context.Context) error) (o *agent.Options, hangUp func(), err error) {
	me := policy.Local()
	elicit, approve := agent.Elicit(t.desk, t.id, me, 0), agent.Approve(t.desk, t.id, me)
	if !asks {
		elicit, approve = nil, nil
	}
	server := mcpserver.New(t.runtime, &mcpserver.Options{Workspace: t.folder, Tools: t.set.Set, Session: t.id, Quiet: true, Invoked: t.inForce, Flags: a.flags(), Refresh: refresh, Used: a.usedSkills(c, faceChat), Version: buildVersion().Version, Logger: a.logger()})
	cs, err := agent.Connect(ctx, server, elicit)
	if err != nil {
		return nil, nil, errors.Join(err, server.Close())
	}
	hangUp = func() { cs.Close(); server.Close() }
	defer func() {
		if err != nil {
			hangUp()
		}
	}()
	served, err := cs.Tools(ctx, "load_skill", "call_tool")
	if err != nil {
		return nil, nil, err
	}
	consent := &consent{app: a, rt: t.runtime, config: c, set: t.set.Set, desk: t.desk, id: t.id}
	caller := &agent.Caller{Set: t.set.Set, Session: t.session, Principal: me, Standing: consent.standing, Approve: approve, Elicit: elicit}
	own, err := caller.Server(ctx, builtinName)
	if err != nil {
		return nil, nil, err
	}
	tell := func() string { return instructions(t.runtime, lead) }
	o = &agent.Options{Instructions: tell(), Renew: tell, Folder: t.named, Tools: slices.Concat(served, []agent.Tool{caller.CallTool()}, own), Before: refresh,
		Skills: func() []agent.Offer { return offers(t.runtime) }, Model: a.namedModel(ctx, c), Desk: t.desk, MaxTokens: c.Models.MaxTokens, Window: c.Models.Window}
	if asks {
		o.Load = consent.load
	}
	return o, hangUp, nil
}

// folderOf is the folder that the person named when the conversation began.
func folderOf(ctx context.Context, log session.Log) (string, error) {
	events, err := log.Read(ctx, 0)
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(events) {
		if e.Begun == nil || e.Begun.Folder == "" {
			continue
		}
		if fi, err := os.Stat(e.Begun.Folder); err != nil || !fi.IsDir() {
			return "", fail(exitNotFound, "name where it is now, with --workspace", "the conversation is about the folder %s, which is not there", e.Begun.Folder)
		}
		return e.Begun.Folder, nil
	}
	return "", nil
}

// inForce reports whether a skill is loaded.
func (t *conversation) inForce(e *catalog.Entry) bool {
	return slices.ContainsFunc(t.session.Active(), func(a session.Active) bool { return a.Skill.Key() == e.Key() })
}

// marked are the skills that want to be there from the start of a conversation that
// begins, but for those of a project that nobody said yes to.
func (a *app) marked(ctx context.Context, t *conversation, o *chatFlags) ([]string, error) {
	if len(t.session.Events(0)) > 0 {
		return nil, nil // it goes on as it was
	}
	var keys []string
	for _, e := range t.runtime.Catalog().Snapshot().Offered() {
		if !e.Preload {
			continue
		}
		if e.Scope == catalog.Project && len(a.skills) == 0 {
			if wanted, err := a.wanted(ctx, a.projectOf(e, o)); err != nil {
				return nil, err
			} else if !wanted {
				a.note("the skill %s of the project is not loaded from the start: nobody said that the skills of this project may be used; loadout chat asks", e.Name)
				continue
			}
		}
		keys = append(keys, e.Key())
	}
	return keys, nil
}

// preload loads skills for the whole conversation.
func (t *conversation) preload(ctx context.Context, named []string) error {
	for _, name := range named {
		res, err := t.Load(ctx, name, session.KeepPinned)
		if err != nil {
			return err
		}
		if res.State == session.StateFailed {
			return fail(exitNotFound, "see those that there are: loadout list", "preload %s: %s", name, strings.Join(res.Problems, "; "))
		}
	}
	return nil
}

// instructions are what a model is told first.
func instructions(rt *loadout.Runtime, lead string) string {
	text := "You help the person you talk to. Your working folder has the files that you read and write; commands run there, in a sandbox. Skills are instructions for kinds of tasks: before a task that one of them is for, load it with load_skill and go by it. " +
		"Call the tools that it brings with call_tool, and run its scripts with run_skill_script. Say plainly what failed.\n"
	if lead != "" {
		text = lead + "\n\n" + text
	}
	if skills := rt.CatalogText(loadout.TextOptions{Tokens: 4000}); skills != "" {
		text += "\nSkills:\n" + skills
	}
	return text
}

// askStore is where questions are kept until they are answered.
func (a *app) askStore() ask.Store {
	if d := a.stateDir(); d != "" {
		return ask.NewFiles(filepath.Join(d, "asks"))
	}
	return &ask.Memory{}
}

// sessionID is what names a conversation.
var sessionID = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// sessionsDir is where conversations are kept.
func (a *app) sessionsDir() (string, error) {
	dir := a.stateDir()
	if dir == "" {
		return "", fail(exitMissing, "name a directory with LOADOUT_STATE", "there is no place to keep the conversation in")
	}
	return filepath.Join(dir, "sessions"), nil
}

// sessionLog opens the log of a conversation, a new one for "".
func (a *app) sessionLog(id string) (*session.File, string, error) {
	dir, err := a.sessionsDir()
	if err != nil {
		return nil, "", err
	}
	if id == "" {
		id = time.Now().Format("20060102-150405-") + strings.ToLower(rand.Text()[:5])
	} else if !sessionID().MatchString(id) {
		return nil, "", fail(exitUsage, "see those that there are in "+dir, "%q names no conversation", id)
	} else if _, err := os.Stat(filepath.Join(dir, id+".jsonl")); err != nil {
		return nil, "", fail(exitNotFound, "see those that there are in "+dir, "there is no conversation %s", id)
	}
	log, err := session.OpenFile(filepath.Join(dir, id+".jsonl"))
	if errors.Is(err, session.ErrInUse) {
		return nil, "", fail(exitFound, "end it there first", "conversation %s: %w", id, err)
	}
	if err != nil && !isType[*os.PathError](err) {
		return nil, "", fail(exitFound, "begin a new one: loadout chat"+a.flags(), "conversation %s: %w", id, err)
	}
	if err != nil {
		return nil, "", fmt.Errorf("conversation %s: %w", id, err)
	}
	return log, id, nil
}
