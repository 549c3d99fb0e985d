package chat

import (
	"context"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/session"
)

// Switch adds a command to the inbox that continues the conversation after an
// earlier step, so that the branch that ends with the step becomes the current
// one; see [session.Branch]. It returns the number of the command. Switch fails
// with [ErrInvalid] if the conversation cannot continue after the step.
func (e *Engine) Switch(ctx context.Context, p account.Principal, id string, after int64) (int64, error) {
	return e.submit(ctx, p, id, input{Kind: SwitchInput, After: &after}, nil)
}

// checkBranch fails with [ErrInvalid] unless the conversation can continue after
// the given step: it exists, and every call before it has its result. 0 stands for
// the start of the conversation.
func (e *Engine) checkBranch(ctx context.Context, id string, after int64) error {
	if after == 0 {
		return nil
	}
	steps, err := readSteps(ctx, e.db.Events, id, 0)
	if err != nil {
		return err
	}
	if after < 0 || after > int64(len(steps)) {
		return fmt.Errorf("continue after step %d: %w: the conversation has %d steps", after, ErrInvalid, len(steps))
	}
	if len(openCalls(eventsOf(currentPath(steps[:after])))) > 0 {
		return fmt.Errorf("continue after step %d: %w: the step precedes the result of a call", after, ErrInvalid)
	}
	return nil
}

// branch continues the conversation after the step that an input names, with the
// files of that branch, unless it already does. The caller must open the
// conversation again.
func (w *worker) branch(ctx context.Context, j *job) error {
	w.closeActive()
	if _, err := w.journal.readSnapshot(ctx); err != nil {
		return err
	}
	if w.journal.isAfter(j.seq, *j.After) {
		return nil
	}
	path, err := readPath(ctx, w.e.db.Events, w.id, *j.After)
	if err != nil {
		return err
	}
	if err := w.update(ctx, func(c *conversationTx) error { return c.restoreFiles(ctx, path) }); err != nil {
		return fmt.Errorf("restore files of branch: %w", err)
	}
	return w.journal.Append(ctx, &session.Event{Time: time.Now().UTC(), Branched: &session.Branch{After: *j.After}})
}

// isAfter reports whether the transcript already continues after a step for the
// given input.
func (j *journal) isAfter(in, step int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last == step || j.lastMessage >= in || j.lastBranch >= in
}

// readPath returns the numbers of the steps on the branch of a transcript that ends
// with the given step, in order.
func readPath(ctx context.Context, from store.Events, id string, last int64) ([]int64, error) {
	events := make([]session.Event, last)
	for i := range events {
		events[i].Seq = int64(i) + 1
	}
	for after, more := int64(0), true; more; {
		rows, err := from.ReadBranched(ctx, id, after, store.MaxRead)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			s, err := readStep(r)
			if err != nil {
				return nil, err
			}
			if after = s.Seq; after <= last {
				events[after-1] = s.Event
			}
		}
		more = len(rows) == store.MaxRead
	}
	var out []int64
	for _, e := range session.Path(events) {
		out = append(out, e.Seq)
	}
	return out, nil
}

// currentPath returns the steps on the branch that ends with the last of all
// steps.
func currentPath(steps []step) []step {
	var out []step
	for _, e := range session.Path(eventsOf(steps)) {
		out = append(out, steps[e.Seq-1])
	}
	return out
}

func eventsOf(steps []step) []session.Event {
	out := make([]session.Event, len(steps))
	for i, s := range steps {
		out[i] = s.Event
	}
	return out
}

// Version is one of several messages that continue a conversation at the same
// point, each on its own branch.
type Version struct {
	Seq  int64 `json:"seq" doc:"Step number of the message"`
	Last int64 `json:"last" doc:"Last step of the version's newest branch. Pass it as after to return to it"`
}

// messageTree holds the messages of the user in a transcript with branches. A
// message follows the message of the previous turn on its branch, or 0.
type messageTree struct {
	of       []int64           // by step number: the message of the turn that contains the step
	before   map[int64]int64   // the message that each message follows
	versions map[int64][]int64 // the messages that follow each message, in order
	newest   map[int64]int64   // the last step of the turns that follow each message
}

func newMessageTree(steps []step) *messageTree {
	t := &messageTree{make([]int64, len(steps)+1), map[int64]int64{}, map[int64][]int64{}, map[int64]int64{}}
	for _, s := range steps {
		t.of[s.Seq] = t.of[s.Parent()]
		if s.isUserMessage() {
			t.before[s.Seq] = t.of[s.Seq]
			t.versions[t.of[s.Seq]] = append(t.versions[t.of[s.Seq]], s.Seq)
			t.of[s.Seq] = s.Seq
		}
	}
	for seq := int64(len(steps)); seq > 0; seq-- {
		for m := t.of[seq]; m > 0 && t.newest[m] == 0; m = t.before[m] {
			t.newest[m] = seq
		}
	}
	return t
}

// after returns the versions of the message that follows a message.
func (t *messageTree) after(message int64) []Version {
	var out []Version
	for _, seq := range t.versions[message] {
		out = append(out, Version{seq, t.newest[seq]})
	}
	return out
}

// addVersions adds to the messages on the current branch how to replace them and
// their versions. It returns the versions of the message that follows the last
// one, which the current branch does not contain.
func addVersions(lines []Line, steps []step) []Version {
	t := newMessageTree(steps)
	for i := range lines {
		seq := lines[i].Seq
		if s := steps[seq-1]; s.isUserMessage() {
			lines[i].After = turnStart(steps, s)
			if v := t.after(t.before[seq]); len(v) > 1 {
				lines[i].Versions = v
			}
		}
	}
	return t.after(t.of[len(steps)])
}

// turnStart returns the last step before the turn of a user's message.
func turnStart(steps []step, message step) *int64 {
	after := message.Parent()
	for after > 0 {
		s := steps[after-1]
		if s.Turn == 0 || s.Turn != message.Turn {
			break
		}
		after = s.Parent()
	}
	return &after
}
