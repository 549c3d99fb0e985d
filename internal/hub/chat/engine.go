// Package chat runs the conversations of a hub on any of its nodes. Start
// reading at [Engine].
//
// A conversation consists of three streams in the database. Its inbox contains
// incoming messages and cancellations in order of arrival. Its transcript contains
// all messages, calls and results; package agent appends to it through package
// session. Its event stream is for watchers. It contains transcript steps, partial
// answers, approval requests, and the start and end of turns. A watcher can
// continue from any event number, on any node, without missing an event.
//
// One node at a time holds the lease of a conversation and processes its inbox
// in order. Each write checks the lease in the same transaction, so a node that
// lost its lease cannot change anything. If a node dies, its lease expires and
// another node continues. Events are not published twice. As in package agent,
// a tool call that started and has no result is not repeated.
//
// All state that another node needs is in the database. A bus notifies nodes of
// changes; nodes also poll the database, because the bus may lose notifications.
//
// Each method takes the calling principal and authorizes it with package
// account. Changes and denials are recorded in the audit log. If a principal may
// not see a conversation, the error is [store.ErrNotFound], as for one that does
// not exist.
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
	MaxQueued = 100  // waiting messages and commands
	maxNotes  = 1000 // inputs in the inbox, including cancellations and answers
	maxTries  = 5    // nodes that try the same turn
)

// Errors that a caller can handle, in addition to those of packages store,
// account and approval.
var (
	// ErrClosed says that the node is shutting down. Another node can handle the
	// request.
	ErrClosed = errors.New("server is shutting down; try again")
	// ErrQueueFull says that the conversation has too many waiting inputs.
	ErrQueueFull = errors.New("too many messages are waiting in the conversation; wait for its turn to end, or cancel it")
	// ErrKeyUsed says that a different message was already sent with the same
	// key.
	ErrKeyUsed = errors.New("a different message was already sent with this key")
	// ErrInvalid says that an argument is invalid.
	ErrInvalid = errors.New("invalid input")
)

// Request asks for the setup of a conversation on behalf of a user.
type Request struct {
	Principal    account.Principal
	Conversation Conversation
}

// Setup holds the skills, model and tools of a conversation while this node
// processes an input. The package calls Close when the input is processed.
type Setup struct {
	// Runtime provides the skills that the principal may use.
	Runtime *loadout.Runtime
	Model   llm.Model
	// Agent configures the agent, for example its instructions and the limits of
	// a turn. Its Tools come before those of the function Tools. The package sets
	// its Approvals and Folder.
	Agent agent.Options
	// Tools returns additional tools that use the conversation; nil adds none.
	Tools func(ctx context.Context, t *ToolContext) ([]agent.Tool, error)
	// SkillTools provides the tools of skills for this conversation; nil
	// provides none.
	SkillTools session.Tools
	// Preload names skills that are loaded and pinned before the first turn.
	Preload []string
	// PreloadReason returns why a skill is preloaded; nil records no reason.
	PreloadReason func(skill string) string
	// Namespace is the namespace of the agent, "" if there is no agent.
	Namespace store.Namespace
	// SkillID returns the store ID for counting the use of a skill, or "" if its
	// use is not counted. If SkillID is nil, nothing is counted.
	SkillID func(session.ID) string
	// Close releases the setup; nil does nothing.
	Close func() error
}

// ToolContext gives tools access to a conversation that is active on this node.
type ToolContext struct {
	ID      string
	Session *session.Session
	// Approvals is the queue for approval requests in the conversation. If the
	// node shuts down, the next one continues pending requests under the same
	// ID: see [agent.CallID].
	Approvals *approval.Queue
	User      policy.Principal
	// Folder is the directory with the files of the conversation. Changed files
	// are stored before the result of a call is.
	Folder *os.Root
}

// Options configures an engine. Setup and Principal are required.
type Options struct {
	// Setup opens the setup of a conversation. The setup must stay usable after
	// ctx is done, until its Close is called. An error ends the turn and is shown
	// to watchers.
	Setup func(ctx context.Context, r Request) (*Setup, error)
	// Principal returns the current rights of a user. A turn may start long
	// after it was requested, on another node.
	Principal func(ctx context.Context, user account.UserID) (account.Principal, error)
	// Token returns the current scopes of an API token. It fails with
	// [account.ErrInvalidCredentials] if the token was revoked or has expired;
	// turns that it started then end. Nil accepts all tokens.
	Token func(ctx context.Context, id string) (account.Scopes, error)
	// Bus notifies other nodes of changes; if nil, they only poll. The caller
	// closes it.
	Bus bus.Bus
	// Dir is the directory for the folders of active conversations; "" is the
	// system's temporary directory. A killed process leaves its folders behind,
	// so give each new process an empty directory.
	Dir string
	// Turns limits the turns that run at once on this node; 0 means 256. Further
	// turns wait. A free slot goes to the waiting users in rotation.
	Turns int
	// Lease is the time after which another node can continue a conversation
	// whose node does not renew its lease; 0 means 15 s.
	Lease time.Duration
	// Poll is the interval at which the engine checks for changes that the bus
	// did not announce; 0 means 1 s. It looks for conversations of crashed nodes
	// every five intervals, or every third of a lease if that is shorter.
	Poll time.Duration
	// ClientTimeout limits the time that a request to a client waits until a
	// client receives it; 0 means 5 s.
	ClientTimeout time.Duration
	// Drafts limits the drafts stored per user, and DraftBytes their total
	// package size; 0 means 50, and 64 MiB.
	Drafts, DraftBytes int64
	// Retention and Budget are passed to sessions: see [session.Options].
	Retention, Budget int
	// Trace starts tracing a turn and returns the context for the turn. Nil
	// traces nothing.
	Trace func(ctx context.Context, c Conversation, kind InputKind) (context.Context, Trace)
	// Logger logs failures of background work; nil discards them.
	Logger *slog.Logger
}

// Trace observes one turn on one node. Its methods are called one at a time and
// must not block.
type Trace interface {
	// Step reports a stored event of the transcript.
	Step(e *session.Event)
	// End reports why the turn ended. If err is not nil, the turn has not ended
	// but another node continues it.
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

// New starts the engine of a node. The engine also continues conversations of
// crashed nodes. Close it when done; the caller closes the database. New panics
// if a required option is missing.
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

// Close shuts the engine down. It accepts no new work and waits for running turns
// until ctx is done. It then cancels the remaining turns, and other nodes continue
// them. Close returns when all goroutines have finished.
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

// runEvery calls do at the interval d until the engine closes. Of consecutive
// failures, it logs only the first.
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

// userPrincipal returns the policy principal of a user.
func userPrincipal(u account.UserID) policy.Principal {
	return policy.Principal{ID: string(u), Kind: policy.UserPrincipal}
}
