package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// runInput processes an input and returns its final event. If it returns an
// error, another node must continue processing the input.
func (w *worker) runInput(ctx context.Context, j *job) (ended *Event, err error) {
	leave, err := w.e.turns.Acquire(ctx, string(j.owner))
	if err != nil {
		return nil, err
	}
	defer leave()
	if w.e.opts.Trace == nil {
		return w.runTurn(ctx, j)
	}
	ctx, trace := w.e.opts.Trace(ctx, conversation(j.session), j.Kind)
	w.journal.setTrace(trace)
	defer func() {
		w.journal.setTrace(nil)
		var reason Reason
		if ended != nil {
			reason = ended.Reason
		}
		trace.End(reason, err)
	}()
	return w.runTurn(ctx, j)
}

// runTurn runs a turn. During the turn, it handles notes, publishes events and
// watches for lost permissions. The caller must have acquired a slot for the
// turn.
func (w *worker) runTurn(ctx context.Context, j *job) (*Event, error) {
	w.journal.setInput(j.input)
	turn, cancel := context.WithCancelCause(ctx)
	defer w.e.registerTurn(conversation(j.session), cancel)()
	after := j.seq
	if j.resumed { // handle the notes that arrived between two nodes first
		var err error
		if after, err = w.handleNotes(turn, j.seq, cancel); err != nil {
			cancel(nil)
			return nil, err
		}
	}
	var beside sync.WaitGroup
	beside.Go(func() { w.followInbox(turn, after, cancel) })
	beside.Go(func() { w.journal.flush(turn) })
	beside.Go(func() { w.watchRights(turn, j, cancel) })
	ended, err := w.executeInput(turn, j)
	broken := context.Cause(turn)
	cancel(nil)
	beside.Wait()
	if failure := w.journal.writeError(); failure != nil {
		return nil, failure
	}
	switch stopped, ok := errors.AsType[*stoppedError](broken); {
	case err == nil:
	case ok:
		ended = Event{Reason: stopped.reason, Text: stopped.text}
		if err := w.closeCalls(ctx, stopped.toModel); err != nil {
			return nil, err
		}
	case broken != nil:
		return nil, broken
	default:
		ended.Reason, ended.Text = Failed, err.Error()
	}
	if ended.Reason == Failed || ended.Reason == Cancelled {
		if err := w.keepMessage(ctx, j); err != nil {
			return nil, err
		}
	}
	ended.Type, ended.Input = TurnEnded, j.seq
	return &ended, nil
}

// followInbox handles notes for the running turn until ctx is done.
func (w *worker) followInbox(ctx context.Context, after int64, cancel context.CancelCauseFunc) {
	l := w.e.notifier.listen(inboxStream(w.id), after)
	defer l.close()
	for woken := false; ; woken = true {
		last, err := w.handleNotes(ctx, after, cancel)
		switch {
		case err != nil && ctx.Err() == nil:
			w.e.opts.Logger.Debug("cannot read inbox", "conversation", w.id, "error", err)
		case err == nil && last == after && woken && errors.Is(w.e.db.Leases.Check(ctx, w.currentLease()), store.ErrLeaseHeld):
			w.lost.Store(true) // the conversation is deleted
			cancel(errLeaseLost)
			return
		}
		after = max(after, last)
		if _, _, err := l.wait(ctx, after); err != nil {
			return
		}
	}
}

// handleNotes handles the notes in the inbox after the given number. It returns
// the number of the last note.
func (w *worker) handleNotes(ctx context.Context, after int64, cancel context.CancelCauseFunc) (int64, error) {
	all, err := readInputs(ctx, w.e.db.Events, w.id, after) // at most maxNotes
	for _, in := range all {
		after = in.seq
		switch in.Kind {
		case cancelNote:
			cancel(errCancelled)
		case answerNote:
			w.approvals.WakeWaiters(in.Approval)
		case seenNote:
			w.approvals.markDelivered(in.Approval)
		}
	}
	return after, err
}

// executeInput processes a message or command. The returned event contains the
// result.
func (w *worker) executeInput(ctx context.Context, j *job) (Event, error) {
	if j.abandoned {
		err := fmt.Errorf("turn was interrupted %d times", maxTries)
		return Event{}, errors.Join(err, w.closeCalls(ctx, "The turn was interrupted too often."))
	}
	if j.After != nil {
		if err := w.branch(ctx, j); err != nil {
			return Event{}, err
		}
	}
	if j.Kind == SwitchInput {
		return Event{Reason: Done}, nil
	}
	if err := w.open(ctx, j); err != nil {
		if j.Kind == MessageInput && ctx.Err() == nil && w.journal.writeError() == nil {
			err = errors.Join(err, w.recordMessage(ctx, j)) // otherwise the message would be lost
		}
		return Event{}, err
	}
	switch j.Kind {
	case MessageInput:
		return w.answerMessage(ctx, j)
	case CompactInput:
		return Event{Reason: Done}, w.active.agent.Compact(ctx, w.journal.queueAgentEvent)
	case LoadInput:
		return w.loadSkill(ctx, j)
	case UnloadInput:
		gone, err := w.active.session.Unload(ctx, j.Skill, "the person unloaded it", j.Cascade)
		return Event{Reason: Done, Unloaded: gone}, err
	}
	return Event{}, fmt.Errorf("execute input of kind %q: %w", j.Kind, ErrInvalid)
}

// answerMessage runs the agent on a message.
func (w *worker) answerMessage(ctx context.Context, j *job) (Event, error) {
	ended := Event{Reason: Done}
	tell := func(e agent.Event) {
		if e.Type == agent.Done && e.Reason == "wait" {
			ended.Reason = WaitingForInput
		}
		w.journal.queueAgentEvent(e)
	}
	var err error
	switch a := w.active.agent; {
	case w.journal.hasMessage(j.seq):
		err = a.Resume(ctx, tell)
	default:
		err = a.RunMessage(ctx, agent.UserMessage{Text: j.Text, Images: j.Images, Skill: j.Skill}, tell)
	}
	return ended, err
}

// loadSkill loads the skill that a load command names.
func (w *worker) loadSkill(ctx context.Context, j *job) (Event, error) {
	r, err := w.active.session.Load(ctx, j.Skill, &session.LoadOptions{Retention: j.Retention, Exact: j.SetRetention, Direct: true})
	if err != nil {
		return Event{}, err
	}
	out := &Loaded{State: r.State, Problems: r.Problems, Dependencies: r.Dependencies}
	if r.Skill != nil {
		out.Skill, out.Title, out.Tokens = r.Skill.ID.Name, r.Skill.Title, r.Skill.Tokens
	}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, t.Name)
	}
	return Event{Reason: Done, Loaded: out}, nil
}

// recordMessage adds a message to the transcript without running the agent.
func (w *worker) recordMessage(ctx context.Context, j *job) error {
	if _, err := w.journal.readSnapshot(ctx); err != nil { // updates hasMessage
		return err
	}
	if w.journal.hasMessage(j.seq) {
		return nil
	}
	text := j.Text
	if j.Skill != "" {
		text = strings.TrimSpace("/" + j.Skill + " " + j.Text)
	}
	return w.journal.Append(ctx, &session.Event{Time: time.Now().UTC(), Message: &session.Message{Role: llm.User, Text: text, Images: j.Images}})
}

// principal returns the user who sent an input, with the current permissions of
// the user and the token. It fails with errUserRefused, errTokenEnded or
// errTokenNarrowed if they no longer permit the turn.
func (w *worker) principal(ctx context.Context, j *job) (account.Principal, error) {
	p, err := w.e.opts.Principal(ctx, j.owner)
	if errors.Is(err, account.ErrInvalidCredentials) {
		return account.Principal{}, errUserRefused
	}
	if err != nil {
		return account.Principal{}, fmt.Errorf("get owner of conversation: %w", err)
	}
	scopes, err := account.ParseScopes(j.Scopes)
	if err != nil {
		return account.Principal{}, err
	}
	limits := scopes
	if j.Token != "" && w.e.opts.Token != nil {
		now, err := w.e.opts.Token(ctx, j.Token)
		if errors.Is(err, account.ErrInvalidCredentials) {
			return account.Principal{}, errTokenEnded
		}
		if err != nil {
			return account.Principal{}, fmt.Errorf("get API token of message: %w", err)
		}
		limits &= now
	}
	limited := p.LimitedTo(limits)
	limited.Token = j.Token
	own := account.OwnedBy(j.owner)
	switch {
	case account.Can(limited, account.SessionWrite, own):
		return limited, nil
	case account.Can(p.LimitedTo(scopes), account.SessionWrite, own):
		return account.Principal{}, errTokenNarrowed
	}
	return account.Principal{}, errUserRefused
}
