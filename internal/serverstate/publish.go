package serverstate

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// Default intervals of a publisher.
const (
	DefaultMinInterval = time.Second
	DefaultMaxInterval = 10 * time.Second
)

// Options configures a [Publisher].
type Options struct {
	// Snapshot returns the current state of the servers. It is never called
	// concurrently.
	Snapshot func() (client string, servers []Server)
	// MinInterval is the minimum time between writes. Zero means
	// [DefaultMinInterval].
	MinInterval time.Duration
	// MaxInterval is the maximum time between snapshots. They detect changes
	// that are not reported, such as latencies. Zero means
	// [DefaultMaxInterval].
	MaxInterval time.Duration
	// Callers holds the PIDs of the processes that started this one, from its
	// parent to the client. It is empty if no client started this process.
	Callers []int
	Logger  *slog.Logger // nil discards messages
}

// Publisher keeps the state file of this process up to date. It is safe for
// concurrent use.
type Publisher struct {
	o     Options
	path  string // path of the file without its extension
	since time.Time
	last  []byte // last content of the file

	kick chan struct{}
	quit chan struct{}
	done sync.WaitGroup
	once sync.Once
}

// Publish writes this process's state file to dir and updates it until
// [Publisher.Close] is called. A process must use only one publisher per
// directory. The publisher logs only the first of several write errors in a
// row, and tries again on the next change.
func Publish(dir string, o Options) *Publisher {
	if o.MinInterval <= 0 {
		o.MinInterval = DefaultMinInterval
	}
	if o.MaxInterval <= 0 {
		o.MaxInterval = DefaultMaxInterval
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Publisher{o: o, path: filepath.Join(dir, strconv.Itoa(os.Getpid())), since: time.Now(),
		kick: make(chan struct{}, 1), quit: make(chan struct{})}
	p.done.Go(p.run)
	return p
}

// Update notifies the publisher that the state may have changed. It does not
// block.
func (p *Publisher) Update() {
	select {
	case p.kick <- struct{}{}:
	default: // a pending snapshot covers this change
	}
}

// Close waits for pending writes to finish and deletes the file.
func (p *Publisher) Close() {
	p.once.Do(func() { close(p.quit) })
	p.done.Wait()
}

func (p *Publisher) run() {
	defer os.Remove(p.path + ".json")
	every := time.NewTicker(p.o.MaxInterval)
	defer every.Stop()
	failed := false
	for {
		wrote, err := p.write()
		if err != nil && !failed {
			p.o.Logger.Warn("could not publish server states", "error", err)
		}
		if failed = err != nil; wrote || failed {
			select {
			case <-time.After(p.o.MinInterval):
			case <-p.quit:
				return
			}
		}
		select {
		case <-p.kick:
		case <-every.C:
		case <-p.quit:
			return
		}
	}
}

// write writes the file if its content changed or the file was deleted.
func (p *Publisher) write() (wrote bool, err error) {
	r := record{Version: 1, Machine: machineID(), Process: Process{PID: os.Getpid(), Since: p.since}}
	r.Started, _ = startTime(r.PID)
	for i, pid := range p.o.Callers {
		c := caller{PID: pid}
		c.Started, _ = startTime(pid)
		r.Callers = append(r.Callers, c)
		if i == 0 { // for older programs, which do not know Callers
			r.Parent, r.ParentStarted = c.PID, c.Started
		}
	}
	if r.Client, r.Servers = p.o.Snapshot(); r.Servers == nil {
		r.Servers = []Server{}
	}
	data, err := json.Marshal(r)
	if err != nil {
		return false, err
	}
	if _, err := os.Lstat(p.path + ".json"); err == nil && bytes.Equal(data, p.last) {
		return false, nil
	}
	dir := filepath.Dir(p.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	if err := replace(p.path+".tmp", p.path+".json", data); err != nil {
		return false, err
	}
	p.last = data
	return true, nil
}

// replace writes a file atomically using a temporary file.
func replace(tmp, path string, data []byte) error {
	os.Remove(tmp) // may be left over from a killed process, or be a symlink
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		os.Remove(tmp)
	}
	return err
}
