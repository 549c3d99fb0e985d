package terminal

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/session"
)

// model is the program: what is on the screen, and what is under way. Only the loop of
// the program touches it.
type model struct {
	ctx  context.Context
	talk Conversation
	opts *Options
	palette
	send    func(tea.Msg) // to the loop, from another goroutine
	now     func() time.Time
	running sync.WaitGroup // goroutines

	width, height int
	status        Status
	input         editor
	history       *History
	completion    completion
	printer       printer
	begun         bool // something is drawn
	spoke         bool // something was printed, so that a blank line comes before the next

	turn    *turn    // under way
	waiting []string // that was typed meanwhile
	calls   calls
	thought string // of the last turn

	asks    []approval.Request // that wait, the first of them shown by the dialog
	dialog  dialog
	deaf    time.Time // until when keys are not for the dialog
	typed   time.Time // when the last key came
	leaving bool
	armed   bool    // Ctrl-C on an empty line, once
	end     error   // what Run returns
	drawn   []drawn // lately
}

// turn is what is under way: an answer, or a command.
type turn struct {
	stream  stream
	begun   time.Time
	cancel  context.CancelCauseFunc
	stopped bool
	grouped bool   // the last thing printed is a line about what happens
	skill   string // of which it was just said that it is in force, or not any more
}

// Messages to the loop.
type (
	eventMsg  agent.Event
	askMsg    approval.Event
	overMsg   struct{ err error } // of a turn
	replyMsg  struct{ text string }
	noticeMsg struct{ text string } // of the program around this one
	tickMsg   struct{}
	redrawMsg struct{}
	detailMsg struct{ text, told string } // of an offer
	editedMsg struct {
		text []byte
		err  error
	}
)

func newModel(ctx context.Context, c Conversation, o *Options) *model {
	m := &model{ctx: ctx, talk: c, opts: o, palette: palette{o.Plain}, now: time.Now, history: o.History, width: 80, height: 24}
	if m.history == nil {
		m.history = &History{}
	}
	m.status = c.Status()
	return m
}

// Init is the loop's.
func (m *model) Init() tea.Cmd { return nil }

// beginMsg comes once, when the first screen is drawn: what is printed before that
// would be drawn over.
type beginMsg struct{}

// begin shows what is asked already, and goes on with what was broken off.
func (m *model) begin() tea.Cmd {
	m.begun = true
	if m.opts.Desk != nil {
		if open, err := m.opts.Desk.Pending(m.ctx, m.opts.Session, m.opts.Who); err == nil {
			for _, a := range open {
				m.asked(approval.Event{Request: a})
			}
		}
	}
	if len(m.opts.Past) == 0 {
		return nil
	}
	return m.start(func(ctx context.Context, tell func(agent.Event)) (string, error) {
		return "", m.talk.Resume(ctx, tell)
	})
}

// Update is the loop's.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case beginMsg:
		cmd = m.begin()
	case tea.WindowSizeMsg:
		m.width, m.height = min(max(msg.Width, 1), maxWidth), min(max(msg.Height, 1), maxHeight)
	case tea.KeyPressMsg:
		cmd = m.key(msg)
	case tea.PasteMsg:
		m.pasted(msg.Content)
	case eventMsg:
		m.event(agent.Event(msg))
	case askMsg:
		m.asked(approval.Event(msg))
	case replyMsg:
		m.say(markdown(msg.text, m.textWidth()))
	case noticeMsg:
		for _, l := range textLines(strings.TrimSpace(msg.text), faint) {
			m.note(l)
		}
	case overMsg:
		cmd = m.over(msg.err)
	case editedMsg:
		m.edited(msg)
	case tickMsg:
		cmd = m.tick()
	case detailMsg:
		m.completion.tell(msg)
	case printedMsg:
		m.printer.busy = false
	}
	m.tellDetail()
	return m, tea.Batch(cmd, m.print(), m.settleDown())
}

// print sends on what waits to be printed; with nothing left, the program may end.
func (m *model) print() tea.Cmd {
	if m.leaving && m.printer.idle() && m.turn == nil {
		return tea.Quit
	}
	if !m.begun {
		return nil
	}
	return m.printer.next(m.width, max(m.height-m.tallest()-1, 1))
}

// leave ends the program once nothing is under way.
func (m *model) leave(with error) {
	m.leaving, m.end = true, with
	m.stop()
	for _, a := range m.asks {
		m.answer(a, approval.Answer{Outcome: approval.Cancelled})
	}
	m.asks, m.dialog = nil, nil
}

// say prints lines, with a blank line before them.
func (m *model) say(lines []line) {
	if len(lines) == 0 {
		return
	}
	if m.spoke {
		m.printer.add("")
	}
	m.spoke = true
	if m.turn != nil {
		m.turn.grouped = false
	}
	m.printer.add(m.paintAll(lines)...)
}

// note prints a line that belongs to the one before.
func (m *model) note(l line) {
	m.spoke = true
	m.printer.add(m.paintAll(l.wrap(m.textWidth(), line{{"  ", normal}}))...)
}

// start begins what takes its time.
func (m *model) start(f func(ctx context.Context, tell func(agent.Event)) (string, error)) tea.Cmd {
	ctx, cancel := context.WithCancelCause(m.ctx)
	m.turn = &turn{begun: m.now(), cancel: cancel}
	m.thought = ""
	m.running.Go(func() {
		defer cancel(nil)
		text, err := f(ctx, func(e agent.Event) { m.send(eventMsg(e)) })
		if text != "" {
			m.send(replyMsg{text})
		}
		m.send(overMsg{err})
	})
	return m.wakeUp()
}

func (m *model) wakeUp() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} })
}

// tick shows how long it has been.
func (m *model) tick() tea.Cmd {
	if m.turn == nil {
		return nil
	}
	return m.wakeUp()
}

// stop ends what is under way before its time; false is that nothing is.
func (m *model) stop() bool {
	if m.turn == nil {
		return false
	}
	m.turn.stopped = true
	m.turn.cancel(errStopped)
	return true
}

// over is the end of what was under way.
func (m *model) over(err error) tea.Cmd {
	t := m.turn
	m.turn = nil
	if t == nil {
		return nil
	}
	m.answerText(t.stream.rest())
	for _, c := range m.calls.open() {
		c.over, c.failed, c.result = true, true, "it was broken off"
	}
	m.status = m.talk.Status()
	if end, ok := errors.AsType[*End](err); ok {
		m.leave(end.With)
		return nil
	}
	switch {
	case t.stopped:
		m.note(line{{"stopped", faint}})
		if len(m.waiting) > 0 && m.input.empty() { // to be looked at again
			m.input.set(strings.Join(m.waiting, "\n"))
		}
		m.waiting = nil
	case err != nil && m.ctx.Err() == nil:
		m.failed(err)
	}
	return m.nextWaiting()
}

func (m *model) nextWaiting() tea.Cmd {
	if len(m.waiting) == 0 || m.leaving {
		return nil
	}
	next := m.waiting[0]
	m.waiting = m.waiting[1:]
	return m.submit(next)
}

// failed prints why a turn or a command came to nothing.
func (m *model) failed(err error) {
	text := err.Error()
	if m.opts.Describe != nil {
		text = m.opts.Describe(err)
	}
	m.wrong(text)
}

// wrong prints what is wrong.
func (m *model) wrong(text string) {
	m.say(wrapAll(textLines(text, red), m.textWidth()))
}

func wrapAll(lines []line, width int) []line {
	var out []line
	for _, l := range lines {
		out = append(out, l.wrap(width, nil)...)
	}
	return out
}

// first are the rows that there are to see before all else.
func (m *model) first() []string {
	if m.opts.Greeting != "" {
		m.say(markdown(m.opts.Greeting, m.textWidth()))
	}
	m.past(m.opts.Past)
	rows := m.printer.waiting
	m.printer.waiting = nil
	return rows
}

// past prints the end of a conversation that goes on.
func (m *model) past(events []session.Event) {
	const most = 6
	var said []*session.Message
	for _, e := range events {
		if e.Message != nil && strings.TrimSpace(e.Message.Text) != "" {
			said = append(said, e.Message)
		}
	}
	if n := len(said); n > most {
		m.note(line{{"… " + Tokens(n-most) + " messages before", faint}})
		said = said[n-most:]
	}
	for _, s := range said {
		if s.Role == session.RoleUser {
			m.person(s.Text)
		} else {
			m.say(markdown(s.Text, m.textWidth()))
		}
	}
}
