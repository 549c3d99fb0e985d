package chat

import (
	"context"
	"fmt"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/session"
)

// Loaded is what a load by hand came to.
type Loaded struct {
	State    session.LoadState `json:"state"`
	Skill    string            `json:"skill,omitempty"`
	Title    string            `json:"displayName,omitempty"` // or its name
	Tokens   int               `json:"tokens,omitempty"`
	Tools    []string          `json:"tools,omitempty"`
	Brought  []string          `json:"brought,omitempty"` // skills that it needs
	Problems []string          `json:"problems,omitempty"`
}

// CommandError says that a command that waited for its turn was not done.
type CommandError struct {
	Reason Reason // [Cancelled] or [Failed]
	Text   string // what went wrong
}

func (e *CommandError) Error() string {
	if e.Reason == Cancelled {
		return "it was cancelled before its turn came"
	}
	return e.Text
}

// replay is a conversation as it is now, to look at: nothing can be loaded in it.
func (e *Engine) replay(ctx context.Context, p account.Principal, id string) (*session.Session, []step, error) {
	if _, err := e.may(ctx, p, account.SessionRead, id); err != nil {
		return nil, nil, err
	}
	steps, err := readSteps(ctx, e.db.Events, id, 0)
	if err != nil {
		return nil, nil, err
	}
	log := &session.Memory{}
	for i := range steps {
		if err := log.Append(ctx, &steps[i].Event); err != nil {
			return nil, nil, err
		}
	}
	s, err := session.Open(ctx, nil, &session.Options{Log: log, ID: id, Retention: e.opts.Retention, Budget: e.opts.Budget})
	return s, steps, err
}

// Load loads a skill by hand, when its turn comes, and says what it came to; also a
// skill that no model may load. One that is in force stays so for no less than before. The
// error is a [*CommandError] where it was not done. Where ctx ends first it is done all
// the same.
func (e *Engine) Load(ctx context.Context, p account.Principal, id, skill string, keep session.Keep) (*Loaded, error) {
	return e.load(ctx, p, id, input{Kind: LoadInput, Skill: skill, Keep: keep})
}

// Keep is [Engine.Load] where the skill is to stay in force for exactly so long.
func (e *Engine) Keep(ctx context.Context, p account.Principal, id, skill string, keep session.Keep) (*Loaded, error) {
	return e.load(ctx, p, id, input{Kind: LoadInput, Skill: skill, Keep: keep, Set: true})
}

func (e *Engine) load(ctx context.Context, p account.Principal, id string, in input) (*Loaded, error) {
	if err := checkSkill(in.Skill); err != nil {
		return nil, err
	}
	switch in.Keep {
	case session.KeepUsed, session.KeepPinned, session.KeepOnce:
	default:
		return nil, fmt.Errorf("load: %w: a skill is not kept %.40q", ErrInvalid, in.Keep)
	}
	ended, err := e.command(ctx, p, id, in)
	return ended.Loaded, err
}

// Unload takes a skill out of force by hand, when its turn comes, with cascade also
// those that need it, and returns the names of all. The error is as of [Engine.Load].
func (e *Engine) Unload(ctx context.Context, p account.Principal, id, skill string, cascade bool) ([]string, error) {
	if err := checkSkill(skill); err != nil {
		return nil, err
	}
	ended, err := e.command(ctx, p, id, input{Kind: UnloadInput, Skill: skill, Cascade: cascade})
	return ended.Unloaded, err
}

func checkSkill(name string) error {
	if name == "" || len(name) > MaxTitle {
		return fmt.Errorf("skill: %w: its name has %d bytes, and may have %d", ErrInvalid, len(name), MaxTitle)
	}
	return nil
}

// command puts a command into the inbox and waits for its end.
func (e *Engine) command(ctx context.Context, p account.Principal, id string, in input) (Event, error) {
	after, err := e.db.Events.Last(ctx, toldOf(id))
	if err != nil {
		return Event{}, err
	}
	seq, err := e.want(ctx, p, id, in, nil)
	if err != nil {
		return Event{}, err
	}
	for ev, err := range e.Watch(ctx, p, id, after) {
		switch {
		case err != nil:
			return Event{}, fmt.Errorf("wait for the end of the command: %w", err)
		case ev.Type != Ended || ev.Input != seq:
		case ev.Reason != Done:
			return Event{}, &CommandError{ev.Reason, ev.Text}
		default:
			return ev, nil
		}
	}
	return Event{}, context.Cause(ctx)
}
