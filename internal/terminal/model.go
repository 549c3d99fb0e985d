package terminal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// model is the state of the terminal program. Only the program's event loop
// accesses it.
type model struct {
	ctx  context.Context
	talk Conversation
	opts *Options
	palette
	send    func(tea.Msg) // sends a message to the loop from another goroutine
	now     func() time.Time
	running sync.WaitGroup // background goroutines

	width, height int
	status        Status
	input         editor
	history       *History
	completion    completion
	picker        *picker // list that is shown instead of the input; nil means none
	printer       printer
	begun         bool // whether the first screen was drawn
	printed       bool // whether the next block needs a blank line before it

	turn     *turn   // running turn
	waiting  []input // messages queued during the turn
	calls    calls
	thinking string // the model's thinking in the last turn

	pending         []approval.Request // pending requests; the dialog shows the first
	dialog          dialog
	ignoreKeysUntil time.Time // the dialog ignores keys before this time
	lastKey         time.Time // time of the last key
	leaving         bool
	quitArmed       bool             // whether Ctrl-C was pressed once with an empty input
	showKeys        bool             // whether the keys are listed below the input
	end             error            // result of Run
	recent          []renderedScreen // screens that may still be displayed
}

// turn is a running turn or a running slash command.
type turn struct {
	stream  stream
	start   time.Time
	cancel  context.CancelCauseFunc
	stopped bool
	grouped bool   // whether the last printed line describes an event
	skill   string // skill in the last printed line about loading or unloading
}

// Messages that the event loop receives.
type (
	eventMsg     agent.Event
	askMsg       approval.Event
	turnEndedMsg struct{ err error } // end of a turn
	replyMsg     struct{ text string }
	noticeMsg    struct{ text string } // from [Notices]
	// attachedMsg says that a file was attached.
	attachedMsg struct{ text string }
	tickMsg     struct{}
	redrawMsg   struct{}
	detailMsg   struct{ text, detail string } // detail of a completion
	editedMsg   struct {
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
	if o.Unsent != nil {
		m.input.restore(o.Unsent.in)
	}
	return m
}

// Init implements [tea.Model].
func (m *model) Init() tea.Cmd { return nil }

// beginMsg is sent when the first screen has been drawn. Output before that
// would be overwritten.
type beginMsg struct{}

// begin shows pending requests and resumes an interrupted turn.
func (m *model) begin() tea.Cmd {
	m.begun = true
	if m.opts.Approvals != nil {
		if open, err := m.opts.Approvals.Pending(m.ctx, m.opts.Session, m.opts.Who); err == nil {
			for _, a := range open {
				m.handleApproval(approval.Event{Request: a})
			}
		}
	}
	if len(m.opts.Past) == 0 {
		return nil
	}
	return m.start(func(ctx context.Context, emit func(agent.Event)) (string, error) {
		return "", m.talk.Resume(ctx, emit)
	})
}

// Update implements [tea.Model].
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
		m.handlePaste(msg.Content)
	case eventMsg:
		m.event(agent.Event(msg))
	case askMsg:
		m.handleApproval(approval.Event(msg))
	case replyMsg:
		m.printBlock(markdown(msg.text, m.textWidth()))
	case noticeMsg:
		for _, l := range textLines(strings.TrimSpace(msg.text), faint) {
			m.printBelow(l)
		}
	case attachedMsg:
		if m.turn != nil {
			m.printEvent(line{{"✓ ", green}, {Plain(msg.text), normal}})
		}
	case filesMsg:
		m.setFiles(msg)
	case turnEndedMsg:
		cmd = m.finish(msg.err)
	case pickMsg:
		m.picker = msg.picker
	case moreMsg:
		msg.to.add(msg.more)
	case editedMsg:
		m.applyEdited(msg)
	case tickMsg:
		cmd = m.tick()
	case detailMsg:
		m.completion.setDetail(msg)
	case printedMsg:
		m.printer.busy = false
	}
	m.loadDetail()
	return m, tea.Batch(cmd, m.print(), m.redrawIfPadded())
}

// print returns a command that prints queued output. If the user has quit and
// no output is left, the command quits the program.
func (m *model) print() tea.Cmd {
	if m.leaving && m.printer.isIdle() && m.turn == nil {
		return tea.Quit
	}
	if !m.begun {
		return nil
	}
	return m.printer.next(m.width, max(m.height-m.maxHeight()-1, 1))
}

// quit quits the program as soon as nothing is running.
func (m *model) quit(err error) {
	m.leaving, m.end = true, err
	m.stop()
	for _, a := range m.pending {
		m.sendAnswer(a, approval.Answer{Outcome: approval.Cancelled})
	}
	m.pending, m.dialog = nil, nil
}

// printBlock prints lines preceded by a blank line.
func (m *model) printBlock(lines []line) {
	if len(lines) == 0 {
		return
	}
	if m.printed {
		m.printer.add("")
	}
	m.printed = true
	if m.turn != nil {
		m.turn.grouped = false
	}
	m.printer.add(m.paintAll(lines)...)
}

// printBelow prints a line directly below the previous one.
func (m *model) printBelow(l line) {
	m.printed = true
	m.printer.add(m.paintAll(l.wrap(m.textWidth(), line{{"  ", normal}}))...)
}

// start runs a turn or a slash command in the background.
func (m *model) start(f func(ctx context.Context, emit func(agent.Event)) (string, error)) tea.Cmd {
	ctx, cancel := context.WithCancelCause(m.ctx)
	m.turn = &turn{start: m.now(), cancel: cancel}
	m.thinking = ""
	m.running.Go(func() {
		defer cancel(nil)
		text, err := f(ctx, func(e agent.Event) { m.send(eventMsg(e)) })
		if text != "" {
			m.send(replyMsg{text})
		}
		m.send(turnEndedMsg{err})
	})
	return m.wakeUp()
}

func (m *model) wakeUp() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} })
}

// tick updates the elapsed time on the screen.
func (m *model) tick() tea.Cmd {
	if m.turn == nil {
		return nil
	}
	return m.wakeUp()
}

// stop cancels the running turn. It returns false if none is running.
func (m *model) stop() bool {
	if m.turn == nil {
		return false
	}
	m.turn.stopped = true
	m.turn.cancel(errStopped)
	return true
}

// finish ends the running turn, which returned err.
func (m *model) finish(err error) tea.Cmd {
	t := m.turn
	m.turn = nil
	if t == nil {
		return nil
	}
	m.printAnswer(t.stream.takeRest())
	for _, c := range m.calls.runningCalls() {
		c.over, c.failed, c.result = true, true, "interrupted"
	}
	m.status = m.talk.Status()
	if unsent, ok := errors.AsType[*attachError](err); ok && m.input.empty() { // return the message for a correction
		m.input.restore(unsent.in)
	}
	if end, ok := errors.AsType[*End](err); ok {
		m.quit(end.With)
		return nil
	}
	switch {
	case t.stopped:
		m.printBelow(line{{"stopped", faint}})
		if len(m.waiting) > 0 && m.input.empty() { // return the message to the input for review
			m.input.restore(joinInputs(m.waiting))
		}
		m.waiting = nil
	case err != nil && m.ctx.Err() == nil:
		m.printFailure(err)
	}
	return m.nextWaiting()
}

// nextWaiting submits the first queued message if no turn is running.
func (m *model) nextWaiting() tea.Cmd {
	if m.turn != nil || len(m.waiting) == 0 || m.leaving {
		return nil
	}
	next := m.waiting[0]
	m.waiting = m.waiting[1:]
	return m.submit(next)
}

// saveUnsent saves the queued messages and the input for the next conversation.
func (m *model) saveUnsent() {
	if m.opts.Unsent == nil {
		return
	}
	all := m.waiting
	if !m.input.empty() {
		all = append(all, m.input.value())
	}
	m.opts.Unsent.in = joinInputs(all)
}

// printFailure prints the error of a turn or a slash command.
func (m *model) printFailure(err error) {
	text := err.Error()
	if m.opts.Describe != nil {
		text = m.opts.Describe(err)
	}
	m.printProblem(text)
}

// printProblem prints a problem that the user can solve.
func (m *model) printProblem(text string) {
	m.printBlock(wrapAll(textLines(text, red), m.textWidth()))
}

func wrapAll(lines []line, width int) []line {
	var out []line
	for _, l := range lines {
		out = append(out, l.wrap(width, nil)...)
	}
	return out
}

// greetingRows returns the greeting and past messages, to print before the
// first screen.
func (m *model) greetingRows() []string {
	if m.opts.Greeting != "" {
		m.printBlock(markdown(m.opts.Greeting, m.textWidth()))
	}
	m.printPast(m.opts.Past)
	rows := m.printer.waiting
	m.printer.waiting = nil
	return rows
}

// maxPastLines is the maximum number of lines shown of a user's earlier message.
const maxPastLines = 20

// shorten truncates text to limit lines. If it omits lines, the last line of
// the result states their number.
func shorten(text string, limit int) string {
	lines := strings.Split(text, "\n")
	if len(lines) <= limit {
		return text
	}
	return strings.Join(lines[:limit-1], "\n") + fmt.Sprintf("\n… +%d lines", len(lines)-limit+1)
}

// printPast prints the last messages of a resumed conversation.
func (m *model) printPast(events []session.Event) {
	const most = 6
	var said []*session.Message
	for _, e := range events {
		if e.Message != nil && strings.TrimSpace(e.Message.Text) != "" {
			said = append(said, e.Message)
		}
	}
	if n := len(said); n > most {
		m.printBelow(line{{"… " + FormatTokens(n-most) + " earlier messages", faint}})
		said = said[n-most:]
	}
	for _, s := range said {
		if s.Role == llm.User {
			m.printUserText(shorten(s.Text, maxPastLines))
		} else {
			m.printBlock(markdown(s.Text, m.textWidth()))
		}
	}
}
