package library

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

const (
	// mirrorInterval is the interval at which a mirror looks for changed files.
	mirrorInterval = time.Second
	// mirrorRest is how long a mirror rests between two passes, as a multiple of
	// the duration of a pass, so that many files do not occupy a processor.
	mirrorRest = 20
	// maxMirrored is the number of versions that a mirror keeps of each skill, in
	// addition to those that were reviewed, that a reference pins, or that are
	// current.
	maxMirrored = 50
)

// Mirror keeps the skills of a read-only namespace equal to those of a catalog.
// A changed skill becomes a new version, which becomes current like an uploaded
// one: immediately, or after a review of its code. A skill that disappears, or
// whose SKILL.md becomes invalid, is hidden rather than deleted, so that its
// reviews remain valid if it comes back.
//
// Several nodes may mirror the same directories into one database.
type Mirror struct {
	l        *Library
	in       Namespace
	skills   *catalog.Catalog
	approved bool
	log      *slog.Logger

	done     map[string]string // digest by name after the last pass; nil before the first
	reported map[string]string // last problem by name
}

// Mirror returns a mirror of a catalog. If approved is set, the code of the skills
// needs no review. The caller must call [Mirror.Update] or [Mirror.Run].
func (l *Library) Mirror(in Namespace, skills *catalog.Catalog, approved bool, log *slog.Logger) *Mirror {
	if !in.IsReadOnly() {
		panic(fmt.Sprintf("library: mirror into namespace %q, which users can change", in))
	}
	return &Mirror{l: l, in: in, skills: skills, approved: approved, log: log, reported: map[string]string{}}
}

// Run updates the namespace after each change of the catalog or of a skill's files
// until ctx is done, then returns nil. It continues after errors.
func (m *Mirror) Run(ctx context.Context) error {
	if err := m.skills.Reload(ctx); err != nil {
		return nil // ctx is done
	}
	changed := make(chan struct{}, 1)
	stop := m.skills.Subscribe(func(_, _ *catalog.Snapshot) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer stop()
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		_ = m.skills.Run(ctx) // returns nil after ctx is done
	}()
	defer func() { <-watching }()
	for {
		began := time.Now()
		if err := m.update(ctx); err != nil && ctx.Err() == nil {
			m.report("", err)
		}
		rest := time.NewTimer(max(mirrorInterval, mirrorRest*time.Since(began)))
		select {
		case <-ctx.Done():
			rest.Stop()
			return nil
		case <-changed:
		case <-rest.C:
		}
		rest.Stop()
	}
}

// Update reads the catalog and makes the skills of the namespace equal to those of
// the catalog. Unchanged files are not read again. If the files of a skill in the
// catalog cannot be read or stored, Update logs the error and leaves that skill
// unchanged. Update must not be called during [Mirror.Run].
func (m *Mirror) Update(ctx context.Context) error {
	if err := m.skills.Reload(ctx); err != nil {
		return err
	}
	return m.update(ctx)
}

func (m *Mirror) update(ctx context.Context) error {
	now, entries := map[string]string{}, map[string]*catalog.Entry{}
	for _, e := range m.skills.Snapshot().Skills() {
		files, err := m.skills.CompleteManifest(ctx, e)
		switch {
		case err == nil:
			now[e.Name], entries[e.Name] = files.Digest(), e
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist): // the catalog has not noticed yet
		default:
			m.report(e.Name, err)
			now[e.Name] = m.done[e.Name]
		}
	}
	if m.done != nil && maps.Equal(now, m.done) {
		return nil
	}
	stored, err := m.stored(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if m.done != nil && m.done[name] == now[name] {
			continue
		}
		err := m.put(ctx, stored[name], entries[name], now[name])
		switch {
		case err == nil:
			delete(m.reported, name)
			continue
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrExists): // another node has just added it
			now[name] = m.done[name]
			continue
		case !isSkillError(err):
			now[name] = m.done[name] // try again
		}
		m.report(name, err)
	}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		if _, ok := now[name]; !ok && !stored[name].Hidden {
			if err := m.setHidden(ctx, stored[name].ID, true); err != nil {
				return fmt.Errorf("hide skill %q: %w", name, err)
			}
		}
	}
	m.done = now
	return nil
}

// report logs a problem with a skill, unless it is the problem that was last
// logged for that skill.
func (m *Mirror) report(name string, err error) {
	if m.reported[name] != err.Error() {
		m.reported[name] = err.Error()
		m.log.Warn("couldn't add a skill of a directory to the library", "namespace", string(m.in), "skill", name, "error", err)
	}
}

// stored returns the skills of the namespace by name, including hidden ones.
func (m *Mirror) stored(ctx context.Context) (map[string]store.Skill, error) {
	out := map[string]store.Skill{}
	q := store.SkillQuery{Namespaces: []Namespace{m.in}, Hidden: true, Page: store.Page{Limit: store.MaxPage}}
	for {
		rows, next, err := m.l.db.Skills.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, s := range rows {
			out[s.Name] = s
		}
		if next == "" {
			return out, nil
		}
		q.After = next
	}
}

// put stores the files of an entry, unless a version of the skill already has them.
// It makes the version with these files current if mayBeCurrent permits that. s is
// the stored skill; its ID is "" if there is none.
func (m *Mirror) put(ctx context.Context, s store.Skill, e *catalog.Entry, digest string) error {
	if s.ID != "" {
		_, err := m.l.db.Versions.GetByDigest(ctx, s.ID, digest)
		if err == nil {
			return m.restore(ctx, s.ID, digest)
		}
		if !isNotFound(err) {
			return err
		}
	}
	b, err := m.skills.Open(ctx, e)
	if err != nil {
		return err
	}
	defer b.Close()
	c, err := m.l.readContent(ctx, b)
	if err != nil {
		return err
	}
	if err := m.l.storeFiles(ctx, m.in, c, 0); err != nil {
		return err
	}
	return m.change(ctx, func(tx *store.Tx) (string, any, error) {
		id := s.ID
		if id == "" {
			created, err := tx.Skills.Create(ctx, store.Skill{Namespace: m.in, Name: c.skill.Name})
			if err != nil {
				return "", nil, err
			}
			id = created.ID
		}
		return id, uploadDetails{Name: c.skill.Name, Digest: c.manifest.Digest()}, m.addVersion(ctx, tx, id, c)
	})
}

// addVersion adds a version and unhides the skill.
func (m *Mirror) addVersion(ctx context.Context, tx *store.Tx, id string, c *content) error {
	h, err := m.l.getSkill(ctx, &tx.Tables, id)
	if err != nil {
		return err
	}
	v, err := m.l.appendVersionInTx(ctx, tx, account.Principal{}, h, c, nil)
	if err != nil {
		return err
	}
	if m.approved {
		if err := tx.Versions.SetReview(ctx, id, v.Digest, Approved, "", ""); err != nil {
			return err
		}
		after := v
		after.Review = Approved
		if _, err := m.l.applyReview(ctx, tx, account.Principal{}, h, v, after); err != nil {
			return err
		}
	}
	if h.Hidden {
		if err := tx.Skills.SetHidden(ctx, id, false); err != nil {
			return err
		}
	}
	return m.prune(ctx, tx, h)
}

// restore makes an existing version current if mayBeCurrent permits that, and
// unhides the skill.
func (m *Mirror) restore(ctx context.Context, id, digest string) error {
	s, err := m.l.db.Skills.Get(ctx, id)
	if err != nil || !s.Hidden && s.Digest == digest {
		return err
	}
	return m.change(ctx, func(tx *store.Tx) (string, any, error) {
		v, err := tx.Versions.GetByDigest(ctx, id, digest)
		if err != nil {
			return "", nil, err
		}
		if s, err = tx.Skills.Get(ctx, id); err != nil {
			return "", nil, err
		}
		if s.Digest != digest && mayBeCurrent(s, v) {
			if err := m.l.setCurrent(ctx, tx, v); err != nil {
				return "", nil, err
			}
		}
		return id, currentDetails{s.Name, s.Number, v.Number}, tx.Skills.SetHidden(ctx, id, false)
	})
}

func (m *Mirror) setHidden(ctx context.Context, id string, hidden bool) error {
	return m.change(ctx, func(tx *store.Tx) (string, any, error) {
		return id, map[string]bool{"hidden": hidden}, tx.Skills.SetHidden(ctx, id, hidden)
	})
}

// change calls f in a transaction, adds an audit record for the skill whose ID f
// returns, and notifies all nodes.
func (m *Mirror) change(ctx context.Context, f func(*store.Tx) (id string, details any, err error)) error {
	err := m.l.db.Tx(ctx, func(tx *store.Tx) error {
		id, details, err := f(tx)
		if err != nil {
			return err
		}
		return appendAudit(ctx, tx.Audit, account.Principal{}, account.SkillChange, m.in, id, "allowed", details)
	})
	if err == nil {
		m.l.NotifyChanged()
	}
	return err
}

// prune deletes old versions; see maxMirrored.
func (m *Mirror) prune(ctx context.Context, tx *store.Tx, h *skillRecord) error {
	rows, err := tx.Versions.List(ctx, h.ID, 0, store.MaxPage)
	if err != nil || len(rows) <= maxMirrored {
		return err
	}
	refs, err := tx.Refs.ListTo(ctx, store.SkillKind, h.ID, h.Name, store.MaxPage)
	if err != nil || len(refs) == store.MaxPage {
		return err
	}
	s, err := tx.Skills.Get(ctx, h.ID)
	if err != nil {
		return err
	}
	for _, v := range rows[maxMirrored:] {
		pinned := slices.ContainsFunc(refs, func(r store.Reference) bool { return r.Digest == v.Digest })
		if v.Review != Pending || v.Number == s.Number || pinned {
			continue
		}
		if err := tx.Versions.Delete(ctx, h.ID, v.Number); err != nil {
			return err
		}
	}
	return nil
}
