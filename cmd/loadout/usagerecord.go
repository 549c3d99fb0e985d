package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

// The faces of the program under which usage is recorded.
const (
	faceMCP  = "mcp"
	faceChat = "chat"
	faceRun  = "run"
)

// usageFile returns the usage log, or "" if there is no state directory.
func (a *app) usageFile() string {
	if d := a.stateDir(); d != "" {
		return filepath.Join(d, "usage.jsonl")
	}
	return ""
}

// usageLog returns the log of usage, or nil if usage is not recorded.
func (a *app) usageLog(c *config.Config) *usage.Log {
	file := a.usageFile()
	if file == "" || !c.Usage.Enabled {
		return nil
	}
	return usage.NewLog(file, a.logger())
}

// recordSkillUse returns a function that records the use of skills by a server,
// or nil if usage is not recorded.
func (a *app) recordSkillUse(c *config.Config, face string) func(mcpserver.Use) {
	log := a.usageLog(c)
	if log == nil {
		return nil
	}
	return func(u mcpserver.Use) {
		log.Note(usage.Use{Face: face, Kind: usage.Kind(u.Kind), Skill: u.Skill, Key: u.Key, Tool: u.Script, Tokens: u.Tokens, Took: u.Took, Outcome: usage.Outcome(u.Outcome)})
	}
}

// recordToolUse returns a function that records tool calls, or nil if usage is
// not recorded.
func (a *app) recordToolUse(c *config.Config, face string) func(tools.CallOutcome) {
	log := a.usageLog(c)
	if log == nil {
		return nil
	}
	return func(e tools.CallOutcome) {
		u := usage.Use{Face: face, Kind: usage.KindCall, Tool: e.Tool, Skill: e.Skill, Key: e.SkillKey, Took: e.Duration, Outcome: usage.OK}
		switch {
		case e.Refused:
			u.Outcome = usage.Refused
		case e.Failed:
			u.Outcome = usage.Failed
		}
		log.Note(u)
	}
}

// recordDirectUse returns a function that records calls of directly listed
// tools, or nil if usage is not recorded.
func (a *app) recordDirectUse(c *config.Config) func(server, tool string, failed bool, took time.Duration) {
	log := a.usageLog(c)
	if log == nil {
		return nil
	}
	return func(server, tool string, failed bool, took time.Duration) {
		if server == "loadout" {
			return // the server of Loadout records its own calls
		}
		u := usage.Use{Face: faceMCP, Kind: usage.KindCall, Tool: upstream.ToolName(server, tool), Took: took, Outcome: usage.OK}
		if failed {
			u.Outcome = usage.Failed
		}
		log.Note(u)
	}
}

// recordScriptUse records a run of a script by the user.
func (a *app) recordScriptUse(ctx context.Context, c *config.Config, rt *loadout.Runtime, name string, res *loadout.RunResult, err error) {
	log := a.usageLog(c)
	if log == nil || ctx.Err() != nil {
		return
	}
	e, notFound := rt.Catalog().Resolve(ctx, name)
	if notFound != nil {
		return // a typo of the user
	}
	u := usage.Use{Face: faceRun, Kind: usage.KindScript, Skill: e.Name, Key: e.Key(), Outcome: usage.OK}
	if res != nil {
		u.Tool, u.Took = res.Script, time.Duration(res.DurationMS)*time.Millisecond
	}
	switch {
	case isType[*loadout.RefusedError](err):
		u.Outcome = usage.Refused
	case err != nil || res.ExitCode != 0:
		u.Outcome = usage.Failed
	}
	log.Note(u)
}

// countedLog is the log of a conversation. It records loaded skills and model
// answers when they are appended, not those already in the log.
type countedLog struct {
	session.Log
	uses   *usage.Log
	skills *catalog.Catalog

	mu    sync.Mutex
	loads map[string]string // names of pending load_skill calls, by id
}

// countLog returns a log that records usage, or log itself if usage is not
// recorded.
func (a *app) countLog(log session.Log, c *config.Config, rt *loadout.Runtime) session.Log {
	uses := a.usageLog(c)
	if uses == nil {
		return log
	}
	return &countedLog{Log: log, uses: uses, skills: rt.Catalog(), loads: map[string]string{}}
}

// Append implements [session.Log].
func (l *countedLog) Append(ctx context.Context, events ...*session.Event) error {
	if err := l.Log.Append(ctx, events...); err != nil {
		return err
	}
	for _, e := range events {
		l.countEvent(ctx, e)
	}
	return nil
}

func (l *countedLog) countEvent(ctx context.Context, e *session.Event) {
	switch {
	case e.Loaded != nil:
		l.uses.Note(usage.Use{Face: faceChat, Kind: usage.KindLoad, Skill: e.Loaded.Skill.Name, Key: e.Loaded.Skill.Key(), Tokens: e.Loaded.Tokens, Outcome: usage.OK})
	case e.Message != nil && e.Message.Role == session.RoleAssistant:
		l.countMessage(e.Message)
	case e.Result != nil:
		l.countFailedLoad(ctx, e.Result)
	}
}

func (l *countedLog) countMessage(m *session.Message) {
	if m.Usage != nil && m.Model != "" {
		u := llm.Usage(*m.Usage)
		l.uses.Note(usage.Use{Face: faceChat, Kind: usage.KindModel, Model: m.Model, Usage: &u, Outcome: usage.OK})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.loads) // vendors reuse call ids
	for _, c := range m.Calls {
		var in struct{ Name string }
		if c.Name == toolname.LoadSkill && json.Unmarshal([]byte(c.Arguments), &in) == nil {
			l.loads[c.ID] = in.Name
		}
	}
}

// countFailedLoad records a failed load. A successful one has an event of its
// own.
func (l *countedLog) countFailedLoad(ctx context.Context, r *session.CallResult) {
	l.mu.Lock()
	name, load := l.loads[r.Call]
	l.mu.Unlock()
	if !load || !r.Error {
		return
	}
	u := usage.Use{Face: faceChat, Kind: usage.KindLoad, Outcome: usage.Failed}
	if e, err := l.skills.Resolve(ctx, name); err == nil { // else the name is unknown
		u.Skill, u.Key = e.Name, e.Key()
	}
	l.uses.Note(u)
}
