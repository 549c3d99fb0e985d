package remote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// gitObjects reads the objects of a fetched repository through a git process.
// The process starts on demand and stops when it is idle. gitObjects reads
// objects into memory one at a time and caches the last few. It is safe for
// concurrent use.
type gitObjects struct {
	session   *gitSession
	maxObject int64 // maximum size of an object

	mu     sync.Mutex  // guards the fields below; held while an object is read
	err    error       // if set, all later reads fail with it
	cmd    *gitProcess // nil if none is running
	cancel context.CancelFunc
	in     io.WriteCloser
	out    *bufio.Reader
	idle   *time.Timer // stops the process when it fires
	cache  objectCache
}

// objectsIdle is the idle time after which the process stops. A collection may
// stay open while the user decides what to install.
const objectsIdle = 30 * time.Second

func newGitObjects(g *gitSession) *gitObjects {
	limits := g.client.opts.Limits.Skill
	return &gitObjects{session: g, maxObject: max(limits.FileBytes, limits.UnpackedBytes, 16<<20)}
}

var errClosed = errors.New("collection already closed")

// open returns the content of an object, which must have the given size.
func (o *gitObjects) open(id string, size int64) (io.ReadCloser, error) {
	if size > o.maxObject {
		return nil, fmt.Errorf("object too large (%d bytes, limit %d)", size, o.maxObject)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return nil, o.err
	}
	if content, ok := o.cache.content[id]; ok && int64(len(content)) == size {
		return io.NopCloser(bytes.NewReader(content)), nil
	}
	if o.cmd == nil {
		if o.err = o.start(); o.err != nil {
			return nil, o.err
		}
	}
	content, err := o.read(id, size)
	if err != nil {
		// The unread data in the pipe could be mistaken for the next response.
		o.err = fmt.Errorf("git cat-file: %w", err)
		o.stop()
		return nil, o.err
	}
	o.idle.Reset(objectsIdle)
	o.cache.add(id, content)
	return io.NopCloser(bytes.NewReader(content)), nil
}

func (o *gitObjects) start() error {
	// The process outlives this call to open.
	ctx, cancel := context.WithCancel(context.Background())
	cmd := o.session.command(ctx, gitCommand{args: []string{"cat-file", "--batch"}})
	in, err := cmd.StdinPipe()
	if err != nil {
		cancel()
		return err
	}
	out, err := cmd.StdoutPipe()
	var p *gitProcess
	if err == nil {
		p, err = startGit(cmd, o.session.memory)
	}
	if err != nil {
		cancel()
		return fmt.Errorf("git cat-file: %w", err)
	}
	o.idle = time.AfterFunc(objectsIdle, o.stopIdle)
	o.cmd, o.cancel, o.in, o.out = p, cancel, in, bufio.NewReaderSize(out, 64<<10)
	return nil
}

// read reads an object. The response is "ID blob SIZE\n", the content, and
// "\n".
func (o *gitObjects) read(id string, size int64) ([]byte, error) {
	if _, err := io.WriteString(o.in, id+"\n"); err != nil {
		return nil, err
	}
	line, err := o.out.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if want := fmt.Sprintf("%s blob %d\n", id, size); string(line) != want {
		return nil, fmt.Errorf("unexpected response %.200q, want %q", line, want)
	}
	content := make([]byte, size+1)
	if _, err := io.ReadFull(o.out, content); err != nil {
		return nil, err
	}
	if content[size] != '\n' {
		return nil, errors.New("object does not end with a line feed")
	}
	return content[:size], nil
}

// stop stops the process. The caller must hold mu.
func (o *gitObjects) stop() {
	if o.cmd == nil {
		return
	}
	o.idle.Stop()
	o.in.Close()
	o.cancel()
	_ = o.cmd.Wait() // it was killed
	o.cmd = nil
}

// stopIdle stops the idle process. The next read starts a new one.
func (o *gitObjects) stopIdle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stop()
}

// close stops the process. Objects that are already open stay readable.
func (o *gitObjects) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stop()
	o.err, o.cache = errClosed, objectCache{}
}

const (
	maxCache      = 2 << 20 // total size of cached objects, in bytes
	cacheOverhead = 128     // overhead of a cached object, in bytes
)

// objectCache caches the most recently read objects, because hashing, parsing
// and scanning a skill each read all of its files.
type objectCache struct {
	content map[string][]byte // content by object name; never modified
	names   []string          // object names in the order of insertion
	bytes   int
}

// add caches an object and evicts the oldest objects. It ignores an object that
// would evict almost all others.
func (l *objectCache) add(id string, content []byte) {
	cost := len(content) + cacheOverhead
	if _, ok := l.content[id]; ok || cost > maxCache/2 {
		return
	}
	for l.bytes+cost > maxCache {
		l.bytes -= len(l.content[l.names[0]]) + cacheOverhead
		delete(l.content, l.names[0])
		l.names = l.names[1:]
	}
	if l.content == nil {
		l.content = map[string][]byte{}
	}
	l.content[id], l.names = content, append(l.names, id)
	l.bytes += cost
}
