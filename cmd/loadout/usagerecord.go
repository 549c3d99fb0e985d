package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

// The faces of the program under which usage is recorded.
const (
	faceMCP  = usage.FaceMCP
	faceChat = usage.FaceChat
	faceRun  = usage.FaceRun
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
		log.Note(usage.Use{Interface: face, Kind: usage.Kind(u.Kind), Skill: u.Skill, Key: u.Key, Tool: u.Script, Tokens: u.Tokens, Took: u.Took, Outcome: usage.Outcome(u.Outcome)})
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
		u := usage.Use{Interface: face, Kind: usage.KindCall, Tool: e.Tool, Skill: e.Skill, Key: e.SkillKey, Took: e.Duration, Outcome: usage.OK}
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
		u := usage.Use{Interface: faceMCP, Kind: usage.KindCall, Tool: upstream.ToolName(server, tool), Took: took, Outcome: usage.OK}
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
	u := usage.Use{Interface: faceRun, Kind: usage.KindScript, Skill: e.Name, Key: e.Key(), Outcome: usage.OK}
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

// countLog returns a log of a conversation that records usage, or log itself if
// usage is not recorded.
func (a *app) countLog(log session.Log, c *config.Config, rt *loadout.Runtime) session.Log {
	return a.usageLog(c).CountSession(log, faceChat, func(ctx context.Context, name string) (skill, key string, ok bool) {
		e, err := rt.Catalog().Resolve(ctx, name)
		if err != nil {
			return "", "", false
		}
		return e.Name, e.Key(), true
	})
}
