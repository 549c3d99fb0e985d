// Package terminal is the program that a person talks to an agent with, in the
// terminal that they have: what is said stays in its scrollback, and only a few lines
// at the bottom are drawn anew.
//
// It is given the conversation and the commands that a person may type. It reads no
// configuration, decides nothing, and never prints text of a model, a tool or a skill
// that could drive the terminal.
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
	"golang.org/x/term"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// Conversation is what a person talks to. Its methods may be called at once.
type Conversation interface {
	// RunTurn takes what the person says, and returns when the answer is over.
	RunTurn(ctx context.Context, text string, tell func(agent.Event)) error
	// Resume goes on with a turn that was broken off, if there is one.
	Resume(ctx context.Context, tell func(agent.Event)) error
	// Status is what stands in the status line.
	Status() Status
}

// Status is how a conversation is.
type Status struct {
	Model  string
	Skills []Skill // in force
	Tokens int     // that were taken so far
	Cost   float64 // in US dollars; 0 is not known
	Folder string
}

// Skill is one in force.
type Skill struct {
	Name string
	// Left is for how many turns it stays so without being used, where that is
	// bounded.
	Left    int
	Bounded bool
}

// Command is something that a person may type behind a slash.
type Command struct {
	Name string
	Args string // a hint at them, as "NAME"
	Help string // in a few words
	// Detail is one more line about it, as its tools and an example; nil is none.
	Detail func() string
	// Complete returns what an argument may be, of those that begin with a text; nil
	// has none.
	Complete func(prefix string) []Choice
	// Run does it, with what was typed behind the name. It returns Markdown for the
	// person. An [*End] ends the program.
	Run func(ctx context.Context, args string, tell func(agent.Event)) (string, error)
}

// Choice is what an argument may be.
type Choice struct{ Name, Help string }

// End ends the program, which then returns With.
type End struct{ With error }

func (e *End) Error() string {
	if e.With == nil {
		return "the person leaves"
	}
	return e.With.Error()
}

// Options are what the program is given.
type Options struct {
	Input  *os.File // a terminal
	Output *os.File // a terminal
	Env    []string // of the person, as KEY=value
	Plain  bool     // without colours and bold text

	// Greeting is Markdown that is printed first.
	Greeting string
	// Past are the events of a conversation that goes on.
	Past []session.Event

	// Commands are those there are now. It is called each time that one is typed.
	Commands func() []Command
	// Desk is where questions of the session are put to the person.
	Desk    *approval.Queue
	Session string
	Who     policy.Principal

	// History keeps what was typed; nil keeps nothing beyond the program.
	History *History
	// Editor is the command that lets the person edit a file; nil edits in the line.
	Editor func(file string) *exec.Cmd
	// Before returns a file of the working folder as it is, to show what a call would
	// change; nil shows what is written.
	Before func(path string) (text string, ok bool)
	// Notices are shown as they come; nil are none.
	Notices *Notices
	// Describe is an error as the person reads it, with the next step.
	Describe func(error) string
}

// Run talks to the person until they leave, which is nil, a command ends it, which is
// what the [End] has, or ctx ends. The terminal is as it was then, and nothing of the
// program goes on.
func Run(ctx context.Context, c Conversation, o *Options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	m := newModel(ctx, c, o)
	out := &watched{File: o.Output}
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.Input), out.option(), tea.WithEnvironment(o.Env), tea.WithoutSignalHandler(), tea.WithFilter(bounded))
	m.send = p.Send
	out.drawn = func() {
		m.running.Go(func() { p.Send(beginMsg{}) }) // who draws does not wait for the loop
	}
	defer func() {
		cancel(errLeft)
		m.running.Wait()
	}()
	if o.Desk != nil {
		defer m.watch(o.Desk, o.Session)()
	}
	if o.Notices != nil {
		defer o.Notices.to(func(text string) { p.Send(noticeMsg{text}) })()
	}
	if err := m.greet(o.Output); err != nil {
		return fmt.Errorf("the terminal: %w", err)
	}
	_, err := p.Run()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("the terminal: %w", err)
	}
	return m.end
}

// watch has the loop told of the questions of a session, until the result is called:
// a desk may still tell of one then.
func (m *model) watch(desk *approval.Queue, session string) (stop func()) {
	var mu sync.Mutex
	over := false
	unwatch := desk.Subscribe(func(e approval.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Request.Session == session && !over {
			m.running.Go(func() { m.send(askMsg(e)) }) // who asks does not wait for the screen
		}
	})
	return func() {
		unwatch()
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
}

// greet prints what there is to see before anything is drawn.
func (m *model) greet(to *os.File) error {
	if w, h, err := term.GetSize(int(to.Fd())); err == nil && w > 0 && h > 0 {
		m.width, m.height = min(w, maxWidth), min(h, maxHeight)
	}
	_, err := fmt.Fprintln(to, strings.Join(m.first(), "\n"))
	return err
}

// errLeft and errStopped are why work ends before its time.
var (
	errLeft    = errors.New("the person left")
	errStopped = errors.New("the person stopped it")
)

// pause is how long the keys of a person who is typing are not taken for the answer to
// a question that has just come.
const pause = 700 * time.Millisecond
