// Package terminal implements an interactive chat in a terminal. Messages are
// printed into the scrollback, and only a few lines at the bottom are redrawn.
//
// The caller provides the conversation and the slash commands. The package
// reads no configuration and makes no decisions. It removes terminal control
// characters from all text that comes from models, tools and skills.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// Conversation connects the chat to an agent. Its methods may be called
// concurrently.
type Conversation interface {
	// RunTurn sends a message to the agent. It returns when the response is
	// complete.
	RunTurn(ctx context.Context, text string, emit func(agent.Event)) error
	// Resume continues an interrupted turn if there is one.
	Resume(ctx context.Context, emit func(agent.Event)) error
	// Status returns the contents of the status line.
	Status() Status
}

// Status describes a conversation for the status line.
type Status struct {
	Model  string
	Skills []Skill // active skills
	Tokens int     // tokens used since the start
	Cost   float64 // cost in US dollars; 0 means unknown
	Folder string
}

// Skill describes an active skill for the status line.
type Skill struct {
	Name string
	// Left is the number of unused turns after which the skill is unloaded; 0
	// means no limit.
	Left    int
	Bounded bool
}

// Command is a slash command that the user can type.
type Command struct {
	Name    string
	Aliases []string // other names
	Args    string   // hint for the arguments, such as "NAME"
	Help    string   // short description
	// Detail returns an additional line of help, such as a skill's tools; nil
	// means none.
	Detail func() string
	// Complete returns the values that start with prefix; nil means that there
	// are no completions.
	Complete func(prefix string) []Choice
	// Pick returns the choices to show if the user types no argument, and a note
	// that is shown below them. It may read files. If Pick is nil, Run is called
	// without an argument. PickTitle says what the user chooses. Free means that
	// the user may also type an argument that is not a choice.
	Pick func() (choices []Choice, note string)
	// PickMore returns choices that are added when they arrive, such as those of
	// a server; nil means none. ctx is done when the program ends.
	PickMore  func(ctx context.Context) []Choice
	PickTitle string
	Free      bool
	// Files is set if files that users name with @ in the arguments are
	// appended to them.
	Files bool
	// Run executes the command. args is the text after its name. The result is
	// Markdown. An [*End] error ends the program.
	Run func(ctx context.Context, args string, emit func(agent.Event)) (string, error)
}

// Choice is a possible value of a command's argument.
type Choice struct{ Name, Help string }

// AttachNote describes whether a file that the user mentioned was attached.
type AttachNote struct {
	Text    string
	Warning bool // whether the file was not attached as a whole
}

// End is the error that a command returns to end the program. [Run] then
// returns End.With.
type End struct{ With error }

func (e *End) Error() string {
	if e.With == nil {
		return "user quit"
	}
	return e.With.Error()
}

// Options configures [Run].
type Options struct {
	Input  *os.File // must be a terminal
	Output *os.File // must be a terminal
	Env    []string // the user's environment, as KEY=value
	Plain  bool     // no colors or bold text

	// Greeting is Markdown that is printed first.
	Greeting string
	// Clear clears the screen before the greeting. The scrollback stays.
	Clear bool
	// Past holds the events of a resumed conversation.
	Past []session.Event

	// Commands returns the slash commands. It is called whenever the user types
	// one.
	Commands func() []Command
	// Approvals is the queue of approval requests.
	Approvals *approval.Queue
	Session   string
	Who       policy.Principal

	// Unsent is put into the input first. When Run returns, it holds the queued
	// messages and the input that were not sent. nil means that they are lost.
	Unsent *Unsent
	// History stores inputs; nil means that they are kept only in memory.
	History *History
	// CompleteFile returns the completions of a partly typed path: files, and
	// directories, whose names end in a slash. It may read directories. nil
	// means that there are no completions.
	CompleteFile func(path string) []Choice
	// Attach returns the text of the files that the user named with @ in a
	// message, to append to it. notes say what it did. If Attach is nil, @ has no
	// meaning.
	Attach func(ctx context.Context, paths []string) (text string, notes []AttachNote, err error)
	// Editor returns the command that opens a file in the user's editor; nil
	// means that users edit arguments in the terminal.
	Editor func(file string) *exec.Cmd
	// Before returns the current content of a file in the working directory,
	// for a diff when a tool writes the file. If Before is nil, only the new
	// content is shown.
	Before func(path string) (text string, ok bool)
	// Notices are shown when they arrive; nil means none.
	Notices *Notices
	// Describe formats an error and the next step for the user.
	Describe func(error) string
}

// Run runs the chat until the user quits, a command returns an [*End], or ctx
// is done. It returns nil, End.With, or the error of ctx. It restores the
// terminal and waits for all goroutines before returning.
func Run(ctx context.Context, c Conversation, o *Options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	m := newModel(ctx, c, o)
	out := &observedTerminal{File: o.Output}
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.Input), out.programOption(), tea.WithEnvironment(o.Env), tea.WithoutSignalHandler(), tea.WithFilter(clampSize))
	m.send = p.Send
	out.onDraw = func() {
		m.running.Go(func() { p.Send(beginMsg{}) }) // in a goroutine, because rendering must not wait for the loop
	}
	defer func() {
		cancel(errQuit)
		m.running.Wait()
	}()
	if o.Approvals != nil {
		defer m.watch(o.Approvals, o.Session)()
	}
	if o.Notices != nil {
		defer o.Notices.subscribe(func(text string) { p.Send(noticeMsg{text}) })()
	}
	if err := m.greet(o.Output); err != nil {
		return fmt.Errorf("run terminal interface: %w", err)
	}
	_, err := p.Run()
	m.saveUnsent()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("run terminal interface: %w", err)
	}
	return m.end
}

// watch passes a session's approval events to the event loop until stop is
// called. An event may still arrive while stop runs.
func (m *model) watch(queue *approval.Queue, session string) (stop func()) {
	var mu sync.Mutex
	over := false
	unwatch := queue.Subscribe(func(e approval.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Request.Session == session && !over {
			m.running.Go(func() { m.send(askMsg(e)) }) // in a goroutine, so that the requester does not wait for the screen
		}
	})
	return func() {
		unwatch()
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
}

// greet prints the greeting and the earlier messages before the first screen.
func (m *model) greet(to *os.File) error {
	if w, h, err := term.GetSize(int(to.Fd())); err == nil && w > 0 && h > 0 {
		m.width, m.height = min(w, maxWidth), min(h, maxHeight)
	}
	text := strings.Join(m.greetingRows(), "\n")
	if m.opts.Clear {
		text = ansi.EraseEntireScreen + ansi.CursorHomePosition + text
	}
	_, err := fmt.Fprintln(to, text)
	return err
}

// errQuit and errStopped are cancellation causes.
var (
	errQuit    = errors.New("user quit")
	errStopped = errors.New("stopped by the user")
)

// promptPause is how long a new prompt ignores keys, because the user may still
// be typing a message.
const promptPause = 700 * time.Millisecond
