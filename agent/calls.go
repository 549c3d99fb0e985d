package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/session"
)

// openCall is a call without a result.
type openCall struct {
	session.Call
	message int64 // the event that it is of: vendors use IDs of calls again
	started bool  // and maybe made
}

// open are the calls that have no result yet, in their order.
func (t *turn) open() []openCall {
	var out []openCall
	for _, e := range t.session.Events(0) {
		switch {
		case e.Compacted != nil:
			out = nil
		case e.Message != nil && e.Message.Role == session.RoleAssistant:
			out = nil
			for _, c := range e.Message.Calls {
				out = append(out, openCall{Call: c, message: e.Seq})
			}
		case e.Started != nil:
			for i := range out {
				out[i].started = out[i].started || out[i].ID == e.Started.Call
			}
		case e.Result != nil:
			for i := range out {
				if out[i].ID == e.Result.Call {
					out = append(out[:i:i], out[i+1:]...)
					break
				}
			}
		}
	}
	return out
}

// finish makes the calls that have no result: those that only read at once, and
// others one after the other, in the order of the model. waits says that one of them
// ends the turn.
func (t *turn) finish(ctx context.Context) (waits bool, err error) {
	calls := t.open()
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
			running.Go(func() { wait[i], errs[i] = t.make(ctx, c) })
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

func (t *turn) reads(c openCall) bool {
	tool := t.tool(c.Name)
	return tool != nil && tool.Reads
}

// make makes one call, and records what came of it.
func (t *turn) make(ctx context.Context, c openCall) (waits bool, err error) {
	out, err := t.call(ctx, c)
	if err != nil {
		return false, fmt.Errorf("call %s: %w", c.Name, err)
	}
	res := &session.Returned{Call: c.ID, Text: bounded(out.Text), Images: out.Images, Error: out.Error, Denied: out.Denied, Instructions: out.Instructions, Wait: out.Wait}
	if err := t.session.Append(context.WithoutCancel(ctx), session.Event{Type: session.TypeResult, Result: res}); err != nil {
		return false, err
	}
	t.announce()
	t.say(Event{Type: ToolResult, Call: &c.Call, Result: res})
	return out.Wait, nil
}

// MaxResult bounds the text of a result that a model is given, in bytes.
const MaxResult = 256 << 10

// bounded is a text without its middle where it is too long.
func bounded(text string) string {
	if len(text) <= MaxResult {
		return text
	}
	const half = MaxResult / 2
	return fmt.Sprintf("%s\n(%d bytes in the middle are left out)\n%s",
		strings.ToValidUTF8(text[:half], ""), len(text)-2*half, strings.ToValidUTF8(text[len(text)-half:], ""))
}

func (t *turn) call(ctx context.Context, c openCall) (*Outcome, error) {
	tool := t.tool(c.Name)
	switch {
	case tool == nil:
		return &Outcome{Text: fmt.Sprintf("There is no tool %q. Tools of skills and servers are called with call_tool.", c.Name), Error: true}, nil
	case c.started && !tool.Repeatable:
		return &Outcome{Text: "It is not known whether this call was made: the program ended before it came back. It was not made again. See whether it had an effect, and ask the person before you repeat it.", Error: true}, nil
	}
	if loaded := t.loadedBy(c); loaded != "" {
		return &Outcome{Text: loaded}, nil
	}
	args := json.RawMessage(c.Arguments)
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if !json.Valid(args) {
		return &Outcome{Text: "The arguments are no JSON. The call was not made.", Error: true}, nil
	}
	if t.opts.Before != nil {
		if err := t.opts.Before(ctx); err != nil {
			return &Outcome{Text: "Nothing is called while the configuration cannot be read: " + err.Error() + ".", Error: true}, nil
		}
	}
	made := &making{turn: t, call: c.Call, id: fmt.Sprintf("%d.%s", c.message, c.ID)}
	if outer := CallID(ctx); outer != "" { // of an agent that is the tool of another
		made.id = outer + "." + made.id
	}
	t.say(Event{Type: ToolCall, Call: &c.Call})
	if !tool.Begins {
		if err := made.begin(ctx); err != nil {
			return nil, err
		}
	}
	out, err := tool.Call(context.WithValue(ctx, makingKey{}, made), args)
	if err == nil {
		err = t.use(ctx, args)
	}
	return out, err
}

// making is a call under way, which the contexts of tools have.
type making struct {
	turn *turn
	call session.Call
	id   string // in the conversation
	once sync.Once
	err  error
}

type makingKey struct{}

// begin records that the call may have an effect from here on.
func (m *making) begin(ctx context.Context) error {
	m.once.Do(func() {
		m.err = m.turn.session.Append(ctx, session.Event{Type: session.TypeStarted, Started: &session.Started{Call: m.call.ID}})
	})
	return m.err
}

// Begin is called by a tool with [Tool.Begins] right before its call has an effect.
// Where it fails, nothing may be done. Outside a call of an agent it does nothing.
func Begin(ctx context.Context) error {
	if m, ok := ctx.Value(makingKey{}).(*making); ok {
		return m.begin(ctx)
	}
	return nil
}

// Progress tells how far a call is, as a tool knows it. Outside a call of an agent it
// does nothing.
func Progress(ctx context.Context, text string) {
	if m, ok := ctx.Value(makingKey{}).(*making); ok && text != "" {
		m.turn.say(Event{Type: ToolProgress, Call: &m.call, Text: text})
	}
}

// CallID names the call that a context is of in its conversation, the same after a
// crash; "" is none.
func CallID(ctx context.Context) string {
	if m, ok := ctx.Value(makingKey{}).(*making); ok {
		return m.id
	}
	return ""
}

// loadedBy is what a load told that came into the log before the program ended, and
// whose result did not. Other loads of the same message may have come in between.
func (t *turn) loadedBy(c openCall) string {
	if !c.started || c.Name != "load_skill" {
		return ""
	}
	wanted, out := skillName(json.RawMessage(c.Arguments))
	if out != nil {
		return ""
	}
	var loads []*session.Loaded // since the call began
	begun := false
	for _, e := range t.session.Events(0) {
		switch {
		case e.Started != nil && e.Started.Call == c.ID:
			begun, loads = true, nil
		case begun && e.Loaded != nil && !e.Loaded.Direct:
			loads = append(loads, e.Loaded)
		}
	}
	i := slices.IndexFunc(loads, func(l *session.Loaded) bool { return l.For == "" && l.Skill.Answers(wanted) })
	if i < 0 {
		return ""
	}
	var texts []string
	for _, l := range loads[:i+1] {
		if l.For == loads[i].Skill.Name || l == loads[i] {
			texts = append(texts, l.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// use notes which skill a call was about, so that it stays in force: one whose file
// or script was named, or that brought the tool that was called.
func (t *turn) use(ctx context.Context, args json.RawMessage) error {
	var about struct {
		Skill string `json:"skill"`
		Name  string `json:"name"` // of a tool
	}
	if json.Unmarshal(args, &about) != nil {
		return nil
	}
	for _, a := range t.session.Active() {
		if about.Skill != "" && a.Skill.Name == about.Skill || about.Name != "" && slices.Contains(a.Tools, about.Name) {
			if err := t.session.Use(ctx, a.Skill); err != nil {
				return err
			}
		}
	}
	return nil
}
