package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/session"
)

// do does an input to its end and returns what is to be told of that. The error says
// that it is not at its end, and another node's.
func (w *worker) do(ctx context.Context, j *job) (ended *Event, err error) {
	leave, err := w.e.turns.Enter(ctx, string(j.owner))
	if err != nil {
		return nil, err
	}
	defer leave()
	if w.e.opts.Trace == nil {
		return w.doNow(ctx, j)
	}
	ctx, trace := w.e.opts.Trace(ctx, conversation(j.session), j.Kind)
	w.journal.traced(trace)
	defer func() {
		w.journal.traced(nil)
		var reason Reason
		if ended != nil {
			reason = ended.Reason
		}
		trace.End(reason, err)
	}()
	return w.doNow(ctx, j)
}

// doNow is do, once this node has a place for one more turn.
func (w *worker) doNow(ctx context.Context, j *job) (*Event, error) {
	w.journal.begin(j.seq)
	turn, cancel := context.WithCancelCause(ctx)
	defer w.e.underWay(conversation(j.session), cancel)()
	heeded, err := w.heed(turn, j.seq, cancel) // also what came while nobody had it
	if err != nil {
		cancel(nil)
		return nil, err
	}
	var beside sync.WaitGroup
	beside.Go(func() { w.follow(turn, heeded, cancel) })
	beside.Go(func() { w.journal.flush(turn) })
	beside.Go(func() { w.watchRights(turn, j, cancel) })
	ended, err := w.perform(turn, j)
	broken := context.Cause(turn)
	cancel(nil)
	beside.Wait()
	if failure := w.journal.failure(); failure != nil {
		return nil, failure
	}
	switch stopped, ok := errors.AsType[*stoppedError](broken); {
	case err == nil:
	case ok:
		ended = Event{Reason: stopped.reason, Text: stopped.text}
		if err := w.closeCalls(ctx, stopped.told); err != nil {
			return nil, err
		}
	case broken != nil:
		return nil, broken
	default:
		ended.Reason, ended.Text = Failed, err.Error()
	}
	ended.Type, ended.Input = Ended, j.seq
	return &ended, nil
}

// follow heeds notes in the inbox that are for the turn under way.
func (w *worker) follow(ctx context.Context, heeded int64, cancel context.CancelCauseFunc) {
	l := w.e.bell.listen(inboxOf(w.id), heeded)
	defer l.close()
	for woken := false; ; woken = true {
		last, err := w.heed(ctx, heeded, cancel)
		switch {
		case err != nil && ctx.Err() == nil:
			w.e.opts.Logger.Debug("the inbox of a conversation cannot be read", "conversation", w.id, "error", err)
		case err == nil && last == heeded && woken && errors.Is(w.e.db.Leases.Check(ctx, w.held()), store.ErrHeld):
			w.lost.Store(true) // the conversation is deleted
			cancel(errLost)
			return
		}
		heeded = max(heeded, last)
		if l.wait(ctx, heeded) != nil {
			return
		}
	}
}

// heed does what notes after a number say, and returns that of the last.
func (w *worker) heed(ctx context.Context, after int64, cancel context.CancelCauseFunc) (int64, error) {
	all, err := inputs(ctx, w.e.db.Events, w.id, after) // all there can be: see maxNotes
	for _, in := range all {
		after = in.seq
		switch in.Kind {
		case cancelNote:
			cancel(errCancelled)
		case answerNote:
			w.desk.Recheck(in.Ask)
		case seenNote:
			w.desk.saw(in.Ask)
		}
	}
	return after, err
}

// perform does an input. Where there is no error the event says what came of it.
func (w *worker) perform(ctx context.Context, j *job) (Event, error) {
	if j.givenUp {
		err := fmt.Errorf("it was broken off %d times", maxTries)
		return Event{}, errors.Join(err, w.closeCalls(ctx, "The turn was broken off again and again."))
	}
	if err := w.open(ctx, j); err != nil {
		if j.Kind == MessageInput && ctx.Err() == nil && w.journal.failure() == nil {
			err = errors.Join(err, w.sayAlone(ctx, j)) // what was said is not lost with it
		}
		return Event{}, err
	}
	switch j.Kind {
	case MessageInput:
		return w.answer(ctx, j)
	case CompactInput:
		return Event{Reason: Done}, w.talk.agent.Compact(ctx, w.journal.tell)
	case LoadInput:
		return w.load(ctx, j)
	case UnloadInput:
		gone, err := w.talk.session.Unload(ctx, j.Skill, "the person unloaded it", j.Cascade)
		return Event{Reason: Done, Unloaded: gone}, err
	}
	return Event{}, fmt.Errorf("input of kind %q: %w", j.Kind, ErrInvalid)
}

// answer has the agent answer a message.
func (w *worker) answer(ctx context.Context, j *job) (Event, error) {
	ended := Event{Reason: Done}
	tell := func(e agent.Event) {
		if e.Type == agent.Done && e.Reason == "wait" {
			ended.Reason = Waits
		}
		w.journal.tell(e)
	}
	var err error
	switch a := w.talk.agent; {
	case w.journal.hasSaid(j.seq):
		err = a.Resume(ctx, tell)
	case j.Skill != "":
		err = a.Invoke(ctx, j.Skill, j.Text, tell)
	default:
		err = a.Turn(ctx, j.Text, tell)
	}
	return ended, err
}

// load loads a skill for the person.
func (w *worker) load(ctx context.Context, j *job) (Event, error) {
	load := w.talk.agent.Load
	if j.Set {
		load = w.talk.agent.Keep
	}
	r, err := load(ctx, j.Skill, j.Keep)
	if err != nil {
		return Event{}, err
	}
	out := &Loaded{State: r.State, Problems: r.Problems, Brought: r.Brought}
	if r.Material != nil {
		out.Skill, out.Title, out.Tokens = r.Material.ID.Name, r.Material.Title, r.Material.Tokens
	}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, t.Name)
	}
	return Event{Reason: Done, Loaded: out}, nil
}

// sayAlone keeps the words of a message that no agent takes.
func (w *worker) sayAlone(ctx context.Context, j *job) error {
	if _, err := w.journal.Read(ctx, 0); err != nil { // which words it has
		return err
	}
	if w.journal.hasSaid(j.seq) {
		return nil
	}
	text := j.Text
	if j.Skill != "" {
		text = strings.TrimSpace("/" + j.Skill + " " + j.Text)
	}
	return w.journal.Append(ctx, &session.Event{Time: time.Now().UTC(), Type: session.TypeMessage, Message: &session.Message{Role: session.RoleUser, Text: text}})
}

// principal is who acts in an input, as of now.
func (w *worker) principal(ctx context.Context, j *job) (account.Principal, error) {
	p, err := w.e.opts.Principal(ctx, j.owner)
	if err != nil {
		return account.Principal{}, fmt.Errorf("who the conversation is of: %w", err)
	}
	scopes, err := account.ParseScopes(j.Scopes)
	if err != nil {
		return account.Principal{}, err
	}
	if j.Token != "" && w.e.opts.Token != nil {
		now, err := w.e.opts.Token(ctx, j.Token)
		if errors.Is(err, account.ErrRefused) {
			return account.Principal{}, errTokenEnded
		}
		if err != nil {
			return account.Principal{}, fmt.Errorf("the API token by which it came: %w", err)
		}
		scopes &= now
	}
	p = p.Limited(scopes)
	p.Token = j.Token
	return p, account.Check(p, account.SessionWrite, account.Of(j.owner))
}
