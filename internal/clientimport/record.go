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

// maxRecord is the maximum size of the record for one client file, in bytes.
const maxRecord = 64 << 20

// record lists the imports from one client file that have not been undone.
type record struct {
	Version int    `json:"version"`
	File    string `json:"file"`
	Steps   []step `json:"steps"`
}

// step records the changes made by one import. It contains credentials from the
// client's file.
type step struct {
	Original []byte                      `json:"original"` // content of the client's file before the import
	Backup   string                      `json:"backup,omitempty"`
	Intact   bool                        `json:"kept"`            // whether the file was left unchanged
	Names    []string                    `json:"names"`           // entries that were removed from the file
	Local    []clientconfig.ProjectEntry `json:"local,omitempty"` // project entries that were removed
	Entry    clientconfig.Entry          `json:"entry"`
	Servers  map[string]string           `json:"servers"`          // digest of each added server
	Shares   []string                    `json:"shares,omitempty"` // existing servers that replace entries of the file
	Secrets  []string                    `json:"secrets"`          // secrets that the import set
}

func (im *Importer) readRecord() error {
	data, err := im.log.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return &Error{SecretStore, err}
	default:
		err := privatefile.CheckVersion(data, 1)
		if err == nil && json.Unmarshal(data, &im.record) != nil {
			err = errors.New("cannot decode JSON") // the decoding error could contain secrets
		}
		if err != nil {
			return errorf(Record, "cannot read the record of earlier imports from %s: %s: %w", im.client.Title, im.log.Path(), err)
		}
	}
	im.record.Version, im.record.File = 1, im.found.File
	return nil
}

func (im *Importer) saveRecord(ctx context.Context) error {
	return im.log.Change(ctx, func([]byte) ([]byte, error) { return json.Marshal(im.record) })
}

// sharedServers returns the names of the servers that also replace entries in
// the files of other clients.
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

// unchangedBackups returns the backups of earlier imports that still have their
// original content.
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
