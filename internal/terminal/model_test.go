package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// echo repeats the message, and answers "wait" only when it is stopped.
type echo struct{}

func (echo) Status() Status {
	return Status{Model: "echo:1", Tokens: 1234, Skills: []Skill{{Name: "tides", Left: 3, Bounded: true}}, Folder: "~/project"}
}

func (echo) Resume(context.Context, func(agent.Event)) error { return nil }

func (echo) RunTurn(ctx context.Context, text string, tell func(agent.Event)) error {
	switch text {
	case "wait":
		<-ctx.Done()
		return context.Cause(ctx)
	case "cut":
		tell(agent.Event{Type: agent.Text, Text: "Half an ans"})
		return errors.New("the answer broke off")
	case "fail":
		return errors.New("no connection\x1b[2J")
	case "call":
		c := &llm.Call{ID: "1", Name: "read_file", Arguments: `{"path":"a.txt"}`}
		tell(agent.Event{Type: agent.ToolCall, Call: c})
		tell(agent.Event{Type: agent.ToolResult, Call: c, Result: &session.CallResult{Call: "1", Text: "contents of it"}})
	}
	tell(agent.Event{Type: agent.Text, Text: "You said *" + text + "*.\x1b[31m\n\nAnd"})
	tell(agent.Event{Type: agent.Text, Text: " more."})
	tell(agent.Event{Type: agent.Done})
	return nil
}

// screenTest drives a model without a terminal.
type screenTest struct {
	*testing.T
	*model
	messages chan tea.Msg
	printed  []string
	quit     bool
	clock    time.Time
}

func newScreen(t *testing.T, o *Options) *screenTest {
	t.Helper()
	s := &screenTest{T: t, messages: make(chan tea.Msg, 1000), clock: time.Unix(0, 0)}
	o.Plain, o.Who = true, policy.Principal{ID: "ada", Kind: "person"}
	s.model = newModel(t.Context(), echo{}, o)
	s.model.send = func(m tea.Msg) { s.messages <- m }
	s.model.now = func() time.Time { return s.clock }
	s.update(tea.WindowSizeMsg{Width: 80, Height: 24})
	t.Cleanup(func() {
		s.stop()
		s.running.Wait()
	})
	return s
}

// update sends a message to the model and collects what it prints.
func (s *screenTest) update(m tea.Msg) {
	s.printer.busy = true // collects printed text
	s.model.Update(m)
	s.printed = append(s.printed, s.printer.waiting...)
	s.printer.waiting = nil
	s.quit = s.leaving && s.turn == nil
	s.View()
}

// keys types: names of keys, or text in quotes.
func (s *screenTest) keys(all ...string) {
	for _, k := range all {
		codes := map[string]tea.Key{"enter": {Code: tea.KeyEnter}, "tab": {Code: tea.KeyTab}, "esc": {Code: tea.KeyEscape}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
			"ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+d": {Code: 'd', Mod: tea.ModCtrl}, "ctrl+o": {Code: 'o', Mod: tea.ModCtrl}, "ctrl+r": {Code: 'r', Mod: tea.ModCtrl}, "alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt}}
		if c, ok := codes[k]; ok {
			s.update(tea.KeyPressMsg(c))
			continue
		}
		for _, r := range k {
			s.update(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// finish takes messages until nothing is under way.
func (s *screenTest) finish() {
	s.Helper()
	for s.turn != nil {
		select {
		case m := <-s.messages:
			s.update(m)
		case <-time.After(30 * time.Second):
			s.Fatal("it does not come to an end")
		}
	}
}

func (s *screenTest) text() string { return strings.Join(s.printed, "\n") }

func (s *screenTest) bottom() string { return strings.Join(s.screen().rows, "\n") }

func (s *screenTest) has(text string, parts ...string) {
	s.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			s.Errorf("there is no %q in\n%s", p, text)
		}
	}
	if strings.ContainsFunc(text, func(r rune) bool { return IsControl(r) }) {
		s.Errorf("it could drive the terminal: %q", text)
	}
}

// The message and the response are printed, and neither can control the terminal.
func TestTurnIsPrinted(t *testing.T) {
	s := newScreen(t, &Options{})
	s.has(s.bottom(), "> Message…", "echo:1 · tides (3) · 1.2k tokens · ~/project")
	s.keys("call", "enter")
	s.finish()
	s.has(s.text(), "> call", "✓ read_file a.txt", "You said call.[31m", "And more.")
	s.keys("fail", "enter")
	s.finish()
	s.has(s.text(), "no connection[2J")
	s.keys("ctrl+o")
	s.has(s.text(), "path: a.txt", "contents of it")
}

// Esc and Ctrl-C stop only the response. Text typed meanwhile returns to the editor.
func TestStop(t *testing.T) {
	for _, key := range []string{"esc", "ctrl+c"} {
		s := newScreen(t, &Options{})
		s.keys("wait", "enter", "later", "enter")
		s.has(s.bottom(), "Esc stops", "then: later")
		s.keys(key)
		s.finish()
		s.has(s.text(), "stopped")
		if s.input.String() != "later" || s.leaving {
			t.Errorf("%s: the line is %q, leaving %t", key, s.input.String(), s.leaving)
		}
	}
}

// Text typed during a response is sent after it.
func TestTypeAhead(t *testing.T) {
	s := newScreen(t, &Options{})
	s.keys("one", "enter", "two", "enter")
	s.finish()
	s.has(s.text(), "You said one.", "> two", "You said two.")
}

// Ctrl-C empties the line first, and leaves only when it comes twice; any other key in
// between is a change of mind.
func TestLeave(t *testing.T) {
	for keys, want := range map[string]bool{"ctrl+d": true, "ctrl+c": false, "ctrl+c ctrl+c": true, "x ctrl+d": false, "x ctrl+c ctrl+c": false, "x ctrl+c ctrl+c ctrl+c": true, "ctrl+c up ctrl+c": false} {
		s := newScreen(t, &Options{})
		s.keys(strings.Fields(keys)...)
		if s.quit != want {
			t.Errorf("%s: it leaves: %t", keys, s.quit)
		}
	}
	s := newScreen(t, &Options{})
	s.keys("wait", "enter", "ctrl+d")
	s.finish()
	if !s.quit {
		t.Error("with an answer under way it goes on")
	}
}

// Several lines are one message.
func TestSeveralLines(t *testing.T) {
	s := newScreen(t, &Options{})
	s.keys("one", "alt+enter", `two\`, "enter")
	s.update(tea.PasteMsg{Content: "three\nfour"})
	s.keys("enter")
	s.finish()
	s.has(s.text(), "> one\n  two\n  three\n  four")
}

// Of a text that has no room the end is shown, with how much is above.
func TestLongInput(t *testing.T) {
	s := newScreen(t, &Options{})
	s.input.insert(strings.TrimSuffix(strings.Repeat("a line\n", 29), "\n") + "\nthe last one")
	s.has(s.bottom(), "> 20 lines above\n  a line\n", "  the last one\n")
	if got := s.screen(); !strings.Contains(got.rows[got.y], "the last one") {
		t.Errorf("the cursor is on %q", got.rows[got.y])
	}
	for range 29 {
		s.keys("up")
	}
	s.has(s.bottom(), "> a line\n")
	if got := s.screen(); got.y != 0 {
		t.Errorf("the cursor is on row %d of\n%s", got.y, s.bottom())
	}
}

// Nothing is printed before something is drawn, which it would be drawn over.
func TestNothingIsPrintedBeforeFirstDraw(t *testing.T) {
	m := newModel(t.Context(), echo{}, &Options{Plain: true})
	m.update(t, tea.WindowSizeMsg{Width: 80, Height: 24})
	m.update(t, noticeMsg{"early"})
	if m.printer.busy || len(m.printer.waiting) != 1 {
		t.Errorf("it prints: %t, and %q waits", m.printer.busy, m.printer.waiting)
	}
	m.update(t, beginMsg{})
	if !m.printer.busy || len(m.printer.waiting) != 0 {
		t.Errorf("it prints: %t, and %q waits", m.printer.busy, m.printer.waiting)
	}
}

func (m *model) update(t *testing.T, msg tea.Msg) {
	t.Helper()
	m.Update(msg)
}

// The terminal is detected by the first drawing, and reported once.
func TestWatchedTerminal(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	drawings := 0
	w := &observedTerminal{File: f, onDraw: func() { drawings++ }}
	for i, text := range []string{"\x1b[?2026$p", "\x1b[?25l\x1b[?2004h> Say", "\x1b[?2004h"} {
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if want := min(i, 1); drawings != want {
			t.Errorf("after %q there were %d drawings, want %d", text, drawings, want)
		}
	}
}

// A terminal that says that it is enormous does not take all memory.
func TestEnormousTerminal(t *testing.T) {
	got := clampSize(nil, tea.WindowSizeMsg{Width: 65535, Height: 65535})
	if got != (tea.WindowSizeMsg{Width: maxWidth, Height: maxHeight}) {
		t.Errorf("it is %v", got)
	}
	s := newScreen(t, &Options{})
	s.update(tea.WindowSizeMsg{Width: 65535, Height: 65535})
	if s.width != maxWidth || s.height != maxHeight {
		t.Errorf("the screen has %d columns and %d rows", s.width, s.height)
	}
}

// A prompt may arrive while the user exits; then nothing is started.
func TestQuestionsWhileExiting(t *testing.T) {
	desk := approval.NewQueue(&approval.MemoryStore{})
	s := newScreen(t, &Options{Approvals: desk, Session: "s"})
	stop := s.watch(desk, "s")
	put := func(id string) {
		if _, err := desk.Submit(t.Context(), approval.Request{ID: id, Kind: approval.KindElicitation, Session: "s", Principal: s.opts.Who, Message: "?"}); err != nil {
			t.Error(err)
		}
	}
	put("s.first")
	var asking sync.WaitGroup
	for i := range 50 {
		asking.Go(func() { put(fmt.Sprint("s.", i)) })
	}
	stop()
	s.running.Wait()
	told := len(s.messages)
	asking.Wait()
	s.running.Wait()
	if told == 0 || len(s.messages) != told {
		t.Errorf("it was notified of %d questions, and of %d more later", told, len(s.messages)-told)
	}
}

// The program describes an interrupted response and a refusal of the vendor. An unknown
// command needs no description.
func TestFailedTurn(t *testing.T) {
	s := newScreen(t, &Options{Describe: func(err error) string { return "described: " + err.Error() + "\nsay it again" }})
	s.keys("fail", "enter")
	s.finish()
	s.keys("/nothing", "enter")
	s.has(s.text(), "described: no connection[2J\nsay it again", "\nunknown command /nothing; /help")
	s.keys("cut", "enter")
	s.finish()
	s.has(s.text(), "Half an ans\n\ndescribed: the answer broke off")
}

func commandsOf(ran *[]string) func() []Command {
	return func() []Command {
		run := func(name string) func(context.Context, string, func(agent.Event)) (string, error) {
			return func(_ context.Context, args string, _ func(agent.Event)) (string, error) {
				*ran = append(*ran, name+" "+args)
				return "**" + name + "** ran", nil
			}
		}
		return []Command{
			{Name: "load", Args: "NAME", Help: "load a skill", Run: run("load"), Complete: func(p string) []Choice { return []Choice{{"tides", "Reads tables"}} }},
			{Name: "look", Help: "look", Run: run("look"), Detail: func() string { return "as /look, tools: Read" }},
			{Name: "quit", Run: func(context.Context, string, func(agent.Event)) (string, error) { return "", &End{With: errStopped} }},
		}
	}
}

func TestCommands(t *testing.T) {
	var ran []string
	s := newScreen(t, &Options{Commands: commandsOf(&ran)})
	s.keys("/lo")
	s.has(s.bottom(), "› /load NAME  load a skill", "/look")
	s.keys("down")
	s.update(<-s.messages) // its description, which is not read during drawing
	s.has(s.bottom(), "as /look, tools: Read")
	s.keys("enter")
	s.finish()
	s.keys("/l", "tab", "ti", "tab")
	s.has(s.bottom(), "> /load tides", "Reads tables")
	s.keys("enter")
	s.finish()
	s.keys("/nothing", "enter")
	s.finish()
	if got := strings.Join(ran, ";"); got != "look ;load tides" {
		t.Errorf("there ran %q", got)
	}
	s.has(s.text(), "look ran", "load ran", "unknown command /nothing")
	s.keys("/etc/passwd is a path", "enter")
	s.finish()
	s.has(s.text(), "You said /etc/passwd is a path.")
	s.keys("/quit", "enter")
	s.finish()
	if !s.quit || !errors.Is(s.end, errStopped) {
		t.Errorf("it ends with %v", s.end)
	}
}

// The arrow keys move through the history and back.
func TestHistoryKeys(t *testing.T) {
	s := newScreen(t, &Options{})
	s.keys("one", "enter")
	s.finish()
	s.keys("new", "up")
	if got := s.input.String(); got != "one" {
		t.Errorf("up gives %q", got)
	}
	s.keys("down")
	if got := s.input.String(); got != "new" {
		t.Errorf("down gives %q", got)
	}
}

// put submits a request, and passes the notification to the model.
func (s *screenTest) put(desk *approval.Queue, a approval.Request) string {
	s.Helper()
	a.Session, a.Principal = "s", s.opts.Who
	s.Cleanup(desk.Subscribe(func(e approval.Event) { s.messages <- askMsg(e) }))
	id, err := desk.Submit(s.Context(), a)
	if err != nil {
		s.Fatal(err)
	}
	s.update(<-s.messages)
	return id
}

// A prompt replaces the input line, which returns after the answer.
func TestQuestion(t *testing.T) {
	desk := approval.NewQueue(&approval.MemoryStore{})
	s := newScreen(t, &Options{Approvals: desk, Session: "s"})
	s.keys("half a line")
	s.clock = s.clock.Add(time.Minute)
	id := s.put(desk, approval.Request{Kind: approval.KindApproval, Payload: request(t, "write_file", `{"path":"a","content":"b"}`).Payload, Message: "?"})
	s.has(s.bottom(), "Call write_file of workspace?", "because it is HIGH", "+ b", "y yes")
	s.keys("s")
	answer, err := desk.Wait(t.Context(), id)
	if err != nil || answer.Outcome != approval.Accepted || answer.Scope != policy.ForSession {
		t.Errorf("%+v, %v", answer, err)
	}
	s.has(s.text(), "write_file allowed for this conversation")
	s.has(s.bottom(), "> half a line")
}

// A form of a server is shown field by field in place of the input line.
func TestFormOnScreen(t *testing.T) {
	desk := approval.NewQueue(&approval.MemoryStore{})
	s := newScreen(t, &Options{Approvals: desk, Session: "s"})
	id := s.put(desk, approval.Request{Kind: approval.KindElicitation, Message: "Which harbour?", Schema: []byte(`{"properties":{"harbour":{"type":"string","title":"Its name"},"high":{"type":"string","enum":["today","tomorrow"]}},"required":["harbour"]}`)})
	s.has(s.bottom(), "Which harbour?", "Its name  1 of 2", "Enter next")
	s.keys("enter")
	s.has(s.bottom(), "required")
	s.update(tea.PasteMsg{Content: "Ki\nel"})
	s.has(s.bottom(), "› Ki el")
	s.keys("enter")
	s.has(s.bottom(), "2 of 2", "optional", "tomorrow", "Enter answer")
	s.keys("down", "down", "enter")
	answer, err := desk.Wait(t.Context(), id)
	if err != nil || answer.Outcome != approval.Accepted || string(answer.Content) != `{"harbour":"Ki el","high":"tomorrow"}` {
		t.Errorf("%+v %s, %v", answer, answer.Content, err)
	}
	s.has(s.bottom(), "> Message…")
}

func TestNewQuestionIgnoresTypedKeys(t *testing.T) {
	desk := approval.NewQueue(&approval.MemoryStore{})
	s := newScreen(t, &Options{Approvals: desk, Session: "s"})
	s.keys("sa")
	s.put(desk, approval.Request{Kind: approval.KindApproval, Payload: request(t, "x", `{}`).Payload, Message: "?"})
	s.keys("y")
	if len(s.pending) != 1 {
		t.Fatal("the y of a word allows it")
	}
	s.clock = s.clock.Add(2 * promptPause)
	s.keys("y")
	if len(s.pending) != 0 {
		t.Error("it is not answered")
	}
}

// A question that is settled elsewhere is taken away, and the next one shown.
func TestQuestionAnsweredElsewhere(t *testing.T) {
	desk := approval.NewQueue(&approval.MemoryStore{})
	s := newScreen(t, &Options{Approvals: desk, Session: "s"})
	id := s.put(desk, approval.Request{Kind: approval.KindElicitation, Message: "First?"})
	s.has(s.bottom(), "First?", "yes", "Esc cancel")
	if err := desk.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	s.update(<-s.messages)
	s.has(s.bottom(), "> Message…")
}

// Whatever the size, the screen fits it, and the cursor is on it.
func TestScreenFits(t *testing.T) {
	desk := approval.NewQueue(&approval.MemoryStore{})
	for _, width := range []int{1, 12, 40, 80, 200} {
		for _, height := range []int{1, 3, 10, 24} {
			s := newScreen(t, &Options{Approvals: desk, Session: "s"})
			s.update(tea.WindowSizeMsg{Width: width, Height: height})
			s.keys("wait", "enter")
			s.update(eventMsg(agent.Event{Type: agent.Text, Text: strings.Repeat("some words of an answer\n", 40)}))
			check := func() {
				t.Helper()
				got := s.screen()
				if len(got.rows) > height || got.y >= len(got.rows) || got.y < 0 {
					t.Errorf("%dx%d: %d rows, the cursor on %d", width, height, len(got.rows), got.y)
				}
				for _, r := range got.rows {
					if w := styledText(r, normal).width(); w > max(width-1, 1) {
						t.Errorf("%dx%d: a row of %d columns: %q", width, height, w, r)
					}
				}
			}
			check()
			s.keys("a long line that is typed meanwhile and has more columns than there are")
			check()
			s.clock = s.clock.Add(time.Minute)
			s.put(approval.NewQueue(&approval.MemoryStore{}), approval.Request{Kind: approval.KindApproval, Payload: request(t, "write_file", `{"path":"a","content":"b\nc\nd\ne\nf\ng\nh"}`).Payload, Message: "?"})
			check()
		}
	}
}

// Messages that were queued behind /new, and the input, are put into the input of
// the next conversation. Nothing is sent.
func TestUnsentInput(t *testing.T) {
	var ran []string
	var unsent Unsent
	s := newScreen(t, &Options{Commands: commandsOf(&ran), Unsent: &unsent})
	s.keys("one", "enter", "/quit", "enter", "/quit", "enter")
	s.update(tea.PasteMsg{Content: strings.Repeat("@a.txt\n", 10)})
	s.keys("enter", "half a line")
	s.finish()
	s.saveUnsent()
	if !s.quit {
		t.Fatal("it goes on")
	}
	next := newScreen(t, &Options{Unsent: &unsent})
	if got, want := next.input.value(), "/quit\n"+strings.TrimSpace(strings.Repeat("@a.txt\n", 10))+"\nhalf a line"; got.text != want || len(got.files()) > 0 {
		t.Errorf("the input is %q with files %q, want %q", got.text, got.files(), want)
	}
	next.saveUnsent()
	if unsent.in.text != next.input.String() {
		t.Errorf("saved %q", unsent.in.text)
	}
}

// The status line keeps the spaces of a path, and no control characters.
func TestStatusPath(t *testing.T) {
	if got := statusLine(Status{Model: "demo", Folder: "~/two  spaces\n\x1b[2J"}, 80).plainText(); got != "demo · ~/two  spaces [2J" {
		t.Errorf("it is %q", got)
	}
	for text, want := range map[string]bool{"a  b": true, "文": true, "a\nb": false, "a\x1b": false, "a\u202e": false} {
		if Printable(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}
