// Package clientimport imports the MCP servers configured in other clients into
// the user's servers file, and undoes such imports. It moves secret values to
// the user's secrets. [PlanDefinitions] imports the servers of other programs.
//
// [Open] reads the files. [Importer.PlanImport] and [Importer.PlanUndo] return
// a [Plan], which the caller shows before [Plan.Apply] writes anything. The
// package prints nothing, does not prompt, and starts no server. Start reading
// at plan.go.
package clientimport

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/internal/secrets"
)

// Options selects the files for an import.
type Options struct {
	Target      clientconfig.Target // the client and its configuration file
	ServersFile string              // the user's servers file
	RecordDir   string              // directory with records of earlier imports
	Secrets     *secrets.Store
}

// Importer imports servers from the configuration file of one client.
type Importer struct {
	client  clientconfig.Client
	target  clientconfig.Target
	found   *clientconfig.Servers
	servers *serversFile
	secrets *secrets.Store
	dir     string // directory with the records
	log     *privatefile.File
	record  record
	// foreign is set if the servers are not the user's own. The values of their
	// secrets are then not stored, and they get no secret that the user has.
	foreign *foreignNames
}

// Open reads the client's file, the user's servers file, and the record of
// earlier imports. It treats a missing file as empty. It returns an error for a
// client that is not Importable.
func Open(o Options) (*Importer, error) {
	if c := o.Target.Client; !c.Importable {
		return nil, errorf(ClientFile, "cannot import servers from %s: %w", c.Title, clientconfig.ErrUnsupported)
	}
	found, err := clientconfig.Read(o.Target)
	if err != nil {
		return nil, &Error{ClientFile, err}
	}
	im := &Importer{client: o.Target.Client, target: o.Target, found: found, secrets: o.Secrets, dir: o.RecordDir}
	if im.servers, err = readServersFile(o.ServersFile); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(found.File))
	im.log = privatefile.New(filepath.Join(im.dir, im.client.Name+"-"+hex.EncodeToString(sum[:8])+".json"), maxRecord)
	if err := im.readRecord(); err != nil {
		return nil, err
	}
	return im, nil
}

// File returns the path of the client's file.
func (im *Importer) File() string { return im.found.File }

// Part identifies the part of an import that failed.
type Part int

// Parts of an import.
const (
	ClientFile  Part = iota // the client's configuration file
	ServersFile             // the user's servers file
	SecretStore             // the user's secrets
	Record                  // the record of earlier imports
	Backup                  // a backup that could not be deleted after an undo
	Projects                // the client does not support servers per project
)

// Error is an error from an import. A caller can suggest the next step based on
// Part.
type Error struct {
	Part Part
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func errorf(p Part, format string, args ...any) error { return &Error{p, fmt.Errorf(format, args...)} }
