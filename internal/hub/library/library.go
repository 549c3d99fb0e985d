// Package library manages the skills of a hub: versions, reviews, visibility,
// references and sources. Start reading at [Library] and [Library.Upload].
//
// Each method for users takes the calling principal and authorizes it with
// package account. Items that a principal may not see are reported as not
// found. A change and its audit record are stored in one transaction; denials are
// recorded, too.
//
// All state that other nodes need is in the database. A [Library] caches files by
// digest, and metadata by revision. It never runs code of skills, never serves
// HTTP, and connects only to the sources of imported skills.
package library

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// Options configures a [Library]. The zero value selects the defaults.
type Options struct {
	// CacheDir is the directory of the file cache; "" disables the cache. New
	// creates the directory. No other program may use it.
	CacheDir string
	// CacheBytes limits the size of the cache; 0 means 1 GiB.
	CacheBytes int64
	// TempDir is the directory for uploads and imports while they are checked;
	// "" means [os.TempDir].
	TempDir string
	// Limits limits uploaded archives and the files of imported skills. A zero
	// field means the default of package skill: 10 MiB packed, 512 files, 16 MiB
	// unpacked. The database limits files to 16 MiB.
	Limits skill.Limits
	// MaxConcurrent limits how many packages are checked, and how many sources
	// are open, at the same time; others wait. A package takes about 20 MiB of
	// memory. 0 means 4.
	MaxConcurrent int
	// ScanTime limits the scan of a package; 0 means 20 s. After that, the scan
	// is marked as incomplete.
	ScanTime time.Duration
	// Grace is the time for which files are kept that no version refers to. It
	// is at least one hour; 0 means 24 hours.
	Grace time.Duration
	// Poll is the interval at which [Library.Run] checks the database for
	// changes; 0 means 2 s.
	Poll time.Duration
	// Notify is called after skills have changed, so that other nodes can call
	// [Library.TriggerRefresh]; nil does nothing. It must not block.
	Notify func()
	// Credential returns the stored credential of a user for a host that
	// requires one, or nil if there is none. If Credential is nil, there are no
	// credentials.
	Credential func(ctx context.Context, user account.UserID, host string) (*remote.Credential, error)
	// Private reports whether skills may be imported from a host with a
	// non-public address. If it is nil, no such host is permitted.
	Private func(host string) bool
	// Git is the path of the git program; "" means git in PATH.
	Git string
	// Unbind removes a skill from a resource such as a Ghost, including the
	// references. If it is nil, references of resources cannot be removed.
	Unbind func(ctx context.Context, tx *store.Tx, k store.Kind, skillID, name string) error
}

// Library manages the skills of a hub. It is safe for concurrent use.
type Library struct {
	db           *store.DB
	opts         Options
	files        *fileCache
	index        *skillIndex
	packageSlots chan struct{} // one element for each package being checked
	sourceSlots  chan struct{} // one element for each open source
}

// maxOperationTime limits an operation, even if its caller would wait longer. It
// must be shorter than [Options.Grace].
const maxOperationTime = 30 * time.Minute

// New returns a library that stores skills in db. It does not access db, and the
// caller closes db. Close the library when done.
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
	return l, nil
}

// Limits returns the limits of uploads.
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
		// After an error, the next reader gets it or reads the missed changes.
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
func acquireSlot(ctx context.Context, turns chan struct{}) (func(), error) {
	select {
	case turns <- struct{}{}:
		return func() { <-turns }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for other packages: %w", context.Cause(ctx))
	}
}

// withTimeLimit returns a context with a timeout of maxOperationTime.
func withTimeLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, maxOperationTime, errOperationTime)
}

var errOperationTime = fmt.Errorf("operation took longer than %s", maxOperationTime)
