package chat

import (
	"context"
	"fmt"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/session"
)

// Loaded is the result of a load command.
type Loaded struct {
	State        session.LoadState `json:"state"`
	Skill        string            `json:"skill,omitempty"`
	Title        string            `json:"displayName,omitempty"` // display name, or else the name
	Tokens       int               `json:"tokens,omitempty"`
	Tools        []string          `json:"tools,omitempty"`
	Dependencies []string          `json:"brought,omitempty"` // skills that the loaded skill requires
	Problems     []string          `json:"problems,omitempty"`
}

// CommandError reports that a queued command was cancelled or failed.
type CommandError struct {
	Reason Reason // [Cancelled] or [Failed]
	Text   string // describes the failure
}

func (e *CommandError) Error() string {
	if e.Reason == Cancelled {
		return "command cancelled before it started"
	}
	return e.Text
}

// replay returns a read-only session with the conversation's current state, and
// all steps of its transcript.
func (e *Engine) replay(ctx context.Context, p account.Principal, id string) (*session.Session, []step, error) {
	if _, err := e.authorize(ctx, p, account.SessionRead, id); err != nil {
		return nil, nil, err
	}
	steps, err := readSteps(ctx, e.db.Events, id, 0)
	if err != nil {
		return nil, nil, err
	}
	log := &session.MemoryLog{}
	for i := range steps {
		if err := log.Append(ctx, &steps[i].Event); err != nil {
			return nil, nil, err
		}
	}
	s, err := session.Open(ctx, nil, &session.Options{Log: log, ID: id, RetentionTurns: e.opts.Retention, Budget: e.opts.Budget})
	return s, steps, err
}

// Load adds a command to the inbox that loads a skill, waits for it and returns
// the result. It can also load skills that models are not allowed to load. It
// never shortens the retention of an active skill. Load fails with a
// [*CommandError] if the command is cancelled or fails. If ctx is done first, the
// command remains in the inbox.
func (e *Engine) Load(ctx context.Context, p account.Principal, id, skill string, keep session.RetentionMode) (*Loaded, error) {
	return e.loadSkill(ctx, p, id, input{Kind: LoadInput, Skill: skill, Retention: keep})
}

// SetRetention is like [Engine.Load], but can also shorten the retention of an
// active skill.
func (e *Engine) SetRetention(ctx context.Context, p account.Principal, id, skill string, keep session.RetentionMode) (*Loaded, error) {
	return e.loadSkill(ctx, p, id, input{Kind: LoadInput, Skill: skill, Retention: keep, SetRetention: true})
}

func (e *Engine) loadSkill(ctx context.Context, p account.Principal, id string, in input) (*Loaded, error) {
	if err := checkSkillName(in.Skill); err != nil {
		return nil, err
	}
	switch in.Retention {
	case session.RetainUsed, session.RetainPinned, session.RetainOnce:
	default:
		return nil, fmt.Errorf("load skill: %w: unknown retention %.40q", ErrInvalid, in.Retention)
	}
	ended, err := e.command(ctx, p, id, in)
	return ended.Loaded, err
}

// Unload adds a command to the inbox that unloads a skill, waits for it and
// returns the names of all unloaded skills. If cascade is set, it also unloads
// the skills that require the skill. It fails with the same errors as
// [Engine.Load].
func (e *Engine) Unload(ctx context.Context, p account.Principal, id, skill string, cascade bool) ([]string, error) {
	if err := checkSkillName(skill); err != nil {
		return nil, err
	}
	ended, err := e.command(ctx, p, id, input{Kind: UnloadInput, Skill: skill, Cascade: cascade})
	return ended.Unloaded, err
}

func checkSkillName(name string) error {
	if name == "" || len(name) > MaxTitle {
		return fmt.Errorf("skill name: %w: must have 1 to %d bytes, got %d bytes", ErrInvalid, MaxTitle, len(name))
	}
	return nil
}

// command adds a command to the inbox and waits for its final event.
func (e *Engine) command(ctx context.Context, p account.Principal, id string, in input) (Event, error) {
	after, err := e.db.Events.Last(ctx, eventStream(id))
	if err != nil {
		return Event{}, err
	}
	seq, err := e.submit(ctx, p, id, in, nil)
	if err != nil {
		return Event{}, err
	}
	for ev, err := range e.Watch(ctx, p, id, after) {
		switch {
		case err != nil:
			return Event{}, fmt.Errorf("wait for command: %w", err)
		case ev.Type != TurnEnded || ev.Input != seq:
		case ev.Reason != Done:
			return Event{}, &CommandError{ev.Reason, ev.Text}
		default:
			return ev, nil
		}
	}
	return Event{}, context.Cause(ctx)
}
