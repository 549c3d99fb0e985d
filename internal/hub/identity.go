package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/atomicfile"
	"github.com/loadout-dev/loadout/internal/store"
)

// identityFile is the name of the file in [Options.Data] that identifies a node.
const identityFile = "node.json"

// identityVersion is the version of the identity file's format.
const identityVersion = 1

// identity identifies a node and the process that runs it.
type identity struct {
	Version int    `json:"version"`
	Node    string `json:"node"`    // ID of the data directory; unique
	Process string `json:"process"` // ID under which the last process that locked the directory holds leases; unique
	// Machine and Lock identify the lock file, so that a copy of the directory is
	// not mistaken for the directory of a process that may still run.
	Machine string `json:"machine"`
	Lock    string `json:"lock"`
}

// claimIdentity returns the identity of this process, and the name of the process
// that previously used the directory, or "" if that is unknown or the process may
// still run. The caller must have locked the directory; lock identifies the locked
// file, and is "" if the system does not lock files. If the identity file cannot be
// written, unsaved is the error; the node works without the file.
func claimIdentity(data, lock string) (now identity, predecessor string, unsaved, err error) {
	path := filepath.Join(data, identityFile)
	var before identity
	switch text, err := os.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return identity{}, "", nil, fmt.Errorf("read identity of node: %w", err)
	case json.Unmarshal(text, &before) != nil:
		before = identity{} // damaged; a new one does no harm
	case before.Version > identityVersion:
		return identity{}, "", nil, fmt.Errorf("%s was written by a newer version of this program (format %d, this one supports %d); use that version, or remove the file", path, before.Version, identityVersion)
	}
	machine, err := os.Hostname()
	if err != nil {
		lock = ""
	}
	now = identity{Version: identityVersion, Node: before.Node, Process: store.NewID(), Machine: machine, Lock: lock}
	if lock != "" && before.Machine == machine && before.Lock == lock {
		predecessor = before.Process
	} else {
		now.Node = store.NewID()
	}
	text, err := json.Marshal(now)
	if err != nil {
		return identity{}, "", nil, err
	}
	return now, predecessor, atomicfile.Write(path, append(text, '\n'), 0o600), nil
}
