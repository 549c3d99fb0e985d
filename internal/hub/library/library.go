// Package library manages the skills of a hub: versions, reviews, visibility,
// references and sources. Start reading at [Library] and [Library.Upload].
//
// Each method for users takes the calling principal and authorizes it with
// package account. Items that a principal may not see are reported as not
// found. Each change writes an audit record in its transaction; a refused
// change writes one too.
//
// A [Library] has no state that other nodes need. It caches files by digest,
// and metadata whose validity the database tracks. It never runs code of skills,
// serves HTTP, or connects to anything but the sources of imported skills.
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

// Options configures a library. The zero value is ready to use.
type Options struct {
	// CacheDir is the directory of the file cache; "" disables it. No other
	// program may use it. It is created if missing.
	CacheDir string
	// CacheBytes limits the size of the cache; default 1 GiB.
	CacheBytes int64
	// TempDir holds uploads and imports while they are checked; default
	// [os.TempDir].
	TempDir string
	// Limits limit uploaded archives and the files of imported skills. Zero
	// fields are the defaults of package skill: 10 MiB packed, 512 files, 16
	// MiB unpacked. A file never exceeds 16 MiB, the limit of the database.
	Limits skill.Limits
	// MaxConcurrent limits the packages checked and the sources opened at the same
	// time; further ones wait. Each package takes about 20 MiB of memory.
	// Default 4.
	MaxConcurrent int
	// ScanTime limits the scan of one package; default 20 s. The findings say
	// if the scan is incomplete.
	ScanTime time.Duration
	// Grace is how long files that no version names are stored, at least one
	// hour; default 24 hours.
	Grace time.Duration
	// Poll is how often [Library.Run] polls the database for changes; default 2
	// s.
	Poll time.Duration
	// Notify, if set, is called after changes to skills, so that other nodes can
	// call [Library.TriggerRefresh]. It must not block.
	Notify func()
	// Credential returns the stored credential of a user for a host that
	// requires one; nil if there is none. Default: none.
	Credential func(ctx context.Context, user account.UserID, host string) (*remote.Credential, error)
	// Private reports whether skills may be imported from a host with a
	// non-public address; default: no host.
	Private func(host string) bool
	// Git is the path of the git program; default: found in PATH.
	Git string
	// Unbind removes a skill from a resource such as a Ghost, together with its
	// references. If nil, references of resources cannot be removed here.
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

// maxOperationTime limits one operation, even if its caller waits longer. It is shorter
// than Grace.
const maxOperationTime = 30 * time.Minute

// New returns a library on a database. It does not read the database, and the
// caller closes it. Close the library when done.
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

// Run polls for changes of other nodes and notifies watched sources until ctx
// ends. It then returns nil. It retries after database errors.
func (l *Library) Run(ctx context.Context) error {
	tick := time.NewTicker(l.opts.Poll)
	defer tick.Stop()
	for {
		// The next reader sees the error or reads the missed changes.
		_ = l.index.refresh(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-l.index.wake:
		case <-tick.C:
		}
	}
}

// TriggerRefresh makes [Library.Run] check for changes at once. It does not
// block.
func (l *Library) TriggerRefresh() {
	select {
	case l.index.wake <- struct{}{}:
	default:
	}
}

// NotifyChanged notifies this node and the others of changed skills.
func (l *Library) NotifyChanged() {
	l.TriggerRefresh()
	l.opts.Notify()
}

// acquireSlot waits for a free slot and returns the function that releases it.
func acquireSlot(ctx context.Context, turns chan struct{}) (func(), error) {
	select {
	case turns <- struct{}{}:
		return func() { <-turns }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for other packages: %w", context.Cause(ctx))
	}
}

// withTimeLimit returns a context that ends after maxOperationTime.
func withTimeLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, maxOperationTime, errOperationTime)
}

var errOperationTime = fmt.Errorf("operation took longer than %s", maxOperationTime)
