package clientimport

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/secrets"
)

// PlanUndo plans to undo all imports from the client's file, starting with the
// last one. If the file cannot be restored completely, Notes lists what is
// missing, and the backups are not deleted.
func (im *Importer) PlanUndo() (*Plan, error) {
	p := &Plan{Action: None, applyTo: im.applyUndo}
	if len(im.record.Steps) == 0 {
		return p, nil
	}
	p.Action = Undo
	im.planRemovals(p)
	if err := im.planRestore(p); err != nil {
		return nil, err
	}
	for _, b := range im.unchangedBackups() {
		what := " contains tokens in clear text and will be deleted"
		if !p.restoresAll() {
			what = " contains tokens in clear text and is kept, because not everything can be restored: delete it when everything works"
		}
		p.Notes = append(p.Notes, "the backup "+b+what)
	}
	return p, nil
}

// planRemovals plans to remove the imported servers that have not changed since
// and that no other client needs.
func (im *Importer) planRemovals(p *Plan) {
	shared := im.sharedServers()
	for _, st := range slices.Backward(im.record.Steps) {
		for _, name := range slices.Sorted(maps.Keys(st.Servers)) {
			s := Server{Name: name, As: name, State: Kept}
			if have := im.servers.byName[name]; have != nil && have.Digest() == st.Servers[name] && !shared[name] {
				im.servers.remove(name)
				s.State, s.Transport = Removed, have.Type
			}
			p.Servers = append(p.Servers, s)
		}
	}
}

// planRestore plans the change that restores the client's file.
func (im *Importer) planRestore(p *Plan) error {
	var done []clientconfig.Import
	for _, st := range im.record.Steps {
		if !st.Intact {
			done = append(done, clientconfig.Import{Original: st.Original, Names: st.Names, Local: st.Local, Entry: st.Entry})
		}
	}
	if len(done) == 0 {
		return nil
	}
	change, err := clientconfig.PlanUndoImports(im.target, done)
	if err != nil {
		return &Error{ClientFile, err}
	}
	p.setChange(change)
	return nil
}

// restoresAll reports whether all entries of the client's file are restored.
func (p *Plan) restoresAll() bool { return p.change == nil || len(p.change.Notes) == 0 }

// applyUndo applies an undo. It restores the client's file first, so that
// nothing is lost if that fails.
func (im *Importer) applyUndo(ctx context.Context, p *Plan) error {
	data, err := im.servers.encode()
	if err != nil {
		return err
	}
	backups := im.unchangedBackups()
	if err := p.applyChange(); err != nil {
		return err
	}
	if err := im.servers.write(data); err != nil {
		return err
	}
	if err := im.removeSecrets(ctx, string(data)); err != nil {
		return err
	}
	im.record.Steps = nil
	if err := im.saveRecord(ctx); err != nil {
		return err
	}
	if !p.restoresAll() {
		return nil
	}
	return removeBackups(backups)
}

// removeSecrets removes the secrets that imports set, except those that are
// still in use.
func (im *Importer) removeSecrets(ctx context.Context, servers string) error {
	for _, st := range slices.Backward(im.record.Steps) {
		for _, name := range st.Secrets {
			if strings.Contains(servers, "${{secrets."+name+"}}") {
				continue // still used by a server that has changed since the import
			}
			if err := im.secrets.Remove(ctx, name); err != nil && !errors.Is(err, secrets.ErrNotSet) {
				return &Error{SecretStore, err}
			}
		}
	}
	return nil
}

// removeBackups deletes the backups after everything has been restored.
func removeBackups(backups []string) error {
	for _, b := range backups {
		err := os.Remove(b)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return errorf(Backup, "everything was restored, but cannot delete the backup %s: %w", b, fileerror.Cause(err))
	}
	return nil
}
