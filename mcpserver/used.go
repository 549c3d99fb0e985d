package mcpserver

import (
	"errors"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// Use is one thing that a client did with a skill, for who counts them. It has names of
// what there is, and nothing that was said: no arguments, results or texts. Calls of
// tools are told by [tools.Options], in Ended.
type Use struct {
	Kind UseKind
	// Skill and Key are the name of the skill and its [catalog.Entry.Key], "" where
	// there is none of the name that was given.
	Skill, Key string
	Script     string        // its path in the skill, of one that was run
	Tokens     int           // of what was delivered, estimated
	Took       time.Duration // of a run; 0 is not known
	Outcome    UseOutcome
}

// UseKind is what was done.
type UseKind string

// The kinds of uses.
const (
	UseLoad   UseKind = "load"
	UseFile   UseKind = "file"
	UseScript UseKind = "script"
)

// UseOutcome is how a use ended.
type UseOutcome string

// The outcomes.
const (
	UseOK      UseOutcome = "ok"
	UseFailed  UseOutcome = "failed"
	UseRefused UseOutcome = "refused" // by policy or a person; nothing was done
)

func (s *Server) used(u Use) {
	if s.opts.Used != nil {
		s.opts.Used(u)
	}
}

// useOf is a use of a skill; nil is none that there is.
func useOf(kind UseKind, e *catalog.Entry, outcome UseOutcome) Use {
	u := Use{Kind: kind, Outcome: outcome}
	if e != nil {
		u.Skill, u.Key = e.Name, e.Key()
	}
	return u
}

// usedLoad tells of a load of skills, whose texts were delivered.
func (s *Server) usedLoad(all []*session.Material) {
	for _, m := range all {
		s.used(Use{Kind: UseLoad, Skill: m.ID.Name, Key: m.ID.Key(), Tokens: m.Tokens, Outcome: UseOK})
	}
}

// usedFile tells that a file of a skill was delivered, by its text.
func (s *Server) usedFile(e *catalog.Entry, kind UseKind, text string) {
	if s.opts.Used == nil {
		return
	}
	u := useOf(kind, e, UseOK)
	u.Tokens = skill.Tokens(text)
	s.used(u)
}

// usedScript tells of a run. res is nil where nothing was run.
func (s *Server) usedScript(e *catalog.Entry, res *loadout.Ran, err error, took time.Duration) {
	u := useOf(UseScript, e, UseOK)
	switch {
	case res != nil:
		u.Script, u.Took = res.Script, took
		if err != nil || res.ExitCode != 0 {
			u.Outcome = UseFailed
		}
	case refusedRun(err):
		u.Outcome = UseRefused
	default:
		u.Outcome = UseFailed
	}
	s.used(u)
}

func refusedRun(err error) bool {
	_, refused := errors.AsType[*loadout.RefusedError](err)
	return refused
}
