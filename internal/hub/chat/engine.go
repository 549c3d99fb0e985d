// Package chat runs the conversations of a hub on any of its nodes. Start
// reading at [Engine].
//
// A conversation consists of three streams in the database. Its inbox holds
// incoming messages and cancellations in order of arrival. Its transcript holds
// everything said and done; package agent appends to it through package
// session. Its event stream is for watchers: transcript steps, partial answers,
// approval requests, and the start and end of turns. A watcher can continue
// from any event number, on any node, without missing an event.
//
// One node at a time holds the lease of a conversation and processes its inbox
// in order. Each write checks the lease in the same transaction, so a node that
// lost its lease cannot change anything. If a node dies, its lease expires and
// another node continues. Events are not published twice. As in package agent,
// a tool call that started and has no result is not repeated.
//
// No state that another node needs is held in memory only. A bus wakes nodes
// early; polling the database finds whatever the bus loses.
//
// Each method takes the calling principal and authorizes it with package
// account. Each change and each refusal is recorded in the audit log. A
// principal who may not see a conversation gets [store.ErrNotFound], as for one
// that does not exist.
//
// The package never serves HTTP and does not depend on a model provider or a
// catalog: [Options.Setup] selects the skills, the model and the tools of a
// conversation.
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
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/bus"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/queue"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// Limits of a conversation.
const (
	MaxText   = 256 << 10 // bytes of a message
	MaxTitle  = 1024      // bytes
	MaxKey    = store.MaxLabel
	MaxQueued = 100  // messages and commands waiting for their turn
	maxNotes  = 1000 // inputs in the inbox, including cancellations and answers
	maxTries  = 5    // nodes that may fail during the same turn
)

// Errors that a program can act on, besides those of packages store, account
// and approval.
var (
	// ErrClosed reports that the node is shutting down. Another node can serve
	// the request.
	ErrClosed = errors.New("server is shutting down; try again")
	// ErrQueueFull reports that the conversation has too many waiting inputs.
	ErrQueueFull = errors.New("too many messages are waiting in the conversation; wait for its turn to end, or cancel it")
	// ErrKeyUsed reports that a different message was already sent with the
	// same key.
	ErrKeyUsed = errors.New("a different message was already sent with this key")
	// ErrInvalid reports an invalid input.
	ErrInvalid = errors.New("invalid input")
)

// Request names the conversation that a setup is for, and the user who acts in
// it.
type Request struct {
	Principal    account.Principal
	Conversation Conversation
}

// Setup holds what a conversation runs with while this node processes an input.
// The package closes its contents only through Close.
type Setup struct {
	// Runtime has the skills that the principal may use.
	Runtime *loadout.Runtime
	Model   llm.Model
	// Agent configures the agent: its instructions and the limits of a turn.
	// Its Tools precede those of the function Tools. The package sets its
	// Approvals and Folder.
	Agent agent.Options
	// Tools returns the tools that need the conversation; nil adds none.
	Tools func(ctx context.Context, t *ToolContext) ([]agent.Tool, error)
	// SkillTools provides the tools of skills for this conversation; nil
	// provides none.
	SkillTools session.Tools
	// Preload names skills to load before the first answer and pin.
	Preload []string
	// PreloadReason says why a skill is preloaded; nil gives no reason.
	PreloadReason func(skill string) string
	// Namespace is the namespace of the agent, "" if there is no agent.
	Namespace store.Namespace
	// SkillID returns the store ID under which the use of a skill is counted,
	// "" to not count it. Nil counts nothing.
	SkillID func(session.ID) string
	// Close releases the setup; nil does nothing.
	Close func() error
}

// ToolContext gives tools access to a conversation that is active on this node.
type ToolContext struct {
	ID      string
	Session *session.Session
	// Approvals takes the approval requests of the conversation. If the node
	// shuts down, the next one continues pending requests under the same ID:
	// see [agent.CallID].
	Approvals *approval.Queue
	User      policy.Principal
	// Folder holds the files of the conversation while its setup is in use.
	// Changes are saved before the result of a call is.
	Folder *os.Root
}

// Options configures an engine. Setup and Principal are required.
type Options struct {
	// Setup returns what a conversation runs with. The setup may be in use
	// after ctx ends, until its Close is called. An error ends the turn and is
	// shown to watchers.
	Setup func(ctx context.Context, r Request) (*Setup, error)
	// Principal returns the current rights of a user. A turn may start long
	// after it was requested, on another node.
	Principal func(ctx context.Context, user account.UserID) (account.Principal, error)
	// Token returns the current scopes of an API token, or
	// [account.ErrInvalidCredentials] if it was revoked or has expired; its
	// turns then end. Nil accepts all tokens.
	Token func(ctx context.Context, id string) (account.Scopes, error)
	// Bus wakes other nodes; if nil, they poll. The caller closes it.
	Bus bus.Bus
	// Dir is the directory for the folders of active conversations; "" is the
	// system's temporary directory. A killed process leaves its folders behind,
	// so give each new process an empty directory.
	Dir string
	// Turns limits the turns that run at once on this node; 0 means 256.
	// Further turns wait, and users take turns in order.
	Turns int
	// Lease is how long a conversation stays assigned to a node that does not
	// renew its lease; 0 means 15 s.
	Lease time.Duration
	// Poll is the interval for polling what the bus may have lost; 0 means 1 s.
	// Conversations of dead nodes are searched every five polls, or every third
	// of a lease if that is shorter.
	Poll time.Duration
	// ClientTimeout is how long a request to a client waits for a connected
	// client; 0 means 5 s.
	ClientTimeout time.Duration
	// Drafts limits the drafts stored per user, and DraftBytes their total
	// package size; 0 means 50, and 64 MiB.
	Drafts, DraftBytes int64
	// Retention and Budget are passed to sessions: see [session.Options].
	Retention, Budget int
	// Trace starts tracing a turn. The turn runs with the context that it
	// returns. Nil traces nothing.
	Trace func(ctx context.Context, c Conversation, kind InputKind) (context.Context, Trace)
	// Logger receives background failures; nil discards them.
	Logger *slog.Logger
}

// Trace observes one turn on one node. Its methods are called one at a time and
// must not block.
type Trace interface {
	// Step reports a stored event of the transcript.
	Step(e *session.Event)
	// End reports why the turn ended. A non-nil error means that it has not
	// ended and that another node continues it.
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
	set(&o.ClientTimeout, 5*time.Second)
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

// maxSlots limits the conversations of one node that wait for a turn.
const maxSlots = 1 << 16

// Engine runs conversations on one node of a hub. It is safe for concurrent
// use.
type Engine struct {
	db       *store.DB
	opts     Options
	node     string
	notifier *notifier
	turns    *queue.Queue

	ctx     context.Context // of all background work; cancelled by stop
	stop    context.CancelCauseFunc
	running sync.WaitGroup

	mu        sync.Mutex
	draining  chan struct{} // closed once no new work is accepted
	workers   int
	liveTurns map[string]liveTurn // by conversation ID
	idle      chan struct{}       // closed when draining and the last worker has finished
}

// errStopping is the cause of work cancelled by a shutdown.
var errStopping = errors.New("server is shutting down")

// New returns the engine of a node. It also continues conversations of dead
// nodes. Close it when done; the caller closes the database. New panics if a
// required option is missing.
func New(db *store.DB, o Options) *Engine {
	if o.Setup == nil || o.Principal == nil {
		panic("chat: Setup and Principal are required")
	}
	e := &Engine{db: db, opts: o.orDefaults(), node: store.NewID(), draining: make(chan struct{}), idle: make(chan struct{}), liveTurns: map[string]liveTurn{}}
	e.notifier = &notifier{db: db, bus: e.opts.Bus, listeners: map[string]map[*listener]bool{}}
	e.turns = queue.New(e.opts.Turns, maxSlots)
	e.ctx, e.stop = context.WithCancelCause(context.Background())
	e.running.Go(func() { e.runEvery(e.opts.Poll, e.notifier.poll) })
	e.running.Go(func() { e.runEvery(min(5*e.opts.Poll, e.opts.Lease/3), e.adoptExpired) })
	return e
}

// Close accepts no new work and lets running turns finish until ctx ends. It
// then cancels them, and other nodes continue them. It returns when all work of
// the engine has stopped.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	if !e.isClosing() {
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

// isClosing reports whether the engine accepts no new work.
func (e *Engine) isClosing() bool {
	select {
	case <-e.draining:
		return true
	default:
		return false
	}
}

// addWorker registers a worker. It returns false if the engine is closing.
func (e *Engine) addWorker() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isClosing() {
		return false
	}
	e.workers++
	return true
}

func (e *Engine) removeWorker() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.workers--; e.workers == 0 && e.isClosing() {
		close(e.idle)
	}
}

// runEvery calls do every d until the engine closes. It logs the first of
// consecutive failures.
func (e *Engine) runEvery(d time.Duration, do func(context.Context) error) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	failing := false
	for {
		err := do(e.ctx)
		if err != nil && !failing && e.ctx.Err() == nil {
			e.opts.Logger.Warn("cannot maintain conversations", "error", err)
		}
		failing = err != nil
		select {
		case <-tick.C:
		case <-e.ctx.Done():
			return
		}
	}
}

// userPrincipal returns the principal of a user for packages policy and
// approval.
func userPrincipal(u account.UserID) policy.Principal {
	return policy.Principal{ID: string(u), Kind: policy.UserPrincipal}
}
