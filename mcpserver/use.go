package mcpserver

import (
	"errors"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/tokencount"
	"github.com/loadout-dev/loadout/session"
)

// Use records that a client used a skill, for statistics. It contains only
// names of existing skills, and no arguments, results or text. Tool calls are
// reported by [tools.Options].
type Use struct {
	Kind UseKind
	// Skill is the skill's name, and Key its [catalog.Entry.Key]. Both are ""
	// for an unknown skill.
	Skill, Key string
	Script     string        // path in the skill of the script that ran
	Tokens     int           // estimated tokens of the delivered text
	Took       time.Duration // duration of a run; 0 if unknown
	Outcome    UseOutcome
}

// UseKind says in which way a skill was used.
type UseKind string

// Kinds of uses.
const (
	UseLoad   UseKind = "load"
	UseFile   UseKind = "file"
	UseScript UseKind = "script"
)

// UseOutcome says how the use of a skill ended.
type UseOutcome string

// Outcomes of uses.
const (
	UseOK      UseOutcome = "ok"
	UseFailed  UseOutcome = "failed"
	UseRefused UseOutcome = "refused" // by policy or the user; nothing was done
)

func (s *Server) reportUse(u Use) {
	if s.opts.OnUse != nil {
		s.opts.OnUse(u)
	}
}

// useOf returns a use of the skill e. A nil e means an unknown skill.
func useOf(kind UseKind, e *catalog.Entry, outcome UseOutcome) Use {
	u := Use{Kind: kind, Outcome: outcome}
	if e != nil {
		u.Skill, u.Key = e.Name, e.Key()
	}
	return u
}

// reportLoad reports that skills were loaded.
func (s *Server) reportLoad(all []*session.Skill) {
	for _, m := range all {
		s.reportUse(Use{Kind: UseLoad, Skill: m.ID.Name, Key: m.ID.Key(), Tokens: m.Tokens, Outcome: UseOK})
	}
}

// reportFile reports that a file's text was delivered.
func (s *Server) reportFile(e *catalog.Entry, kind UseKind, text string) {
	if s.opts.OnUse == nil {
		return
	}
	u := useOf(kind, e, UseOK)
	u.Tokens = tokencount.Estimate(text)
	s.reportUse(u)
}

// reportScript reports a script run. res is nil if nothing ran.
func (s *Server) reportScript(e *catalog.Entry, res *loadout.RunResult, err error, took time.Duration) {
	u := useOf(UseScript, e, UseOK)
	switch {
	case res != nil:
		u.Script, u.Took = res.Script, took
		if err != nil || res.ExitCode != 0 {
			u.Outcome = UseFailed
		}
	case isRefusedRun(err):
		u.Outcome = UseRefused
	default:
		u.Outcome = UseFailed
	}
	s.reportUse(u)
}

func isRefusedRun(err error) bool {
	_, refused := errors.AsType[*loadout.RefusedError](err)
	return refused
}
