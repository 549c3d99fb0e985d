// Package serverstate shows the state of the MCP servers of all running
// processes of a user. A [Publisher] maintains one file for each process, and
// [List] reads the files of living processes.
//
// The files contain names, states and errors, but no configuration and no
// values. Files of other users are ignored, and a directory that others can
// write is refused.
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
	maxFile  = 4 << 20 // bytes of one file
	maxFiles = 1000    // read at once
	// foreignTTL is how long List keeps a file from another machine or
	// container. It cannot see whether that process lives.
	foreignTTL = 24 * time.Hour

	maxTools   = 1_000_000
	maxLatency = float64(24 * time.Hour / time.Millisecond)
)

// Process is one process and its servers.
type Process struct {
	PID    int       `json:"pid"`
	Client string    `json:"client"` // the name of the client that it serves; "" if unknown
	Since  time.Time `json:"since"`
	// Servers are in the order of the process.
	Servers []Server `json:"servers"`
}

// Server is the state of one server of a process.
type Server struct {
	Name      string    `json:"name"`
	Profile   string    `json:"profile,omitempty"` // set if served at the path of a profile
	Transport string    `json:"transport"`
	State     string    `json:"state"`
	Era       string    `json:"era"`
	Tools     int       `json:"tools"`
	Error     string    `json:"error"`
	LatencyMS float64   `json:"latency_ms"`
	Since     time.Time `json:"since,omitzero"` // time of the last state change
}

// record is the content of a file. Machine and Started distinguish the process
// from a later one with the same PID.
type record struct {
	Version int    `json:"version"`
	Machine string `json:"machine"`
	Started string `json:"started"`
	Process
}

// List returns the living processes with a file in dir, oldest first. It
// returns none if dir does not exist. It ignores files that cannot be read or
// that others can change, and removes files of dead processes. It refuses a dir
// that others can write with a [*privatefile.UnsafeError].
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
		if err != nil || r.PID != pid || ext == "tmp" { // incomplete or foreign
			if _, lives := startTime(pid); !lives && isStale(path) {
				os.Remove(path)
			}
			continue
		}
		switch {
		case r.isAlive():
			all = append(all, r.Process)
		case r.Machine == machine() || isStale(path):
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

// isAlive reports whether the process that wrote r is still running.
func (r *record) isAlive() bool {
	at, ok := startTime(r.PID)
	return ok && r.Machine == machine() && at == r.Started
}

// isStale reports whether a file is so old that its process must have ended.
func isStale(path string) bool {
	fi, err := os.Lstat(path)
	return err == nil && time.Since(fi.ModTime()) > foreignTTL
}

var errNotOurs = errors.New("not a process state file")

// readRecord reads a file that only this user can change.
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
