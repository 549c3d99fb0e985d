package running

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

// Times of a publisher, where its options say nothing else.
const (
	DefaultPace  = time.Second
	DefaultEvery = 10 * time.Second
)

// Options are the choices for a [Publisher].
type Options struct {
	// Look says how it is now. It is called by one goroutine at a time.
	Look func() (client string, servers []Server)
	// Pace is the least time between two writings; 0 is [DefaultPace].
	Pace time.Duration
	// Every is the most time between two looks, for changes that nobody tells of,
	// as that of a latency; 0 is [DefaultEvery].
	Every  time.Duration
	Logger *slog.Logger // nil discards
}

// Publisher keeps the file of this process. It is safe for concurrent use.
type Publisher struct {
	o     Options
	path  string // without extension
	since time.Time
	last  []byte // what is in the file

	kick chan struct{}
	quit chan struct{}
	done sync.WaitGroup
	once sync.Once
}

// Publish begins to keep the file of this process in dir, until [Publisher.Close].
// There is one at a time for a directory. What cannot be written is logged once,
// and tried again at the next change.
func Publish(dir string, o Options) *Publisher {
	if o.Pace <= 0 {
		o.Pace = DefaultPace
	}
	if o.Every <= 0 {
		o.Every = DefaultEvery
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Publisher{o: o, path: filepath.Join(dir, strconv.Itoa(os.Getpid())), since: time.Now(),
		kick: make(chan struct{}, 1), quit: make(chan struct{})}
	p.done.Go(p.run)
	return p
}

// Changed says that something may have changed. It does not wait.
func (p *Publisher) Changed() {
	select {
	case p.kick <- struct{}{}:
	default: // one look is enough for all
	}
}

// Close removes the file, and waits until nothing is written any more.
func (p *Publisher) Close() {
	p.once.Do(func() { close(p.quit) })
	p.done.Wait()
}

func (p *Publisher) run() {
	defer os.Remove(p.path + ".json")
	every := time.NewTicker(p.o.Every)
	defer every.Stop()
	failed := false
	for {
		wrote, err := p.write()
		if err != nil && !failed {
			p.o.Logger.Warn("states of servers not published", "error", err)
		}
		if failed = err != nil; wrote || failed {
			select {
			case <-time.After(p.o.Pace):
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

// write puts the file in place, if it would say something new or is gone.
func (p *Publisher) write() (wrote bool, err error) {
	r := record{Version: 1, Machine: machine(), Process: Process{PID: os.Getpid(), Since: p.since}}
	r.Started, _ = started(r.PID)
	if r.Client, r.Servers = p.o.Look(); r.Servers == nil {
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

// replace writes a file that readers see whole or not at all.
func replace(tmp, path string, data []byte) error {
	os.Remove(tmp) // of a process that was killed, or a link that somebody made
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
