package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadout-dev/loadout/internal/callid"
	"github.com/loadout-dev/loadout/internal/fold"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// runPendingCalls makes the calls without a result: read-only calls
// concurrently, other calls one after another, in the model's order. waits
// reports whether a call asked to end the turn with [Outcome.Wait].
func (t *turn) runPendingCalls(ctx context.Context) (waits bool, err error) {
	calls := fold.PendingCalls(t.folded().Recent())
	for len(calls) > 0 {
		n := 0
		for n < len(calls) && t.reads(calls[n]) {
			n++
		}
		n = max(n, 1)
		var running sync.WaitGroup
		errs := make([]error, n)
		wait := make([]bool, n)
		for i, c := range calls[:n] {
			running.Go(func() { wait[i], errs[i] = t.runCall(ctx, c) })
		}
		running.Wait()
		waits = waits || slices.Contains(wait, true)
		if err := errors.Join(errs...); err != nil {
			return waits, err
		}
		calls = calls[n:]
	}
	return waits, nil
}

func (t *turn) reads(c fold.PendingCall) bool {
	tool := t.tool(c.Name)
	return tool != nil && tool.ReadOnly
}

// runCall makes a call and records its result.
func (t *turn) runCall(ctx context.Context, c fold.PendingCall) (waits bool, err error) {
	made := &runningCall{turn: t, call: c.Call}
	out, err := t.callTool(ctx, c, made)
	start := made.unrecorded.Swap(nil)
	if err != nil {
		err = fmt.Errorf("call %s: %w", c.Name, err)
		if start != nil {
			if failed := t.session.Append(context.WithoutCancel(ctx), *start); failed != nil {
				err = errors.Join(err, failed)
			}
		}
		return false, err
	}
	res := &session.CallResult{Call: c.ID, Text: truncateMiddle(out.Text), Images: out.Images, Error: out.Error, Denied: out.Denied, Instructions: out.Instructions, Wait: out.Wait}
	events := []session.Event{{Result: res}}
	if start != nil {
		events = []session.Event{*start, {Result: res}}
	}
	if err := t.session.Append(context.WithoutCancel(ctx), events...); err != nil {
		return false, err
	}
	t.emitSkillEvents()
	t.emit(Event{Type: ToolResult, Call: &c.Call, Result: res})
	return out.Wait, nil
}

// maxResult is the maximum size, in bytes, of the text of a result sent to the
// model.
const maxResult = 256 << 10

// truncateMiddle truncates text to about maxResult bytes by removing its
// middle.
func truncateMiddle(text string) string {
	if len(text) <= maxResult {
		return text
	}
	const half = maxResult / 2
	return fmt.Sprintf("%s\n(%d bytes in the middle are left out)\n%s",
		strings.ToValidUTF8(text[:half], ""), len(text)-2*half, strings.ToValidUTF8(text[len(text)-half:], ""))
}

func (t *turn) callTool(ctx context.Context, c fold.PendingCall, made *runningCall) (*Outcome, error) {
	tool := t.tool(c.Name)
	switch {
	case tool == nil:
		return &Outcome{Text: fmt.Sprintf("There is no tool %q. Tools of skills and servers are called with call_tool.", c.Name), Error: true}, nil
	case c.Started && !tool.Repeatable:
		return &Outcome{Text: "It is not known whether this call was made: the program ended before it came back. It was not made again. See whether it had an effect, and ask the person before you repeat it.", Error: true}, nil
	}
	if loaded := t.recoveredLoad(c); loaded != "" {
		return &Outcome{Text: loaded}, nil
	}
	args := json.RawMessage(c.Arguments)
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if !json.Valid(args) {
		return &Outcome{Text: "The arguments are no JSON. The call was not made.", Error: true}, nil
	}
	if t.opts.BeforeCall != nil {
		if err := t.opts.BeforeCall(ctx); err != nil {
			return &Outcome{Text: "Nothing is called while the configuration cannot be read: " + err.Error() + ".", Error: true}, nil
		}
	}
	id := fmt.Sprintf("%d.%s", c.Message, c.ID)
	if outer := callid.From(ctx); outer != "" { // the agent is a tool of another agent
		id = outer + "." + id
	}
	// The start of load_skill tells a recovery which loads belong to the call.
	made.recordLater = tool.ReadOnly && tool.Repeatable && c.Name != toolname.LoadSkill
	t.emit(Event{Type: ToolCall, Call: &c.Call})
	if !tool.ReportsStart {
		if err := made.reportStart(ctx); err != nil {
			return nil, err
		}
	}
	out, err := tool.Call(callid.With(context.WithValue(ctx, runningCallKey{}, made), id), args)
	if err == nil {
		err = t.recordSkillUse(ctx, args)
	}
	return out, err
}

// runningCall is a call in progress. It is stored in the context passed to the
// tool.
type runningCall struct {
	turn *turn
	call llm.Call
	once sync.Once
	err  error

	// recordLater means that the start is recorded together with the result, which
	// saves a write. The call has no effect, so it may be made again after a crash.
	recordLater bool
	unrecorded  atomic.Pointer[session.Event] // the start event, to be recorded with the result
}

type runningCallKey struct{}

// reportStart records that the call may have had an effect.
func (m *runningCall) reportStart(ctx context.Context) error {
	m.once.Do(func() {
		start := session.Event{Time: time.Now().UTC(), CallStarted: &session.CallStart{Call: m.call.ID}}
		if m.recordLater {
			m.unrecorded.Store(&start)
			return
		}
		m.err = m.turn.session.Append(ctx, start)
	})
	return m.err
}

// ReportStart must be called by a tool with [Tool.ReportsStart] right before
// its call has an effect. It records the start in the session. If it returns an
// error, the tool must do nothing. Further calls return the same result. If ctx
// does not belong to an agent's call, ReportStart returns nil.
func ReportStart(ctx context.Context) error {
	if m, ok := ctx.Value(runningCallKey{}).(*runningCall); ok {
		return m.reportStart(ctx)
	}
	return nil
}

// ReportProgress emits a [ToolProgress] event for the call that ctx belongs to.
// It does nothing if text is "", the turn is over, or ctx does not belong to an
// agent's call.
func ReportProgress(ctx context.Context, text string) {
	if m, ok := ctx.Value(runningCallKey{}).(*runningCall); ok && text != "" {
		m.turn.emit(Event{Type: ToolProgress, Call: &m.call, Text: text})
	}
}

// recoveredLoad returns the text of the skills that a call loaded, if they were
// recorded before a crash but the call's result was not. Otherwise it returns
// "". The loads of several calls in one message may be interleaved.
func (t *turn) recoveredLoad(c fold.PendingCall) string {
	if !c.Started || c.Name != toolname.LoadSkill {
		return ""
	}
	wanted, out := skillName(json.RawMessage(c.Arguments))
	if out != nil {
		return ""
	}
	var loads []*session.SkillLoad // since the start of the call
	begun := false
	for _, e := range t.folded().Recent() {
		switch {
		case e.CallStarted != nil && e.CallStarted.Call == c.ID:
			begun, loads = true, nil
		case begun && e.Loaded != nil && !e.Loaded.Direct:
			loads = append(loads, e.Loaded)
		}
	}
	i := slices.IndexFunc(loads, func(l *session.SkillLoad) bool { return l.RequiredBy == "" && l.Skill.Matches(wanted) })
	if i < 0 {
		return ""
	}
	var texts []string
	for _, l := range loads[:i+1] {
		if l.RequiredBy == loads[i].Skill.Name || l == loads[i] {
			texts = append(texts, l.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// recordSkillUse records that a call uses a skill, so that the skill stays
// active. A call uses a skill if its arguments name the skill, or a tool that
// the skill provides.
func (t *turn) recordSkillUse(ctx context.Context, args json.RawMessage) error {
	var about struct {
		Skill string `json:"skill"`
		Name  string `json:"name"` // tool name
	}
	if json.Unmarshal(args, &about) != nil {
		return nil
	}
	for _, a := range t.session.Active() {
		if about.Skill != "" && a.Skill.Name == about.Skill || about.Name != "" && slices.Contains(a.Tools, about.Name) {
			if err := t.session.RecordUse(ctx, a.Skill); err != nil {
				return err
			}
		}
	}
	return nil
}
