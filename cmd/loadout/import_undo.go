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

	"github.com/loadout-dev/loadout/internal/client"
	"github.com/loadout-dev/loadout/internal/secrets"
	"github.com/loadout-dev/loadout/policy"
)

// sharedByOthers are the servers that stand in for entries of other clients
// too.
func (im *importing) sharedByOthers() map[string]bool {
	out := map[string]bool{}
	files, _ := filepath.Glob(filepath.Join(im.app.stateDir(), "imports", "*.json"))
	for _, f := range files {
		data, err := policy.NewOwnFile(f, maxImport).Read()
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

// ownBackups are those that imports made and that are still as they were made.
func (im *importing) ownBackups() []string {
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

// undo puts back what imports took, the last one first.
func (im *importing) undo(ctx context.Context) error {
	if len(im.record.Steps) > 0 {
		im.out.Action = "undo"
	}
	var drop []string // secrets
	shared := im.sharedByOthers()
	backups := im.ownBackups()
	for _, step := range slices.Backward(im.record.Steps) {
		for _, name := range slices.Sorted(maps.Keys(step.Servers)) {
			s := importedServer{Name: name, As: name, State: "kept"}
			if have := im.into.have[name]; have != nil && have.Digest() == step.Servers[name] && !shared[name] {
				im.into.remove(name)
				s.State, s.Transport = "removed", have.Type
			}
			im.out.Servers = append(im.out.Servers, s)
		}
		drop = append(drop, step.Secrets...)
		if step.Kept || im.out.Diff != "" {
			continue
		}
		change, err := client.PlanReturn(im.target, step.Original, step.Names, step.Local, step.Entry)
		if err != nil {
			return im.failed(err)
		}
		im.out.Diff = change.Diff()
		im.out.Notes = append(im.out.Notes, change.Notes...)
	}
	whole := len(im.out.Notes) == 0 // everything goes back
	for _, b := range backups {
		what := ", which has tokens in clear, is deleted"
		if !whole {
			what = " has tokens in clear and stays, as not everything goes back: delete it once all works"
		}
		im.out.Notes = append(im.out.Notes, "the backup "+b+what)
	}
	if do, err := im.show(ctx); !do || err != nil {
		return err
	}
	data, err := im.into.text()
	if err != nil {
		return err
	}
	for len(im.record.Steps) > 0 { // the client's file first: nothing is lost where it cannot be
		last := len(im.record.Steps) - 1
		if step := im.record.Steps[last]; !step.Kept {
			change, err := client.PlanReturn(im.target, step.Original, step.Names, step.Local, step.Entry)
			if err == nil {
				whole = whole && len(change.Notes) == 0
				err = change.Apply()
			}
			if err != nil {
				return im.failed(err)
			}
		}
		im.record.Steps = im.record.Steps[:last]
	}
	if err := im.into.write(data); err != nil {
		return fmt.Errorf("write %s: %w", im.out.Into, err)
	}
	for _, name := range drop {
		if strings.Contains(string(data), "${{secrets."+name+"}}") {
			continue // a server that was changed since needs it
		}
		if err := im.store.Remove(ctx, name); err != nil && !errors.Is(err, secrets.ErrNotSet) {
			return im.app.secretFailed(err)
		}
	}
	if err := im.keep(ctx); err != nil {
		return err
	}
	for _, b := range backups {
		if !whole {
			break
		}
		if err := os.Remove(b); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fail(exitFound, "delete it yourself", "all is back, but not deleted is the backup %s: %w", b, reason(err))
		}
	}
	im.out.Done = true
	var names []string
	for _, s := range im.out.Servers {
		names = append(names, s.Name)
	}
	if err := im.audit(ctx, "import-undo", names); err != nil {
		return err
	}
	return im.finish(nil)
}
