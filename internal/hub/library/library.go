// Package library keeps the skills of a hub: their versions, who reviewed them, who
// sees them, who refers to them, and where they came from.
//
// Every method that somebody asks for takes the principal who does, and decides by
// package account itself, so that no way into the hub can forget it. What a principal
// may not know of fails as what is not there. Each change writes a record of the audit
// log in the transaction of the change; a change that was denied writes one too.
//
// A [Library] holds nothing that another node has to know: what it remembers are files
// by their digest, and metadata of which the database says whether they are current. It
// runs no code of a skill, knows no HTTP, and connects to nothing but the places that
// skills are imported from.
package library

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/remote"
	"github.com/loadout-dev/loadout/skill"
)

// Options adjust a library. The zero value is ready to use.
type Options struct {
	// CacheDir is where files are kept that were read from the database; "" keeps
	// none. It belongs to the library alone, and is made where it is missing.
	CacheDir string
	// CacheBytes bounds the files in CacheDir together; default 1 GiB.
	CacheBytes int64
	// TempDir is where uploads and imports are kept while they are checked; default
	// [os.TempDir].
	TempDir string
	// Limits bound an uploaded archive and the files of an imported skill. Zero fields
	// are the defaults of package skill: 10 MiB packed, 512 files, 16 MiB unpacked. A
	// file has at most 16 MiB whatever is set, as the database keeps no larger one.
	Limits skill.Limits
	// AtOnce is how many packages are checked at the same time, by each of which some
	// 20 MiB are in memory, and how many places are looked at; others wait. Default 4.
	AtOnce int
	// ScanTime is how long a scan of one package may take; default 20 s. What it did
	// not get to is said in the findings.
	ScanTime time.Duration
	// Grace is how long files that no version names are kept, one hour at least;
	// default 24 hours.
	Grace time.Duration
	// Poll is how often [Library.Run] asks the database what has changed; default 2 s.
	Poll time.Duration
	// Tell, where set, is called after skills were changed here, to wake the other
	// nodes: there, [Library.Wake] is to be called. It must not block.
	Tell func()
	// Credential returns what a user has stored for a host that refused a request
	// without; nil where there is nothing. Default: nobody has anything.
	Credential func(ctx context.Context, user account.UserID, host string) (*remote.Credential, error)
	// Private reports whether skills may be imported from a host at an address that is
	// not of the public internet; default: from none.
	Private func(host string) bool
	// Git is the path of the git program; default: looked up in PATH.
	Git string
	// Unbind takes a skill out of what a kind, as a Ghost, says of itself; its
	// references are removed with it. Without it the references of kinds cannot be
	// removed from here.
	Unbind func(ctx context.Context, tx *store.Tx, k store.Kind, skillID, name string) error
}

// Library keeps the skills of a hub. It is safe for concurrent use.
type Library struct {
	db    *store.DB
	opts  Options
	files *fileCache
	shelf *shelves
	turns chan struct{} // one in it for each package that is being checked
	trips chan struct{} // one in it for each look at a place elsewhere
}

// The most that one work may take, whatever a caller waits for. The grace of files is
// longer.
const workTime = 30 * time.Minute

// New returns the library in a database, which stays the caller's. Of the database
// nothing is read yet. Close it when done.
func New(db *store.DB, o *Options) (*Library, error) {
	l := &Library{db: db}
	if o != nil {
		l.opts = *o
	}
	l.opts.setDefaults()
	if l.opts.Grace < time.Hour {
		return nil, fmt.Errorf("files that nothing names are kept for an hour at least, not %s", l.opts.Grace)
	}
	if l.opts.Limits.FileBytes > store.MaxValue {
		return nil, fmt.Errorf("a file has at most %d bytes, and the limit is %d", store.MaxValue, l.opts.Limits.FileBytes)
	}
	var err error
	if l.files, err = openFileCache(db.Blobs, l.opts.CacheDir, l.opts.CacheBytes); err != nil {
		return nil, err
	}
	l.shelf = newShelves(db)
	l.turns, l.trips = make(chan struct{}, l.opts.AtOnce), make(chan struct{}, l.opts.AtOnce)
	return l, nil
}

// Limits are those of what is uploaded.
func (l *Library) Limits() skill.Limits { return l.opts.Limits.OrDefaults() }

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
	if o.AtOnce <= 0 {
		o.AtOnce = 4
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
	if o.Tell == nil {
		o.Tell = func() {}
	}
	if o.Credential == nil {
		o.Credential = func(context.Context, account.UserID, string) (*remote.Credential, error) { return nil, nil }
	}
	if o.Private == nil {
		o.Private = func(string) bool { return false }
	}
}

// Close lets go of the directory of files.
func (l *Library) Close() error { return l.files.close() }

// Run keeps up with what other nodes change, and wakes the sources that are watched,
// until ctx ends; then it returns nil. A database that is away for a while is asked
// again.
func (l *Library) Run(ctx context.Context) error {
	tick := time.NewTicker(l.opts.Poll)
	defer tick.Stop()
	for {
		// Who reads next sees the error, or reads what was missed.
		_ = l.shelf.refresh(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-l.shelf.wake:
		case <-tick.C:
		}
	}
}

// Wake has [Library.Run] look at once what has changed. It does not block.
func (l *Library) Wake() {
	select {
	case l.shelf.wake <- struct{}{}:
	default:
	}
}

// changed tells others that skills were changed here.
func (l *Library) changed() {
	l.Wake()
	l.opts.Tell()
}

// turn waits for one of the turns to check a package, or to look elsewhere, and returns
// what ends it.
func turn(ctx context.Context, turns chan struct{}) (func(), error) {
	select {
	case turns <- struct{}{}:
		return func() { <-turns }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for others' packages: %w", context.Cause(ctx))
	}
}

// work bounds the time of something that adds files.
func work(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, workTime, errWorkTime)
}

var errWorkTime = errors.New("it took longer than half an hour")
