// Package chat holds the conversations of a hub, on any of its nodes.
//
// Three streams of the database are a conversation. What is wanted of it, as messages
// and cancels, is its inbox, in the order in which it came. What was said and done is
// its transcript, which package agent adds to through package session. What is told of
// it, to whoever watches, is a third: each step of the transcript, words of an answer
// as they come, questions, and how turns begin and end. A watcher goes on from any
// number of it, on any node, and misses nothing.
//
// One node at a time has the lease of a conversation and does what its inbox says,
// one thing after the other. What it writes is checked against the lease in the same
// transaction, so that a node that was thought dead and is not changes nothing. Where
// a node dies, its lease runs out and another one goes on: what was told is not told
// again, and a call of a tool that was begun and has no result is not repeated, as
// package agent does it.
//
// Nothing is kept in memory that another node must know. A bus makes nodes look
// sooner; where it loses something, the database is asked in time.
//
// Each method takes who asks and decides by package account itself; each change leaves
// a record in the audit log, and each refusal. Who may not know of a conversation is
// told what is told of none: [store.ErrNotFound].
//
// The package knows no HTTP, no vendor of models and no catalog: which skills, model
// and tools a conversation has is what [Options.Setup] says.
package chat

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/bus"
	"github.com/loadout-dev/loadout/internal/hub/queue"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// Bounds of a conversation.
const (
	MaxText    = 256 << 10 // bytes of a message
	MaxTitle   = 1024      // bytes
	MaxKey     = store.MaxLabel
	MaxWaiting = 100  // messages and commands that wait for their turn
	maxNotes   = 1000 // in the inbox, with cancels and answers
	maxTries   = 5    // nodes that may end in the same turn
)

// Errors that a program can act on, besides those of packages store, account and ask.
var (
	// ErrClosed says that the node ends. Another one does it.
	ErrClosed = errors.New("the node is about to end; try again")
	// ErrWaiting says that as much waits in the conversation as may.
	ErrWaiting = errors.New("too much waits in the conversation; wait for its turn to end, or cancel it")
	// ErrKeyUsed says that a message has the key of another one.
	ErrKeyUsed = errors.New("another message was sent with its key")
	// ErrInvalid says that something cannot be said or kept like that.
	ErrInvalid = errors.New("it cannot be taken as it is")
)

// Request says for which conversation a setup is, and who acts in it.
type Request struct {
	Principal    account.Principal
	Conversation Conversation
}

// Setup is what a conversation runs with, for as long as this node has something to do
// in it. What is in it is the setup's own: the package closes nothing but by Close.
type Setup struct {
	// Runtime has the skills that the principal may use.
	Runtime *loadout.Runtime
	Model   llm.Model
	// Agent is what is told to the model and how far a turn may go. Its Tools come
	// before those of the function Tools. Its Desk and Folder are the package's.
	Agent agent.Options
	// Tools makes the tools that need to know the conversation; nil makes none.
	Tools func(ctx context.Context, t *Talk) ([]agent.Tool, error)
	// Held brings the tools of skills, for this conversation; nil brings none.
	Held session.Tools
	// Preload are skills that are in force from the first answer on, for good.
	Preload []string
	// Because says who wants a skill to be in force from the start; nil does not.
	Because func(skill string) string
	// Namespace is that of the agent, "" where it is nobody in particular.
	Namespace store.Namespace
	// SkillID is the id in the store of a skill, by which its use is counted, "" of one
	// that is not counted; nil counts nothing.
	SkillID func(session.ID) string
	// Close releases all of it; nil does nothing.
	Close func() error
}

// Talk is a conversation that is under way on this node, for the tools of it.
type Talk struct {
	ID      string
	Session *session.Session
	// Desk is where its questions are asked. Those that wait when the node ends are
	// asked on by the next one, where they have the same ID: see [agent.CallID].
	Desk   *ask.Desk
	Person policy.Principal
	// Folder has the files of the conversation while its setup is in use; what is
	// changed in it is kept before the result of a call is.
	Folder *os.Root
}

// Options adjust an engine. Setup and Principal are needed.
type Options struct {
	// Setup says what a conversation runs with. What it returns may be in use when ctx
	// has ended, until its Close is called. Its error is told as the end of the turn.
	Setup func(ctx context.Context, r Request) (*Setup, error)
	// Principal returns what a user may do now: a turn may begin long after it was
	// asked for, on another node.
	Principal func(ctx context.Context, user account.UserID) (account.Principal, error)
	// Token returns what an API token lets its user do now, or [account.ErrRefused] where
	// it was withdrawn or has expired: what was begun with it goes no further then. Nil
	// lets all go on.
	Token func(ctx context.Context, id string) (account.Scopes, error)
	// Bus wakes other nodes; nil leaves them to look for themselves. It is the
	// caller's to close.
	Bus bus.Bus
	// Dir is where folders of conversations under way are; "" is the system's place
	// for temporary files. A process that is killed leaves them there: whoever starts
	// a node gives it a directory that is empty.
	Dir string
	// Turns bounds the turns that run at once on this node; 0 is 256. More wait, and
	// users have theirs one after the other.
	Turns int
	// Lease is for how long a node that is not heard of keeps a conversation; 0 is
	// 15 s.
	Lease time.Duration
	// Poll is how often the database is asked for what the bus may have lost, and five
	// times that, or a third of a lease, how often for what dead nodes left; 0 is 1 s.
	Poll time.Duration
	// Patience is for how long a request to a client waits for one that is open; 0 is
	// 5 s.
	Patience time.Duration
	// Drafts bounds the drafts that are kept of one person, and DraftBytes those of all
	// their packages; 0 is 50, and 64 MiB.
	Drafts, DraftBytes int64
	// Retention and Budget are those of sessions: see [session.Options].
	Retention, Budget int
	// Trace begins to follow a turn; the context that it returns is that of all that the
	// turn does. Nil follows none.
	Trace func(ctx context.Context, c Conversation, kind InputKind) (context.Context, Trace)
	// Logger is told of what goes wrong behind the scenes; nil discards it.
	Logger *slog.Logger
}

// Trace follows one turn on one node. Its methods are called one at a time, and must not
// wait.
type Trace interface {
	// Step is told an event of the transcript once it is kept.
	Step(e *session.Event)
	// End is told why the turn is over. With an error it is not, and for whichever node
	// goes on with it.
	End(reason Reason, err error)
}

func (o Options) orDefaults() Options {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&o.Lease, 15*time.Second)
	set(&o.Poll, time.Second)
	set(&o.Patience, 5*time.Second)
	if o.Drafts <= 0 {
		o.Drafts = 50
	}
	if o.DraftBytes <= 0 {
		o.DraftBytes = 64 << 20
	}
	if o.Turns <= 0 {
		o.Turns = 256
	}
	if o.Bus == nil {
		o.Bus = bus.New()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// maxSlots bounds the conversations of one node that wait for a turn to be theirs.
const maxSlots = 1 << 16

// Engine is one node's part in the conversations of a hub. It is safe for concurrent
// use.
type Engine struct {
	db    *store.DB
	opts  Options
	node  string
	bell  *bell
	turns *queue.Queue

	ctx     context.Context // of what runs; ended by stop
	stop    context.CancelCauseFunc
	running sync.WaitGroup

	mu       sync.Mutex
	draining chan struct{} // closed where nothing more is begun
	workers  int
	live     map[string]liveTurn // by the id of the conversation
	idle     chan struct{}       // closed when draining and the last worker is done
}

// errStopping is why work ends where the node does.
var errStopping = errors.New("the node ends")

// New returns the engine of a node, which goes on with what dead nodes left. Close it
// when done; the database is the caller's. It panics without what it needs.
func New(db *store.DB, o Options) *Engine {
	if o.Setup == nil || o.Principal == nil {
		panic("chat: an engine needs Setup and Principal")
	}
	e := &Engine{db: db, opts: o.orDefaults(), node: store.NewID(), draining: make(chan struct{}), idle: make(chan struct{}), live: map[string]liveTurn{}}
	e.bell = &bell{db: db, bus: e.opts.Bus, waiting: map[string]map[*listener]bool{}}
	e.turns = queue.New(e.opts.Turns, maxSlots)
	e.ctx, e.stop = context.WithCancelCause(context.Background())
	e.running.Go(func() { e.every(e.opts.Poll, e.bell.look) })
	e.running.Go(func() { e.every(min(5*e.opts.Poll, e.opts.Lease/3), e.sweep) })
	return e
}

// Close begins nothing more and lets turns that run come to their end until ctx does.
// Then they are broken off, and other nodes go on with them. It returns when nothing
// of the engine runs any more.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	if !e.closing() {
		close(e.draining)
		if e.workers == 0 {
			close(e.idle)
		}
	}
	e.mu.Unlock()
	select {
	case <-e.idle:
	case <-ctx.Done():
	}
	e.stop(errStopping)
	<-e.idle
	e.running.Wait()
	return nil
}

// closing reports whether nothing more is begun.
func (e *Engine) closing() bool {
	select {
	case <-e.draining:
		return true
	default:
		return false
	}
}

// enter counts one more worker, unless the engine ends.
func (e *Engine) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing() {
		return false
	}
	e.workers++
	return true
}

func (e *Engine) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.workers--; e.workers == 0 && e.closing() {
		close(e.idle)
	}
}

// every does something again and again until the engine ends. What goes wrong is said
// once for each row of failures.
func (e *Engine) every(d time.Duration, do func(context.Context) error) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	failing := false
	for {
		err := do(e.ctx)
		if err != nil && !failing && e.ctx.Err() == nil {
			e.opts.Logger.Warn("conversations are not looked after", "error", err)
		}
		failing = err != nil
		select {
		case <-tick.C:
		case <-e.ctx.Done():
			return
		}
	}
}

// person is a user as packages policy and ask know them.
func person(u account.UserID) policy.Principal {
	return policy.Principal{ID: string(u), Kind: policy.Person}
}
