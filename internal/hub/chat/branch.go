package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/session"
)

// Switch adds a command to the inbox that continues the conversation after an
// earlier step, so that the branch that ends with the step becomes the current
// one; see [session.Branch]. It returns the number of the command. Switch fails
// with [ErrInvalid] if the step is not the last one of a turn that has ended.
func (e *Engine) Switch(ctx context.Context, p account.Principal, id string, after int64) (int64, error) {
	return e.submit(ctx, p, id, input{Kind: SwitchInput, After: &after}, nil)
}

// ErrStep is returned if a conversation cannot continue after a step, because the
// step is not the last one of a turn that has ended.
var ErrStep = errors.New("step is not the last one of a finished turn")

// checkBranch fails with [ErrInvalid] and [ErrStep] unless the conversation can
// continue after the given step: the last step of a turn that has ended, or 0,
// which stands for the start of the conversation. ended is the number of the last
// input that was processed when the check started.
func (e *Engine) checkBranch(ctx context.Context, id string, after, ended int64) error {
	if after == 0 {
		return nil
	}
	ok, err := endsTurn(ctx, e.db.Events, id, after, ended)
	if err == nil && !ok {
		err = fmt.Errorf("continue after step %d: %w: %w", after, ErrInvalid, ErrStep)
	}
	return err
}

// endsTurn reports whether a step is the last one of a turn that has ended, except
// for steps without a message, call or result. It reads only the steps that follow
// in the turn.
func endsTurn(ctx context.Context, from store.Events, id string, seq, ended int64) (bool, error) {
	if seq <= 0 {
		return false, nil
	}
	const page = 8 // a step may contain images
	var s step
	for after := seq - 1; ; {
		rows, err := from.Read(ctx, id, after, page)
		if err != nil {
			return false, err
		}
		for _, r := range rows {
			next, err := readStep(r)
			if err != nil {
				return false, err
			}
			switch after = next.Seq; {
			case after == seq && next.Turn > ended:
				return false, nil
			case after == seq:
				s = next
			case next.Turn != s.Turn || next.Turn == 0 && (next.isUserMessage() || next.Branched != nil):
				return true, nil // the next turn
			case next.Message != nil || next.CallStarted != nil || next.Result != nil:
				return false, nil
			}
		}
		if len(rows) < page {
			return s.Seq == seq, nil
		}
	}
}

// branch continues the conversation after the step that an input names, and restores
// the files of that branch. If the conversation already continues there, it changes
// nothing. It adds a result to each call that an earlier turn left without one. The
// caller must open the conversation again.
func (w *worker) branch(ctx context.Context, j *job) error {
	w.closeActive()
	if _, err := w.principal(ctx, j); err != nil {
		return err
	}
	if _, err := w.journal.readSnapshot(ctx); err != nil {
		return err
	}
	if w.journal.hasMessage(j.seq) {
		return nil // the turn is resumed
	}
	if !w.journal.isAfter(j.seq, *j.After) {
		path, err := readPath(ctx, w.e.db.Events, w.id, *j.After)
		if err != nil {
			return err
		}
		restore := func(c *conversationTx) error {
			dropped, err := c.restoreFiles(ctx, path)
			if err != nil || len(dropped) == 0 {
				return err
			}
			return c.publish(ctx, eventRow{Event: Event{Type: Notice, Input: j.seq, Code: FilesMissing, Text: missingText(dropped)}})
		}
		if err := w.journal.appendWith(ctx, restore, &session.Event{Time: time.Now().UTC(), Branched: &session.Branch{After: *j.After}}); err != nil {
			return fmt.Errorf("continue after step %d: %w", *j.After, err)
		}
	}
	return w.closeCalls(ctx, "The turn ended before the result.")
}

// missingText returns a notice that files are missing on a branch, because their
// versions were dropped.
func missingText(paths []string) string {
	const most = 10 // paths to name
	text := strings.Join(paths[:min(len(paths), most)], ", ")
	if len(paths) > most {
		text += fmt.Sprintf(", … (%d)", len(paths))
	}
	return fmt.Sprintf("Files missing on this branch: %s. The hub keeps up to %d earlier versions (%d MiB).",
		text, store.MaxAttachmentVersions, store.MaxAttachmentVersionBytes>>20)
}

// keepMessage adds the message of a turn that failed or was cancelled before it
// added the message, if it continued after an earlier step: otherwise, that branch
// would end without the message.
func (w *worker) keepMessage(ctx context.Context, j *job) error {
	if j.Kind != MessageInput || j.After == nil {
		return nil
	}
	if _, err := w.journal.readSnapshot(ctx); err != nil {
		return err
	}
	if !w.journal.hasBranch(j.seq) {
		return nil
	}
	return w.recordMessage(ctx, j)
}

// isAfter reports whether the transcript already continues after a step for the
// given input.
func (j *journal) isAfter(in, step int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last == step || j.lastBranch >= in
}

// hasBranch reports whether the given input continued after an earlier step.
func (j *journal) hasBranch(in int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lastBranch >= in
}

// readPath returns the numbers of the steps on the branch of a transcript that ends
// with the given step, in order.
func readPath(ctx context.Context, from store.Events, id string, last int64) ([]int64, error) {
	parents := map[int64]int64{} // of the steps that do not follow the previous one
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
			after = s.Seq
			parents[s.Seq] = s.Parent()
		}
		more = len(rows) == store.MaxRead
	}
	var out []int64
	for seq := last; seq > 0; {
		out = append(out, seq)
		parent, ok := parents[seq]
		if !ok {
			parent = seq - 1
		}
		seq = parent
	}
	slices.Reverse(out)
	return out, nil
}

// currentPath returns the steps on the branch that ends with the last of all
// steps.
func currentPath(steps []step) []step {
	var out []step
	for seq := int64(len(steps)); seq > 0; seq = steps[seq-1].Parent() {
		out = append(out, steps[seq-1])
	}
	slices.Reverse(out)
	return out
}

// Version is one of several messages that continue a conversation at the same
// point, each on its own branch.
type Version struct {
	Seq  int64 `json:"seq" doc:"Step number of the message"`
	Last int64 `json:"last,omitempty" doc:"Last step of the version's newest branch. Pass it as after to return to it. Absent until the first turn of the version has ended"`
}

// messageTree holds the messages of the user in a transcript with branches. A
// message follows the message of the previous turn on its branch, or 0.
type messageTree struct {
	of       []int64           // by step number: the message of the turn that contains the step
	before   map[int64]int64   // the message that each message follows
	versions map[int64][]int64 // the messages that follow each message, in order
	newest   map[int64]int64   // the last step of the ended turns that follow each message
}

// newMessageTree returns the tree of a transcript. ended is the number of the last
// input that was processed before the transcript was read.
func newMessageTree(steps []step, ended int64) *messageTree {
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
		if steps[seq-1].Turn > ended {
			continue
		}
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

// addVersions sets After and Versions of the user's messages on the current branch.
// It returns the messages that follow the last one on other branches.
func addVersions(lines []Line, steps []step, ended int64) []Version {
	t := newMessageTree(steps, ended)
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
