package setup

import (
	"context"
	"errors"
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

// UsageFile returns the path of the usage log, or "" if there is no state
// directory.
func (s *Setup) UsageFile() string {
	if d := s.StateDir(); d != "" {
		return filepath.Join(d, "usage.jsonl")
	}
	return ""
}

// usageDelay is the maximum time between a use and the write that stores it.
const usageDelay = 200 * time.Millisecond

// NewUsageLog returns a usage log that is written in the background, so that
// calls do not wait for it, or nil if there is no state directory. The caller
// must close it.
func (s *Setup) NewUsageLog() *usage.Log {
	if file := s.UsageFile(); file != "" {
		return usage.NewBufferedLog(file, usageDelay, s.Logger())
	}
	return nil
}

// usageLog returns the usage log, or nil if recording is disabled.
func (s *Setup) usageLog(c *config.Config) *usage.Log {
	file := s.UsageFile()
	switch {
	case file == "" || !c.Usage.Enabled:
		return nil
	case s.UsageLog != nil:
		return s.UsageLog
	}
	return usage.NewLog(file, s.Logger())
}

// RecordSkillUse returns a function that records a server's use of skills, or
// nil if recording is disabled.
func (s *Setup) RecordSkillUse(c *config.Config, iface string) func(mcpserver.Use) {
	log := s.usageLog(c)
	if log == nil {
		return nil
	}
	return func(u mcpserver.Use) {
		log.Note(usage.Use{Interface: iface, Kind: usage.Kind(u.Kind), Skill: u.Skill, Key: u.Key, Tool: u.Script, Tokens: u.Tokens, Took: u.Took, Outcome: usage.NewOutcome(u.Refused, u.Failed)})
	}
}

// recordToolUse returns a function that records tool calls, or nil if recording
// is disabled.
func (s *Setup) recordToolUse(c *config.Config, iface string) func(tools.CallOutcome) {
	log := s.usageLog(c)
	if log == nil {
		return nil
	}
	return func(e tools.CallOutcome) {
		log.Note(usage.Use{Interface: iface, Kind: usage.KindCall, Tool: e.Tool, Skill: e.Skill, Key: e.SkillKey, Took: e.Duration, Outcome: usage.NewOutcome(e.Refused, e.Failed)})
	}
}

// RecordDirectUse returns a function that records calls to directly listed
// tools, or nil if recording is disabled.
func (s *Setup) RecordDirectUse(c *config.Config) func(server, tool string, failed bool, took time.Duration) {
	log := s.usageLog(c)
	if log == nil {
		return nil
	}
	return func(server, tool string, failed bool, took time.Duration) {
		if server == "loadout" {
			return // Loadout's own server records its calls itself
		}
		log.Note(usage.Use{Interface: usage.InterfaceMCP, Kind: usage.KindCall, Tool: upstream.ToolName(server, tool), Took: took, Outcome: usage.NewOutcome(false, failed)})
	}
}

// RecordScriptUse records that the user ran a script.
func (s *Setup) RecordScriptUse(ctx context.Context, c *config.Config, rt *loadout.Runtime, name string, res *loadout.RunResult, err error) {
	log := s.usageLog(c)
	if log == nil || ctx.Err() != nil {
		return
	}
	e, notFound := rt.Catalog().Resolve(ctx, name)
	if notFound != nil {
		return // a typing mistake of the user
	}
	u := usage.Use{Interface: usage.InterfaceRun, Kind: usage.KindScript, Skill: e.Name, Key: e.Key()}
	if res != nil {
		u.Tool, u.Took = res.Script, time.Duration(res.DurationMS)*time.Millisecond
	}
	_, refused := errors.AsType[*loadout.RefusedError](err)
	u.Outcome = usage.NewOutcome(refused, err != nil || res.ExitCode != 0)
	log.Note(u)
}

// CountLog returns a conversation log that also records usage, or log itself if
// recording is disabled.
func (s *Setup) CountLog(log session.Log, c *config.Config, rt *loadout.Runtime) session.Log {
	return s.usageLog(c).CountSession(log, usage.InterfaceChat, func(ctx context.Context, name string) (skill, key string, ok bool) {
		e, err := rt.Catalog().Resolve(ctx, name)
		if err != nil {
			return "", "", false
		}
		return e.Name, e.Key(), true
	})
}
