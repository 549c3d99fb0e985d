// Package clientimport imports the MCP servers that other clients are
// configured with into the servers file of the user, and undoes that. Secret
// values move to the user's secrets.
//
// [Open] reads the files. [Importer.PlanImport] and [Importer.PlanUndo] return a
// [Plan], which a caller shows before [Plan.Apply] writes anything. The package
// prints nothing, asks nobody and starts no server. Start reading at plan.go.
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

// Options says where to import from and to.
type Options struct {
	Target      clientconfig.Target // the client and its file
	ServersFile string              // servers of the user
	RecordDir   string              // records of earlier imports
	Secrets     *secrets.Store
}

// Importer imports servers from one file of a client.
type Importer struct {
	client  clientconfig.Client
	target  clientconfig.Target
	found   *clientconfig.Servers
	servers *serversFile
	secrets *secrets.Store
	dir     string // of the records
	log     *privatefile.File
	record  record
}

// Open reads the client's file, the servers of the user, and the record of
// earlier imports. A file that does not exist is empty.
func Open(o Options) (*Importer, error) {
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

// File returns the client's file.
func (im *Importer) File() string { return im.found.File }

// Part is the part of an import that failed.
type Part int

// The parts of an import.
const (
	ClientFile  Part = iota // the client's configuration file
	ServersFile             // the servers file of the user
	SecretStore             // the secrets of the user
	Record                  // the record of earlier imports
	Backup                  // a backup that could not be deleted after an undo
	Projects                // the client has no servers per project
)

// Error is a failed import. A program derives the next step from the part.
type Error struct {
	Part Part
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func errorf(p Part, format string, args ...any) error { return &Error{p, fmt.Errorf(format, args...)} }
