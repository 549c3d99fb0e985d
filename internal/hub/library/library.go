// Package library manages the skills of a hub: versions, reviews, visibility,
// references and sources. Start reading at [Library] and [Library.Upload].
//
// Each method for users takes the calling principal and authorizes it with
// package account. Items that a principal is not allowed to see are reported as
// not found. A change and its audit record are stored in one transaction.
// Denials are also recorded.
//
// All state that other nodes need is in the database. A [Library] caches files by
// digest, and metadata by revision. It never runs skill code, never serves HTTP,
// and connects only to the sources of imported skills.
package library

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// Options configures a [Library]. The zero value selects the defaults.
type Options struct {
	// CacheDir is the directory of the file cache; "" disables the cache. New
	// creates the directory. Other programs must not use it.
	CacheDir string
	// CacheBytes is the maximum size of the cache; 0 means 1 GiB.
	CacheBytes int64
	// TempDir is the directory for uploads and imports while they are checked;
	// "" means [os.TempDir].
	TempDir string
	// Limits applies to uploaded archives and to the files of imported skills. A
	// zero field means the default of package skill: 10 MiB packed, 512 files, 16
	// MiB unpacked. The database limits each file to 16 MiB.
	Limits skill.Limits
	// MaxConcurrent is the maximum number of packages that are checked at the
	// same time. It also limits, separately, the number of sources that are
	// open at the same time. Further calls wait. A package takes about 20 MiB
	// of memory. 0 means 4.
	MaxConcurrent int
	// ScanTime is the timeout for scanning a package; 0 means 20 s. A scan that
	// times out is marked as incomplete.
	ScanTime time.Duration
	// Grace is how long unreferenced files are kept. The minimum is one hour; 0
	// means 24 hours.
	Grace time.Duration
	// Poll is the interval at which [Library.Run] checks the database for
	// changes; 0 means 2 s.
	Poll time.Duration
	// Notify is called after skills have changed, so that other nodes can call
	// [Library.TriggerRefresh]. It must not block. It may be nil.
	Notify func()
	// Credential returns a user's stored credential for a host, or nil if there
	// is none. If Credential is nil, no credentials are used.
	Credential func(ctx context.Context, user account.UserID, host string) (*remote.Credential, error)
	// Private reports whether skills may be imported from a host with a
	// non-public address. If it is nil, all such hosts are refused.
	Private func(host string) bool
	// ImportFrom lists what users may import from besides public addresses: absolute
	// paths of directories on this machine, and ssh hosts as ssh://HOST. The hub reads
	// them with its own rights and keys.
	ImportFrom []string
	// Git is the path of the git program; "" means git in PATH.
	Git string
	// Quotas limits what each namespace stores. The zero value has no limits.
	Quotas quota.Quotas
	// Unbind removes a skill from a resource such as a Ghost, and deletes the
	// references. If it is nil, references from resources cannot be removed.
	Unbind func(ctx context.Context, tx *store.Tx, k store.Kind, skillID, name string) error
}

// Library manages the skills of a hub. It is safe for concurrent use.
type Library struct {
	db           *store.DB
	opts         Options
	files        *fileCache
	trees        treeCache
	index        *skillIndex
	packageSlots chan struct{}    // one element for each package being checked
	sourceSlots  chan struct{}    // one element for each open source
	sourceChecks *account.Limiter // checks that users start, by skill
}

// maxOperationTime is the maximum duration of an operation, even if its caller
// would wait longer. It must be shorter than [Options.Grace].
const maxOperationTime = 30 * time.Minute

// New returns a library that stores skills in db. New does not access db, and the
// caller remains responsible for closing db. The caller must close the library.
func New(db *store.DB, o *Options) (*Library, error) {
	l := &Library{db: db}
	if o != nil {
		l.opts = *o
	}
	l.opts.setDefaults()
	if l.opts.Grace < time.Hour {
		return nil, fmt.Errorf("grace period too short (%s, minimum 1h)", l.opts.Grace)
	}
	if l.opts.Limits.FileBytes > store.MaxValue {
		return nil, fmt.Errorf("file size limit too large (%d bytes, maximum %d)", l.opts.Limits.FileBytes, store.MaxValue)
	}
	var err error
	if l.files, err = openFileCache(db.Blobs, l.opts.CacheDir, l.opts.CacheBytes); err != nil {
		return nil, err
	}
	l.index = newSkillIndex(db)
	l.packageSlots, l.sourceSlots = make(chan struct{}, l.opts.MaxConcurrent), make(chan struct{}, l.opts.MaxConcurrent)
	l.sourceChecks = account.NewLimiter(sourceCheckPause, 1, maxCheckedSkills)
	return l, nil
}

// Limits returns the upload limits.
func (l *Library) Limits() skill.Limits { return l.opts.Limits.WithDefaults() }

func (o *Options) setDefaults() {
	if o.CacheBytes == 0 {
		o.CacheBytes = 1 << 30
	}
	if o.TempDir == "" {
		o.TempDir = os.TempDir()
	}
	if o.Limits.PackedBytes == 0 {
		o.Limits.PackedBytes = 10 << 20
	}
	if o.MaxConcurrent <= 0 {
		o.MaxConcurrent = 4
	}
	if o.ScanTime == 0 {
		o.ScanTime = 20 * time.Second
	}
	if o.Grace == 0 {
		o.Grace = 24 * time.Hour
	}
	if o.Poll <= 0 {
		o.Poll = 2 * time.Second
	}
	if o.Notify == nil {
		o.Notify = func() {}
	}
	if o.Credential == nil {
		o.Credential = func(context.Context, account.UserID, string) (*remote.Credential, error) { return nil, nil }
	}
	if o.Private == nil {
		o.Private = func(string) bool { return false }
	}
}

// Close closes the file cache.
func (l *Library) Close() error { return l.files.close() }

// Run notifies watched sources of changes, including changes by other nodes. When
// ctx is done, it returns nil. It continues after database errors.
func (l *Library) Run(ctx context.Context) error {
	tick := time.NewTicker(l.opts.Poll)
	defer tick.Stop()
	for {
		// After an error, the next refresh or read gets the missed changes.
		_ = l.index.refresh(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-l.index.wake:
		case <-tick.C:
		}
	}
}

// TriggerRefresh makes [Library.Run] check for changes immediately. It does not
// block.
func (l *Library) TriggerRefresh() {
	select {
	case l.index.wake <- struct{}{}:
	default:
	}
}

// NotifyChanged notifies this node and other nodes that skills have changed.
func (l *Library) NotifyChanged() {
	l.TriggerRefresh()
	l.opts.Notify()
}

// acquireSlot waits for a free slot. It returns a function that releases the slot.
func acquireSlot(ctx context.Context, slots chan struct{}) (func(), error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for other package operations: %w", context.Cause(ctx))
	}
}

// withTimeLimit returns a context with a timeout of maxOperationTime.
func withTimeLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, maxOperationTime, errOperationTime)
}

// afterCommit returns a context for reading what an operation has stored. It is not
// cancelled with ctx, so that an operation that is cancelled after its commit does not
// report that it failed.
func afterCommit(ctx context.Context) (context.Context, context.CancelFunc) {
	return withTimeLimit(context.WithoutCancel(ctx))
}

var errOperationTime = fmt.Errorf("operation timed out after %s", maxOperationTime)
