// Package chat runs a hub's conversations on any of its nodes. Start reading at
// [Engine].
//
// A conversation consists of three streams in the database. Its inbox contains
// incoming messages and cancellations in order of arrival. Its transcript
// contains all messages, calls and results; package agent appends to it through
// package session. Its event stream is for watchers. It contains transcript
// steps, partial answers, approval requests, and the start and end of turns. A
// watcher can continue from any event number, on any node, without missing an
// event.
//
// One node at a time holds the lease of a conversation and processes its inbox in
// order. Each write checks the lease in the same transaction, so a node that lost
// its lease cannot change anything. If a node dies, its lease expires and another
// node continues. Events are not published twice. As in package agent, a tool
// call that started and has no result is not repeated.
//
// All state that another node needs is in the database. A bus notifies nodes of
// changes; nodes also poll the database, because the bus may lose notifications.
//
// Each method takes the calling principal and authorizes it with package account.
// Changes and denials are recorded in the audit log. If a principal may not see a
// conversation, the error is [store.ErrNotFound], as if it did not exist.
//
// The package never serves HTTP and does not depend on a model provider or a
// catalog: [Options.Setup] selects a conversation's skills, model and tools.
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
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// Limits per conversation.
const (
	MaxText   = 256 << 10 // maximum length of a message, in bytes
	MaxTitle  = 1024      // maximum length of a title, in bytes
	MaxKey    = store.MaxLabel
	MaxQueued = 100  // maximum number of waiting messages and commands
	maxNotes  = 1000 // maximum number of inputs in the inbox, including cancellations and answers
	maxTries  = 5    // maximum number of nodes that try the same turn
)

// Errors that a caller can handle, in addition to errors from packages store,
// account and approval.
var (
	// ErrClosed is returned if the node is shutting down. Another node can handle
	// the request.
	ErrClosed = errors.New("server is shutting down; try again")
	// ErrQueueFull is returned if the conversation has too many waiting inputs.
	ErrQueueFull = errors.New("too many queued messages in conversation; wait for the current turn to end, or cancel it")
	// ErrKeyUsed is returned if a different message was already sent with the
	// same key.
	ErrKeyUsed = errors.New("a different message was already sent with this key")
	// ErrInvalid is returned if an argument is invalid.
	ErrInvalid = errors.New("invalid input")
)

// Request identifies the conversation and the user for whom to open a [Setup].
type Request struct {
	Principal    account.Principal
	Conversation Conversation
}

// Setup holds the skills, model and tools of a conversation while this node
// processes an input. The package calls Close after processing the input.
type Setup struct {
	// Runtime provides the skills that the principal may use.
	Runtime *loadout.Runtime
	// Model answers. It may be asked for a title after Close.
	Model llm.Model
	// ReadsImages reports whether the model reads images. Otherwise it is told the
	// names of the images of messages instead.
	ReadsImages bool
	// Agent configures the agent, for example its instructions and the limits for
	// a turn. Its Tools precede those returned by the function Tools. The package
	// sets its Approvals and Folder.
	Agent agent.Options
	// Tools returns additional tools that use the conversation. It may be nil.
	Tools func(ctx context.Context, t *ToolContext) ([]agent.Tool, error)
	// SkillTools provides the tools of skills for this conversation. It may be
	// nil.
	SkillTools session.Tools
	// Preload names skills that are loaded and pinned before the first turn.
	Preload []string
	// PreloadReason returns why a skill is preloaded. If it is nil, no reason is
	// recorded.
	PreloadReason func(skill string) string
	// Namespace is the agent's namespace, or "" if there is no agent.
	Namespace store.Namespace
	// SkillID returns the store ID for counting the use of a skill, or "" if its
	// use is not counted. If SkillID is nil, nothing is counted.
	SkillID func(session.ID) string
	// Close releases the setup. It may be nil.
	Close func() error
}

// ToolContext gives tools access to a conversation that is active on this node.
type ToolContext struct {
	ID      string
	Session *session.Session
	// Approvals is the queue for approval requests in the conversation. If the
	// node shuts down, the next node continues pending requests under the same
	// ID; see [callid.From].
	Approvals *approval.Queue
	User      policy.Principal
	// OpenFolder returns the directory with the conversation's files, whose path
	// is FolderPath. The directory does not exist before the first call. Changed
	// files are stored before the result of a tool call.
	OpenFolder func(ctx context.Context) (*os.Root, error)
	FolderPath string
}

// Options configures an engine. Setup and Principal are required.
type Options struct {
	// Setup opens a conversation's setup. The setup must remain usable after ctx
	// is done, until its Close is called. An error ends the turn and is shown to
	// watchers.
	Setup func(ctx context.Context, r Request) (*Setup, error)
	// Principal returns a user's current permissions. A turn may start long after
	// it was requested, on another node.
	Principal func(ctx context.Context, user account.UserID) (account.Principal, error)
	// Token returns the current scopes of an API token. It fails with
	// [account.ErrInvalidCredentials] if the token was revoked or has expired;
	// turns started with the token then end. If Token is nil, all tokens are
	// accepted.
	Token func(ctx context.Context, id string) (account.Scopes, error)
	// Bus notifies other nodes of changes. If it is nil, they only poll. The
	// caller must close it.
	Bus bus.Bus
	// Dir is the directory for the folders of active conversations. "" means the
	// system's temporary directory. A killed process leaves its folders behind,
	// so give each new process an empty directory.
	Dir string
	// Turns is the maximum number of turns that run at once on this node; 0 means
	// 256. Further turns wait. Free slots go to the waiting users in rotation.
	Turns int
	// Lease is the time after which another node can continue a conversation
	// whose node does not renew its lease; 0 means 4 s. The node renews the
	// lease four times in this period, and stops its turn if renewing fails for
	// three quarters of the period. The engine looks for expired leases eight
	// times in this period, or every five polls if that is more often.
	Lease time.Duration
	// Poll is how often the engine checks for changes that the bus did not
	// announce; 0 means 1 s.
	Poll time.Duration
	// Node is the name under which the engine holds leases. It must be unique
	// among all processes, past and present; "" means a new one.
	Node string
	// Predecessor is the Node of a process that has certainly ended. The engine
	// makes its conversations available immediately. "" means none.
	Predecessor string
	// ClientTimeout is how long a request to a client waits for a client to
	// receive it; 0 means 5 s.
	ClientTimeout time.Duration
	// Drafts is the maximum number of drafts stored per user, and DraftBytes the
	// maximum total size of their packages; the defaults are 50 drafts and 64
	// MiB.
	Drafts, DraftBytes int64
	// Quotas limits what each user stores. The zero value has no limits.
	Quotas quota.Quotas
	// Sharing configures shares of conversations. If it is nil, conversations
	// cannot be shared.
	Sharing *Sharing
	// Titles configures titles of conversations. If it is nil, only users give titles.
	Titles *Titles
	// Retention, Budget and Updates are passed to sessions; see [session.Options].
	Retention, Budget int
	Updates           session.UpdateMode
	// Trace starts tracing a turn and returns the context for the turn. If it is
	// nil, turns are not traced.
	Trace func(ctx context.Context, c Conversation, kind InputKind) (context.Context, Trace)
	// Logger logs failures of background work; nil discards them.
	Logger *slog.Logger
}

// Trace observes a turn on a node. Its methods are not called concurrently and
// must not block.
type Trace interface {
	// Step reports a stored transcript event.
	Step(e *session.Event)
	// End reports why the turn ended. If err is not nil, the turn has not ended
	// but continues on another node.
	End(reason Reason, err error)
}

func (o Options) orDefaults() Options {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&o.Lease, 4*time.Second)
	set(&o.Poll, time.Second)
	set(&o.ClientTimeout, 5*time.Second)
	if o.Node == "" {
		o.Node = store.NewID()
	}
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

// maxSlots is the maximum number of conversations on a node that may wait for a
// turn.
const maxSlots = 1 << 16

// Engine runs conversations on one of a hub's nodes. It is safe for concurrent
// use.
type Engine struct {
	db       *store.DB
	opts     Options
	node     string
	notifier *notifier
	turns    *queue.Queue
	searches *queue.Queue

	ends       streamEnds
	rejections rejections
	snapshots  *snapshotCache
	storing    sync.Mutex    // held while a snapshot is stored
	titling    chan struct{} // holds a value for each request for a title

	ctx     context.Context // context of all background work; cancelled by stop
	stop    context.CancelCauseFunc
	running sync.WaitGroup

	mu        sync.Mutex
	draining  chan struct{} // closed once no new work is accepted
	workers   int
	liveTurns map[string]liveTurn // running turns by conversation ID
	idle      chan struct{}       // closed when draining and the last worker has finished
}

// errStopping is the cancellation cause of work cancelled by a shutdown.
var errStopping = errors.New("server is shutting down")

// New starts a node's engine, which also continues conversations of crashed
// nodes. Close the engine when done; the caller must close the database. New
// panics if a required option is missing.
func New(db *store.DB, o Options) *Engine {
	if o.Setup == nil || o.Principal == nil {
		panic("chat: Setup and Principal are required")
	}
	o = o.orDefaults()
	e := &Engine{db: db, opts: o, node: o.Node, draining: make(chan struct{}), idle: make(chan struct{}), liveTurns: map[string]liveTurn{}, snapshots: newSnapshotCache(maxSnapshotBytes), titling: make(chan struct{}, titlesAtOnce)}
	e.notifier = &notifier{db: db, bus: e.opts.Bus, listeners: map[string]map[*listener]bool{}}
	e.turns = queue.New(e.opts.Turns, maxSlots)
	e.searches = queue.New(maxSearches, maxSlots)
	e.ctx, e.stop = context.WithCancelCause(context.Background())
	e.running.Go(func() { e.runEvery(e.opts.Poll, e.notifier.poll) })
	e.running.Go(func() {
		e.reclaimLeases(e.ctx)
		e.runEvery(min(5*e.opts.Poll, e.opts.Lease/8), e.adoptExpired)
	})
	e.running.Go(func() { e.runEvery(5*e.opts.Poll, e.expireApprovals) })
	e.running.Go(func() {
		e.runEvery(5*e.opts.Poll, func(ctx context.Context) error { return e.db.MergeUsage(ctx, time.Now()) })
	})
	return e
}

// Close shuts the engine down. It accepts no new work and waits for running turns
// until ctx is done. It then cancels the remaining turns, which other nodes
// continue. Close returns when all goroutines have finished.
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

// isClosing reports whether the engine rejects new work.
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

// roundTimeout is the timeout of one round of background work. It is needed
// because a connection can hang without an error.
const roundTimeout = 5 * time.Second

// runEvery calls task at interval d until the engine closes. It logs only the
// first of consecutive failures.
func (e *Engine) runEvery(d time.Duration, task func(context.Context) error) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	failing := false
	for {
		ctx, stop := context.WithTimeout(e.ctx, max(d, roundTimeout))
		err := task(ctx)
		stop()
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

func userPrincipal(u account.UserID) policy.Principal {
	return policy.Principal{ID: string(u), Kind: policy.UserPrincipal}
}
