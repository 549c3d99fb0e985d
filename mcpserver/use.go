package mcpserver

import (
	"context"
	"errors"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/tokencount"
	"github.com/loadout-dev/loadout/session"
)

// Use records that a client used a skill, for statistics. It contains only
// names of existing skills, and no arguments, results or text. Tool calls are
// reported to [tools.Options.OnCallEnd].
type Use struct {
	// Kind is "load" if the skill was loaded, "file" if one of its files was
	// read, and "script" if a client requested a run of one of its scripts.
	Kind string
	// Skill is the skill's name, and Key its [catalog.Entry.Key]. Both are ""
	// for an unknown skill.
	Skill, Key string
	Script     string        // path of the script that ran, relative to the skill; "" if none did
	Tokens     int           // estimated tokens of the delivered text
	Took       time.Duration // duration of a run; 0 if unknown
	Refused    bool          // whether policy or the user refused, so that nothing was done
	Failed     bool          // whether the use failed for another reason
}

// Values of [Use.Kind].
const (
	useLoad   = "load"
	useFile   = "file"
	useScript = "script"
)

func (s *Server) reportUse(u Use) {
	if s.opts.OnUse != nil {
		s.opts.OnUse(u)
	}
}

// newUse returns a successful use of the skill e. A nil e means an unknown
// skill.
func newUse(kind string, e *catalog.Entry) Use {
	u := Use{Kind: kind}
	if e != nil {
		u.Skill, u.Key = e.Name, e.Key()
	}
	return u
}

// reportFailure reports that a skill could not be used. A nil e means an unknown
// skill.
func (s *Server) reportFailure(kind string, e *catalog.Entry) {
	u := newUse(kind, e)
	u.Failed = true
	s.reportUse(u)
}

// reportRefusal reports that policy or the user refused the use of a skill.
func (s *Server) reportRefusal(kind string, e *catalog.Entry) {
	u := newUse(kind, e)
	u.Refused = true
	s.reportUse(u)
}

// reportFailedFetch reports that a skill or file could not be read, or that
// policy denied access to it.
func (s *Server) reportFailedFetch(kind string, e *catalog.Entry, err error) {
	if isRefusedRun(err) {
		s.reportRefusal(kind, e)
		return
	}
	s.reportFailure(kind, e)
}

// reportLoad reports that skills were loaded by the client of ctx's request.
func (s *Server) reportLoad(ctx context.Context, all []*session.Skill) {
	noteDelivered(ctx, all...)
	for _, m := range all {
		s.reportUse(Use{Kind: useLoad, Skill: m.ID.Name, Key: m.ID.Key(), Tokens: m.Tokens})
	}
}

// reportFile reports that the text of a file was sent to the client.
func (s *Server) reportFile(e *catalog.Entry, kind, text string) {
	if s.opts.OnUse == nil {
		return
	}
	u := newUse(kind, e)
	u.Tokens = tokencount.Estimate(text)
	s.reportUse(u)
}

// reportScript reports a script run. res is nil if nothing ran.
func (s *Server) reportScript(e *catalog.Entry, res *loadout.RunResult, err error, took time.Duration) {
	u := newUse(useScript, e)
	switch {
	case res != nil:
		u.Script, u.Took = res.Script, took
		u.Failed = err != nil || res.ExitCode != 0
	case isRefusedRun(err):
		u.Refused = true
	default:
		u.Failed = true
	}
	s.reportUse(u)
}

func isRefusedRun(err error) bool {
	_, refused := errors.AsType[*loadout.RefusedError](err)
	return refused
}
