package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/ask"
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
	id      string
	desk    *ask.Desk
}

// converse opens a conversation, and does something with it.
func (a *app) converse(ctx context.Context, c *config.Config, o *chatFlags, model llm.Model, asks bool, do func(*conversation) error, input *typed) error {
	p, err := a.profile(o.profile)
	if err != nil {
		return err
	}
	rt, err := a.runtimeOf(ctx, c, false, chosen(p))
	if err != nil {
		return err
	}
	defer rt.Close()
	log, id, err := a.sessionLog(o.session)
	if err != nil {
		return err
	}
	defer log.Close()
	dir, rules, err := a.chatFolder(o.workspace, id)
	if err != nil {
		return err
	}
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
	set, _, err := a.toolsetOf(ctx, c, rt, toolsetOptions{files: o.files, profile: p, rules: rules,
		builtin: workspace.New(root, &workspace.Options{Run: shellCommands(rt, dir)})})
	if err != nil {
		return err
	}
	defer set.Close()
	follow := a.newFollower(rt, c, set, p)
	defer follow.start(ctx)()
	s, err := rt.NewSession(ctx, &loadout.SessionOptions{Log: log, Tools: set.Hold()})
	if err != nil {
		return err
	}
	defer s.Close()
	server := mcpserver.New(rt, &mcpserver.Options{Workspace: dir, Tools: set.Set, Flags: a.flags(), Refresh: follow.refresh, Version: buildVersion().Version, Logger: a.logger()})
	defer server.Close()
	desk := ask.New(&ask.Memory{})
	elicit, approve := agent.Elicit(desk, id, policy.Local(), 0), agent.Approve(desk, id, policy.Local())
	if !asks {
		elicit, approve = nil, nil
	}
	cs, err := agent.Connect(ctx, server, elicit)
	if err != nil {
		return err
	}
	defer cs.Close()
	tools, err := agent.FromMCP(ctx, cs, "load_skill")
	if err != nil {
		return err
	}
	own, err := agent.FromSet(ctx, set.Set, builtinName, policy.Local(), approve)
	if err != nil {
		return err
	}
	defer a.questions(ctx, desk, input)()
	t := &conversation{session: s, id: id, desk: desk}
	t.Agent = agent.New(model, s, &agent.Options{Instructions: instructions(rt, lead(p)), Tools: slices.Concat(tools, own), Before: follow.refresh, MaxTokens: c.Models.MaxTokens})
	return do(t)
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

// sessionID is what names a conversation.
var sessionID = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// sessionLog opens the log of a conversation, a new one for "".
func (a *app) sessionLog(id string) (*session.File, string, error) {
	dir := a.stateDir()
	if dir == "" {
		return nil, "", fail(exitMissing, "name a directory with LOADOUT_STATE", "there is no place to keep the conversation in")
	}
	dir = filepath.Join(dir, "sessions")
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
	return log, id, err
}
