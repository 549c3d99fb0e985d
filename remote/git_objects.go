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

// gitObjects reads the objects of a fetched repository by one process, which is
// started when one is wanted and ends where none is for a while. It is safe for
// concurrent use: one object is read at a time, whole, into memory. A few of the last
// are kept there.
type gitObjects struct {
	trip *gitTrip
	most int64 // bytes of an object

	mu     sync.Mutex  // guards what follows, and is held while an object is read
	err    error       // why nothing more is read
	cmd    *gitProcess // nil where none runs
	cancel context.CancelFunc
	in     io.WriteCloser
	out    *bufio.Reader
	idle   *time.Timer // ends the process
	last   lastObjects
}

// objectsIdle is how long the process runs while nothing is read: an offer may be
// open for as long as a person thinks.
const objectsIdle = 30 * time.Second

func newGitObjects(g *gitTrip) *gitObjects {
	limits := g.client.opts.Limits.Skill
	return &gitObjects{trip: g, most: max(limits.FileBytes, limits.UnpackedBytes, 16<<20)}
}

var errClosed = errors.New("the offer is closed")

// open returns the content of an object that has size bytes.
func (o *gitObjects) open(id string, size int64) (io.ReadCloser, error) {
	if size > o.most {
		return nil, fmt.Errorf("it has %d bytes, more than %d", size, o.most)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return nil, o.err
	}
	if content, ok := o.last.content[id]; ok && int64(len(content)) == size {
		return io.NopCloser(bytes.NewReader(content)), nil
	}
	if o.cmd == nil {
		if o.err = o.start(); o.err != nil {
			return nil, o.err
		}
	}
	content, err := o.read(id, size)
	if err != nil {
		// What is left in the pipe cannot be told from the next answer.
		o.err = fmt.Errorf("git cat-file: %w", err)
		o.end()
		return nil, o.err
	}
	o.idle.Reset(objectsIdle)
	o.last.keep(id, content)
	return io.NopCloser(bytes.NewReader(content)), nil
}

func (o *gitObjects) start() error {
	// The process lives as long as the offer, and so longer than the look.
	ctx, cancel := context.WithCancel(context.Background())
	cmd := o.trip.command(ctx, gitRun{args: []string{"cat-file", "--batch"}})
	in, err := cmd.StdinPipe()
	if err != nil {
		cancel()
		return err
	}
	out, err := cmd.StdoutPipe()
	var p *gitProcess
	if err == nil {
		p, err = startGit(cmd, o.trip.memory)
	}
	if err != nil {
		cancel()
		return fmt.Errorf("git cat-file: %w", err)
	}
	o.idle = time.AfterFunc(objectsIdle, o.rest)
	o.cmd, o.cancel, o.in, o.out = p, cancel, in, bufio.NewReaderSize(out, 64<<10)
	return nil
}

// read asks for one object. The answer is "ID blob SIZE\n", the content, "\n".
func (o *gitObjects) read(id string, size int64) ([]byte, error) {
	if _, err := io.WriteString(o.in, id+"\n"); err != nil {
		return nil, err
	}
	line, err := o.out.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if want := fmt.Sprintf("%s blob %d\n", id, size); string(line) != want {
		return nil, fmt.Errorf("it answers %.200q, not %q", line, want)
	}
	content := make([]byte, size+1)
	if _, err := io.ReadFull(o.out, content); err != nil {
		return nil, err
	}
	if content[size] != '\n' {
		return nil, errors.New("an object does not end where it should")
	}
	return content[:size], nil
}

// end ends the process. mu is held.
func (o *gitObjects) end() {
	if o.cmd == nil {
		return
	}
	o.idle.Stop()
	o.in.Close()
	o.cancel()
	_ = o.cmd.Wait() // it was killed
	o.cmd = nil
}

// rest ends the process until an object is wanted again.
func (o *gitObjects) rest() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end()
}

// close ends reading; what is open already can be read to its end.
func (o *gitObjects) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end()
	o.err, o.last = errClosed, lastObjects{}
}

const (
	maxLast  = 2 << 20 // bytes of the objects that are kept
	lastCost = 128     // of these, what an object costs beside its content
)

// lastObjects are the objects that were read last. A skill is hashed, parsed and
// scanned, each of which reads its files from the first to the last.
type lastObjects struct {
	content map[string][]byte // by name; nobody changes it
	names   []string          // in the order in which they came
	bytes   int
}

// keep keeps one more, in the place of the oldest. One that would leave hardly any
// other is not kept.
func (l *lastObjects) keep(id string, content []byte) {
	cost := len(content) + lastCost
	if _, ok := l.content[id]; ok || cost > maxLast/2 {
		return
	}
	for l.bytes+cost > maxLast {
		l.bytes -= len(l.content[l.names[0]]) + lastCost
		delete(l.content, l.names[0])
		l.names = l.names[1:]
	}
	if l.content == nil {
		l.content = map[string][]byte{}
	}
	l.content[id], l.names = content, append(l.names, id)
	l.bytes += cost
}
