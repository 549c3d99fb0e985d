package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/session"
)

// talk is a conversation that is open on this node, for one input.
type talk struct {
	principal account.Principal
	agentName string // "" is nobody in particular
	setup     *Setup
	session   *session.Session
	agent     *agent.Agent
	folder    *folder // nil where no tool wants one
	log       func(msg string, args ...any)
}

// open opens the conversation for an input, anew for each: one that waited behind others
// is done with the rights, the agent and the secrets that there are when its turn comes.
func (w *worker) open(ctx context.Context, j *job) error {
	if w.talk != nil {
		w.talk.close()
		w.talk, w.journal.before, w.journal.uses, w.journal.meter = nil, nil, nil, nil
	}
	p, err := w.principal(ctx, j)
	if err != nil {
		return err
	}
	j.actor.Store(&p)
	setup, err := w.e.opts.Setup(ctx, Request{Principal: p, Conversation: conversation(j.session)})
	if err != nil {
		return err
	}
	t := &talk{principal: p, agentName: j.session.Agent, setup: setup, log: w.e.opts.Logger.Warn}
	if err := w.ready(ctx, t); err != nil {
		t.close()
		return err
	}
	w.talk = t
	return w.preload(ctx)
}

// ready opens the session with the agent and its tools.
func (w *worker) ready(ctx context.Context, t *talk) error {
	var err error
	w.journal.uses = newUses(t.setup.SkillID)
	t.session, err = t.setup.Runtime.NewSession(ctx, &loadout.SessionOptions{Log: w.journal, ID: w.id, Tools: t.setup.Held,
		Retention: w.e.opts.Retention, Budget: w.e.opts.Budget})
	if err != nil {
		return err
	}
	past := pointers(t.session.Events(0))
	w.journal.uses.apply(past)
	w.journal.meter = newMeter(string(t.principal.User), t.agentName, t.setup.Namespace, t.setup.Model.Name())
	w.journal.meter.apply(past)
	o := t.setup.Agent
	o.Desk, o.Folder = w.desk.Desk, ""
	if t.setup.Tools != nil {
		if t.folder, err = newFolder(ctx, w); err != nil {
			return err
		}
		more, err := t.setup.Tools(ctx, &Talk{ID: w.id, Session: t.session, Desk: w.desk.Desk, Person: person(t.principal.User), Folder: t.folder.root})
		if err != nil {
			return err
		}
		o.Tools = slices.Concat(o.Tools, more)
		w.journal.before = t.folder.keep
	}
	t.agent = agent.New(t.setup.Model, t.session, &o)
	return nil
}

// preload loads what is in force from the start, before anything is said. What cannot
// be loaded is told, and the rest works.
func (w *worker) preload(ctx context.Context) error {
	if w.talk.session.Turn() > 0 {
		return nil
	}
	for _, name := range w.talk.setup.Preload {
		why := ""
		if w.talk.setup.Because != nil {
			why = w.talk.setup.Because(name)
		}
		r, err := w.talk.agent.Preload(ctx, name, why)
		if err != nil {
			return err
		}
		if len(r.Problems) > 0 {
			w.journal.note(row{Event: Event{Type: Notice, Skill: name, Text: fmt.Sprintf("the skill %s: %s", name, strings.Join(r.Problems, "; "))}})
		}
	}
	return nil
}

// close releases what the conversation had on this node.
func (t *talk) close() {
	var err error
	if t.session != nil {
		err = t.session.Close()
	}
	if t.folder != nil {
		err = errors.Join(err, t.folder.close())
	}
	if t.setup.Close != nil {
		err = errors.Join(err, t.setup.Close())
	}
	if err != nil {
		t.log("a conversation is not closed well", "error", err)
	}
}

func pointers(events []session.Event) []*session.Event {
	out := make([]*session.Event, len(events))
	for i := range events {
		out[i] = &events[i]
	}
	return out
}
