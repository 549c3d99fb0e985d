// Package serverstate shares the state of MCP servers between a user's
// processes. A [Publisher] maintains a file for its process, and [List] reads
// the files of all running processes.
//
// The files contain names, states and errors, but no configuration and no
// secrets. Files of other users are ignored, and a directory that other users
// can write to is rejected.
package serverstate

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

	"github.com/loadout-dev/loadout/internal/privatefile"
)

const (
	maxFile  = 4 << 20 // maximum size of a file in bytes
	maxFiles = 1000    // maximum number of files to read
	// foreignTTL is how long List keeps a file from another machine or
	// container, whose process it cannot check.
	foreignTTL = 24 * time.Hour

	maxTools   = 1_000_000
	maxLatency = float64(24 * time.Hour / time.Millisecond)
)

// Process describes a running process and its servers.
type Process struct {
	PID    int       `json:"pid"`
	Client string    `json:"client"` // name of the MCP client connected to the process; "" if unknown
	Since  time.Time `json:"since"`
	// Servers lists the servers in the order given by the process.
	Servers []Server `json:"servers"`
	// Callers holds the PIDs of the processes that started this one and are still
	// running, if the publisher recorded them.
	Callers []int `json:"-"`
}

// Server describes the state of one of a process's servers.
type Server struct {
	Name      string    `json:"name"`
	Profile   string    `json:"profile,omitempty"` // profile through which the server is served, or ""
	Transport string    `json:"transport"`
	State     string    `json:"state"`
	Era       string    `json:"era"`
	Tools     int       `json:"tools"`
	Error     string    `json:"error"`
	LatencyMS float64   `json:"latency_ms"`
	Since     time.Time `json:"since,omitzero"` // time of the last state change
}

// record is the content of a state file. Machine and Started distinguish the
// process from a later one with the same PID.
type record struct {
	Version int    `json:"version"`
	Machine string `json:"machine"`
	Started string `json:"started"`
	// Parent and ParentStarted identify the first of Callers; 0 if none is known.
	// Files of older programs have no Callers.
	Parent        int      `json:"parent,omitempty"`
	ParentStarted string   `json:"parent_started,omitempty"`
	Callers       []caller `json:"callers,omitempty"`
	Process
}

// caller is an ancestor of the process that wrote the record.
type caller struct {
	PID     int    `json:"pid"`
	Started string `json:"started"`
}

// runningCallers returns the callers that are still running.
func (r *record) runningCallers() []int {
	all := r.Callers
	if len(all) == 0 {
		all = []caller{{r.Parent, r.ParentStarted}}
	}
	var out []int
	for _, c := range all {
		if c.PID <= 0 {
			continue
		}
		if at, ok := startTime(c.PID); ok && at == c.Started {
			out = append(out, c.PID)
		}
	}
	return out
}

// List returns the running processes with a file in dir, oldest first. If dir
// does not exist, there are none. List ignores files that cannot be read or
// that other users can change, and deletes the files of processes that have
// exited. If other users can write to dir, it returns a
// [*privatefile.UnsafeError].
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
		r, err := readRecord(path)
		if unsafe, is := errors.AsType[*privatefile.UnsafeError](err); is && unsafe.Path == filepath.Clean(dir) {
			return nil, err
		}
		if err != nil || r.PID != pid || ext == "tmp" { // the file is incomplete or from another machine
			if _, lives := startTime(pid); !lives && isStale(path) {
				os.Remove(path)
			}
			continue
		}
		switch {
		case r.isAlive():
			r.Process.Callers = r.runningCallers()
			all = append(all, r.Process)
		case r.Machine == machineID() || isStale(path):
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

// isAlive reports whether the process that wrote the record is running.
func (r *record) isAlive() bool {
	at, ok := startTime(r.PID)
	return ok && r.Machine == machineID() && at == r.Started
}

// isStale reports whether a file is older than foreignTTL, so that its process
// has probably exited.
func isStale(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && time.Since(fi.ModTime()) > foreignTTL
}

var errNotOurs = errors.New("not a process state file")

// readRecord reads a state file. It rejects a file that other users can change.
func readRecord(path string) (*record, error) {
	data, err := privatefile.New(path, maxFile).Read()
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
