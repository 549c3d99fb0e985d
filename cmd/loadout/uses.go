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
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
	"github.com/loadout-dev/loadout/upstream"
)

// The faces of the program, by which uses are counted.
const (
	faceMCP  = "mcp"
	faceChat = "chat"
	faceRun  = "run"
)

// usageFile is where uses are counted, "" where there is no place for it.
func (a *app) usageFile() string {
	if d := a.stateDir(); d != "" {
		return filepath.Join(d, "usage.jsonl")
	}
	return ""
}

// uses is the log of what is used, nil where nothing is counted.
func (a *app) uses(c *config.Config) *usage.Log {
	file := a.usageFile()
	if file == "" || !c.Usage.Enabled {
		return nil
	}
	return usage.NewLog(file, a.logger())
}

// usedSkills notes what a server tells of; nil where nothing is counted.
func (a *app) usedSkills(c *config.Config, face string) func(mcpserver.Use) {
	log := a.uses(c)
	if log == nil {
		return nil
	}
	return func(u mcpserver.Use) {
		log.Note(usage.Use{Face: face, Kind: usage.Kind(u.Kind), Skill: u.Skill, Key: u.Key, Tool: u.Script, Tokens: u.Tokens, Took: u.Took, Outcome: usage.Outcome(u.Outcome)})
	}
}

// usedTools notes calls of tools; nil where nothing is counted.
func (a *app) usedTools(c *config.Config, face string) func(tools.Ended) {
	log := a.uses(c)
	if log == nil {
		return nil
	}
	return func(e tools.Ended) {
		u := usage.Use{Face: face, Kind: usage.KindCall, Tool: e.Tool, Skill: e.Skill, Key: e.SkillKey, Took: e.Took, Outcome: usage.OK}
		switch {
		case e.Refused:
			u.Outcome = usage.Refused
		case e.Failed:
			u.Outcome = usage.Failed
		}
		log.Note(u)
	}
}

// usedDirectly notes calls of tools that are listed as they are; nil where nothing is
// counted.
func (a *app) usedDirectly(c *config.Config) func(server, tool string, failed bool, took time.Duration) {
	log := a.uses(c)
	if log == nil {
		return nil
	}
	return func(server, tool string, failed bool, took time.Duration) {
		if server == "loadout" {
			return // whose own server tells of it
		}
		u := usage.Use{Face: faceMCP, Kind: usage.KindCall, Tool: upstream.ToolName(server, tool), Took: took, Outcome: usage.OK}
		if failed {
			u.Outcome = usage.Failed
		}
		log.Note(u)
	}
}

// usedScript notes a run that a person typed.
func (a *app) usedScript(ctx context.Context, c *config.Config, rt *loadout.Runtime, name string, res *loadout.Ran, err error) {
	log := a.uses(c)
	if log == nil || ctx.Err() != nil {
		return
	}
	e, notFound := rt.Catalog().Resolve(ctx, name)
	if notFound != nil {
		return // a slip of the person
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

// countedLog is the log of a conversation, of which loads and answers of models are
// counted when they are appended. What it holds already was counted then.
type countedLog struct {
	session.Log
	uses   *usage.Log
	skills *catalog.Catalog

	mu    sync.Mutex
	loads map[string]string // calls of load_skill without a result, and what they name
}

// counted counts what is appended to a log of a chat, where anything is counted.
func (a *app) counted(log session.Log, c *config.Config, rt *loadout.Runtime) session.Log {
	uses := a.uses(c)
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
		l.count(ctx, e)
	}
	return nil
}

func (l *countedLog) count(ctx context.Context, e *session.Event) {
	switch {
	case e.Loaded != nil:
		l.uses.Note(usage.Use{Face: faceChat, Kind: usage.KindLoad, Skill: e.Loaded.Skill.Name, Key: e.Loaded.Skill.Key(), Tokens: e.Loaded.Tokens, Outcome: usage.OK})
	case e.Message != nil && e.Message.Role == session.RoleAssistant:
		l.answered(e.Message)
	case e.Result != nil:
		l.returned(ctx, e.Result)
	}
}

func (l *countedLog) answered(m *session.Message) {
	if m.Usage != nil && m.Model != "" {
		u := llm.Usage(*m.Usage)
		l.uses.Note(usage.Use{Face: faceChat, Kind: usage.KindModel, Model: m.Model, Usage: &u, Outcome: usage.OK})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.loads) // vendors use IDs of calls again
	for _, c := range m.Calls {
		var in struct{ Name string }
		if c.Name == "load_skill" && json.Unmarshal([]byte(c.Arguments), &in) == nil {
			l.loads[c.ID] = in.Name
		}
	}
}

// returned counts a load that failed: one that did not has an event of its own.
func (l *countedLog) returned(ctx context.Context, r *session.Returned) {
	l.mu.Lock()
	name, load := l.loads[r.Call]
	l.mu.Unlock()
	if !load || !r.Error {
		return
	}
	u := usage.Use{Face: faceChat, Kind: usage.KindLoad, Outcome: usage.Failed}
	if e, err := l.skills.Resolve(ctx, name); err == nil { // else the name is only the model's
		u.Skill, u.Key = e.Name, e.Key()
	}
	l.uses.Note(u)
}
