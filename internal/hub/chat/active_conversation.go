package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/usage"
	"github.com/loadout-dev/loadout/session"
)

// activeConversation is a conversation that is open on this node to process an
// input.
type activeConversation struct {
	principal account.Principal
	agentName string // "" without an agent
	setup     *Setup
	past      *snapshot // state of the conversation when it was opened
	session   *session.Session
	agent     *agent.Agent
	folder    *folder // nil if no tool uses it
	log       func(msg string, args ...any)
}

// open opens the conversation for an input. A worker opens it again for each
// input, because permissions, the agent and secrets may have changed.
func (w *worker) open(ctx context.Context, j *job) error {
	w.closeActive()
	p, err := w.principal(ctx, j)
	if err != nil {
		return err
	}
	j.actor.Store(&p)
	c := conversation(j.session)
	c.Model = j.Model // which may have changed since
	setup, err := w.e.opts.Setup(ctx, Request{Principal: p, Conversation: c})
	if err != nil {
		return err
	}
	t := &activeConversation{principal: p, agentName: j.session.Agent, setup: setup, log: w.e.opts.Logger.Warn}
	if err := w.openSession(ctx, t); err != nil {
		t.close()
		return err
	}
	w.active = t
	return w.preload(ctx)
}

// closeActive closes the conversation of the previous input.
func (w *worker) closeActive() {
	if w.active != nil {
		w.active.close()
		w.active, w.journal.beforeResults, w.journal.uses, w.journal.meter = nil, nil, nil, nil
	}
}

// openSession opens the session and creates the agent with its tools.
func (w *worker) openSession(ctx context.Context, t *activeConversation) error {
	var err error
	if t.past, err = w.journal.readSnapshot(ctx); err != nil {
		return err
	}
	t.session, err = t.setup.Runtime.NewSession(ctx, &session.Options{Log: w.journal, ID: w.id, Tools: t.setup.SkillTools,
		State: t.past.Session, RetentionTurns: w.e.opts.Retention, Budget: w.e.opts.Budget, Updates: w.e.opts.Updates})
	if err != nil {
		return err
	}
	calls := t.past.Agent.Calls()
	w.journal.uses = usage.NewSkillCounter(string(t.principal.User), t.setup.SkillID, t.past.Session.Clone(), calls)
	w.journal.meter = usage.NewMeter(string(t.principal.User), t.agentName, t.setup.Namespace, t.setup.Model.Name(), calls)
	o := t.setup.Agent
	o.Approvals, o.Folder, o.State = w.approvals.Queue, "", t.past.Agent
	if t.setup.Tools != nil {
		t.folder = newFolder(w)
		more, err := t.setup.Tools(ctx, &ToolContext{ID: w.id, Session: t.session, Approvals: w.approvals.Queue, User: userPrincipal(t.principal.User),
			FolderPath: t.folder.dir, OpenFolder: t.folder.open})
		if err != nil {
			return err
		}
		o.Tools = slices.Concat(o.Tools, more)
		w.journal.beforeResults = t.folder.save
	}
	t.agent = agent.New(w.imageModel(t.setup), t.session, &o)
	return nil
}

// preload loads the setup's preloaded skills before the first turn. If a skill
// cannot be loaded, it publishes a notice and continues.
func (w *worker) preload(ctx context.Context) error {
	if w.active.past.Session.Turn > 0 {
		return nil
	}
	for _, name := range w.active.setup.Preload {
		why := ""
		if w.active.setup.PreloadReason != nil {
			why = w.active.setup.PreloadReason(name)
		}
		r, err := w.active.session.Load(ctx, name, &session.LoadOptions{Retention: session.RetainPinned, Direct: true, By: session.ByPreload, Why: why})
		if err != nil {
			return err
		}
		if len(r.Problems) > 0 {
			w.journal.queueEvent(eventRow{Event: Event{Type: Notice, Skill: name, Text: fmt.Sprintf("skill %s: %s", name, strings.Join(r.Problems, "; "))}})
		}
	}
	return nil
}

// close closes everything that open opened.
func (t *activeConversation) close() {
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
		t.log("cannot close conversation", "error", err)
	}
}

// recent returns the model's last message and the events after it.
func (t *activeConversation) recent() []session.Event {
	return append(t.past.Agent.Recent(), t.session.Events(0)...)
}
