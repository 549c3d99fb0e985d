package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/secrets"
	"github.com/loadout-dev/loadout/policy"
)

// sharedServers returns the servers that also replace entries of other clients.
func (im *importRun) sharedServers() map[string]bool {
	out := map[string]bool{}
	files, _ := filepath.Glob(filepath.Join(im.app.stateDir(), "imports", "*.json"))
	for _, f := range files {
		data, err := policy.NewPrivateFile(f, maxImport).Read()
		var r importRecord
		if err != nil || json.Unmarshal(data, &r) != nil || r.File == im.record.File {
			continue
		}
		for _, step := range r.Steps {
			for _, name := range step.Shares {
				out[name] = true
			}
		}
	}
	return out
}

// unchangedBackups returns the backups of imports that were not changed since.
func (im *importRun) unchangedBackups() []string {
	var out []string
	for _, step := range im.record.Steps {
		info, err := os.Lstat(step.Backup)
		if step.Backup == "" || err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(step.Original)) {
			continue
		}
		if data, err := os.ReadFile(step.Backup); err == nil && bytes.Equal(data, step.Original) {
			out = append(out, step.Backup)
		}
	}
	return out
}

// undo reverts the imports, the last one first.
func (im *importRun) undo(ctx context.Context) error {
	if len(im.record.Steps) > 0 {
		im.out.Action = "undo"
	}
	var drop []string // secrets to remove
	shared := im.sharedServers()
	backups := im.unchangedBackups()
	for _, step := range slices.Backward(im.record.Steps) {
		for _, name := range slices.Sorted(maps.Keys(step.Servers)) {
			s := importedServer{Name: name, As: name, State: "kept"}
			if have := im.into.byName[name]; have != nil && have.Digest() == step.Servers[name] && !shared[name] {
				im.into.remove(name)
				s.State, s.Transport = "removed", have.Type
			}
			im.out.Servers = append(im.out.Servers, s)
		}
		drop = append(drop, step.Secrets...)
		if step.Kept || im.out.Diff != "" {
			continue
		}
		change, err := clientconfig.PlanReturn(im.target, step.Original, step.Names, step.Local, step.Entry)
		if err != nil {
			return im.fileError(err)
		}
		im.out.Diff = change.Diff()
		im.out.Notes = append(im.out.Notes, change.Notes...)
	}
	whole := len(im.out.Notes) == 0 // everything can be restored
	for _, b := range backups {
		what := " contains tokens in clear text and will be deleted"
		if !whole {
			what = " contains tokens in clear text and is kept, because not everything can be restored: delete it when everything works"
		}
		im.out.Notes = append(im.out.Notes, "the backup "+b+what)
	}
	if do, err := im.confirm(ctx); !do || err != nil {
		return err
	}
	data, err := im.into.encode()
	if err != nil {
		return err
	}
	for len(im.record.Steps) > 0 { // the client's file first: nothing is lost if it cannot be restored
		last := len(im.record.Steps) - 1
		if step := im.record.Steps[last]; !step.Kept {
			change, err := clientconfig.PlanReturn(im.target, step.Original, step.Names, step.Local, step.Entry)
			if err == nil {
				whole = whole && len(change.Notes) == 0
				err = change.Apply()
			}
			if err != nil {
				return im.fileError(err)
			}
		}
		im.record.Steps = im.record.Steps[:last]
	}
	if err := im.into.write(data); err != nil {
		return fmt.Errorf("write %s: %w", im.out.Into, err)
	}
	for _, name := range drop {
		if strings.Contains(string(data), "${{secrets."+name+"}}") {
			continue // used by a server that was changed since
		}
		if err := im.store.Remove(ctx, name); err != nil && !errors.Is(err, secrets.ErrNotSet) {
			return im.app.secretError(err)
		}
	}
	if err := im.saveRecord(ctx); err != nil {
		return err
	}
	for _, b := range backups {
		if !whole {
			break
		}
		if err := os.Remove(b); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fail(exitFailure, "delete it yourself", "everything was restored, but cannot delete the backup %s: %w", b, fileCause(err))
		}
	}
	im.out.Done = true
	var names []string
	for _, s := range im.out.Servers {
		names = append(names, s.Name)
	}
	if err := im.recordAudit(ctx, "import-undo", names); err != nil {
		return err
	}
	return im.printResult(nil)
}
