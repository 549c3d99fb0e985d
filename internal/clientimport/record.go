package clientimport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/privatefile"
)

// maxRecord bounds the record of imports from one file, in bytes.
const maxRecord = 64 << 20

// record lists the imports from one file that were not undone.
type record struct {
	Version int    `json:"version"`
	File    string `json:"file"`
	Steps   []step `json:"steps"`
}

// step records what one import did. It contains the credentials of the client's
// file.
type step struct {
	Original []byte               `json:"original"` // the client's file before the import
	Backup   string               `json:"backup,omitempty"`
	Intact   bool                 `json:"kept"`            // the file was not changed
	Names    []string             `json:"names"`           // entries removed from the file
	Local    []clientconfig.Local `json:"local,omitempty"` // removed entries of projects
	Entry    clientconfig.Entry   `json:"entry"`
	Servers  map[string]string    `json:"servers"`          // digests of the added servers, by name
	Shares   []string             `json:"shares,omitempty"` // existing servers that replace its entries
	Secrets  []string             `json:"secrets"`          // secrets set by this import
}

func (im *Importer) readRecord() error {
	data, err := im.log.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return &Error{SecretStore, err}
	case json.Unmarshal(data, &im.record) != nil || im.record.Version != 1:
		return errorf(Record, "cannot read the record of earlier imports from %s", im.client.Title)
	}
	im.record.Version, im.record.File = 1, im.found.File
	return nil
}

func (im *Importer) saveRecord(ctx context.Context) error {
	return im.log.Change(ctx, func([]byte) ([]byte, error) { return json.Marshal(im.record) })
}

// sharedServers returns the servers that also replace entries of other clients.
func (im *Importer) sharedServers() map[string]bool {
	out := map[string]bool{}
	files, _ := filepath.Glob(filepath.Join(im.dir, "*.json"))
	for _, f := range files {
		data, err := privatefile.New(f, maxRecord).Read()
		var r record
		if err != nil || json.Unmarshal(data, &r) != nil || r.File == im.record.File {
			continue
		}
		for _, s := range r.Steps {
			for _, name := range s.Shares {
				out[name] = true
			}
		}
	}
	return out
}

// unchangedBackups returns the backups of imports that were not changed since.
func (im *Importer) unchangedBackups() []string {
	var out []string
	for _, s := range im.record.Steps {
		info, err := os.Lstat(s.Backup)
		if s.Backup == "" || err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(s.Original)) {
			continue
		}
		if data, err := os.ReadFile(s.Backup); err == nil && bytes.Equal(data, s.Original) {
			out = append(out, s.Backup)
		}
	}
	return out
}
