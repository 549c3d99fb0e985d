// Package running lets each long-running process of a person say how its MCP
// servers are, so that another one can show it: a [Publisher] keeps one file a
// process, and [List] reads those of the processes that live.
//
// The files hold names, states and errors, no configuration and no values. Those
// of other users, and a directory that others can write, say nothing.
package running

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/policy"
)

const (
	maxFile  = 4 << 20 // bytes of one file
	maxFiles = 1000    // that are looked at
	// keepElsewhere is how long a file stays that a process of another machine,
	// or container, wrote: whether it lives cannot be seen from here.
	keepElsewhere = 24 * time.Hour

	maxTools   = 1_000_000
	maxLatency = float64(24 * time.Hour / time.Millisecond)
)

// Process is one process, and its servers.
type Process struct {
	PID    int       `json:"pid"`
	Client string    `json:"client"` // that it serves, as it calls itself; "" where that is not known
	Since  time.Time `json:"since"`
	// Servers are in the order in which the process has them.
	Servers []Server `json:"servers"`
}

// Server is how one server of a process is.
type Server struct {
	Name      string    `json:"name"`
	Profile   string    `json:"profile,omitempty"` // that it is served for, at a path of its own
	Transport string    `json:"transport"`
	State     string    `json:"state"`
	Era       string    `json:"era"`
	Tools     int       `json:"tools"`
	Error     string    `json:"error"`
	LatencyMS float64   `json:"latency_ms"`
	Since     time.Time `json:"since,omitzero"` // it is in this state
}

// record is a file. Machine and Started tell a process from another one that has
// its number by now.
type record struct {
	Version int    `json:"version"`
	Machine string `json:"machine"`
	Started string `json:"started"`
	Process
}

// List returns the processes that live and have a file in dir, the oldest first;
// none where there is no dir. A file that cannot be read, or that is not this
// user's alone, is passed over, and that of a process that is gone is removed. A
// dir that others can write is refused with a [*policy.UnsafeError].
func List(dir string) ([]Process, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Process
	for _, e := range entries[:min(len(entries), maxFiles)] {
		base, ext, _ := strings.Cut(e.Name(), ".")
		pid, err := strconv.Atoi(base)
		if err != nil || pid <= 0 || ext != "json" && ext != "tmp" {
			continue
		}
		path := filepath.Join(dir, e.Name())
		r, err := read(path)
		if unsafe, is := errors.AsType[*policy.UnsafeError](err); is && unsafe.Path == filepath.Clean(dir) {
			return nil, err
		}
		if err != nil || r.PID != pid || ext == "tmp" { // torn, or not ours
			if _, lives := started(pid); !lives && old(path) {
				os.Remove(path)
			}
			continue
		}
		switch {
		case r.lives():
			all = append(all, r.Process)
		case r.Machine == machine() || old(path):
			os.Remove(path)
		}
	}
	slices.SortFunc(all, func(a, b Process) int {
		if c := a.Since.Compare(b.Since); c != 0 {
			return c
		}
		return a.PID - b.PID
	})
	return all, nil
}

// lives reports whether the process that wrote this is there still.
func (r *record) lives() bool {
	at, ok := started(r.PID)
	return ok && r.Machine == machine() && at == r.Started
}

// old reports whether a file was not written for so long that who wrote it is
// surely gone, or writes it again.
func old(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && time.Since(fi.ModTime()) > keepElsewhere
}

var errNotOurs = errors.New("not a file of a process")

// read reads a file, if it is a whole one of this user's own.
func read(path string) (*record, error) {
	data, err := policy.NewOwnFile(path, maxFile).Read()
	if err != nil {
		return nil, err
	}
	var r record
	if json.Unmarshal(data, &r) != nil || r.Version != 1 {
		return nil, errNotOurs
	}
	for i := range r.Servers {
		s := &r.Servers[i]
		s.Tools = min(max(s.Tools, 0), maxTools)
		s.LatencyMS = min(max(s.LatencyMS, 0), maxLatency)
	}
	return &r, nil
}
