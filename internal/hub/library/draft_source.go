package library

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/skill"
)

// DraftSource is a catalog source that contains a conversation's draft. Put it
// before all other sources, so that the draft replaces skills with the same name.
type DraftSource struct {
	Name   string
	Digest string // digest of the files

	l       *Library
	p       account.Principal
	session string

	mu       sync.Mutex // guards the fields below, which the first read sets
	entry    *catalog.Entry
	examples string
}

var _ catalog.Watcher = (*DraftSource)(nil)

// DraftSource returns a source for the draft of one of the principal's
// conversations. It returns [ErrNotFound] if the conversation has no draft.
func (l *Library) DraftSource(ctx context.Context, p account.Principal, session string) (*DraftSource, error) {
	s, err := l.db.Sessions.Get(ctx, session)
	if err != nil {
		return nil, err
	}
	if err := account.Check(p, account.SkillUse, account.OwnedBy(account.UserID(s.Owner))); err != nil || s.Owner != string(p.User) {
		return nil, errors.Join(fmt.Errorf("get draft of session %q: %w", session, ErrNotFound), err)
	}
	d, err := l.db.Drafts.Get(ctx, session)
	if err != nil {
		return nil, err
	}
	return &DraftSource{Name: d.Name, Digest: d.Digest, l: l, p: p, session: session}, nil
}

// Session returns the ID of the conversation.
func (t *DraftSource) Session() string { return t.session }

// Origin returns "draft", the label of the source.
func (t *DraftSource) Origin() string { return "draft" }

// Scope returns [catalog.User].
func (t *DraftSource) Scope() catalog.Scope { return catalog.User }

// ListsVersions returns true, because a draft never changes; see
// [catalog.Catalog.Digest].
func (t *DraftSource) ListsVersions() bool { return true }

// List returns the draft. The first call reads the draft.
func (t *DraftSource) List(ctx context.Context) (catalog.Listing, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entry == nil {
		b, err := t.open(ctx)
		if err != nil {
			return catalog.Listing{}, err
		}
		defer b.Close()
		c, err := t.l.readContent(ctx, b)
		if err != nil {
			return catalog.Listing{}, fmt.Errorf("read draft %q: %w", t.Name, err)
		}
		t.entry = locateEntry(newDraftEntry(c.skill, c.meta), t.Origin(), t.Scope())
		t.examples = c.meta.searchText()
	}
	return catalog.Listing{Entries: []*catalog.Entry{t.entry}}, nil
}

// Open returns the files of the draft.
func (t *DraftSource) Open(ctx context.Context, _ *catalog.Entry) (*skill.Bundle, error) {
	return t.open(ctx)
}

func (t *DraftSource) open(ctx context.Context) (*skill.Bundle, error) {
	data, err := t.l.db.Drafts.Package(ctx, t.session)
	if isNotFound(err) {
		return nil, fmt.Errorf("open draft %q: %w", t.Name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	limits := t.l.opts.Limits
	limits.AllowFolderMismatch = true
	return skill.OpenZIP(bytes.NewReader(data), int64(len(data)), t.Name+".zip", limits)
}

// Watch blocks until ctx is done, because a draft never changes.
func (t *DraftSource) Watch(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}

// Search returns the matching skills, like [Library.Search], as if the
// draft were in the principal's namespace.
func (t *DraftSource) Search(ctx context.Context, query string, limit int) ([]catalog.Match, error) {
	listing, err := t.List(ctx)
	if err != nil {
		return nil, err
	}
	in, err := namespaces(t.p, account.SkillRead)
	if err != nil {
		return nil, err
	}
	if err := t.l.index.refresh(ctx); err != nil {
		return nil, err
	}
	with := t.l.index.withDraft(listing.Entries[0], t.examples, "", []Namespace{ownNamespace(t.p)})
	found, err := t.l.findWithDraft(ctx, t.p, with, query, in, min(max(limit, 1), maxHits))
	out := make([]catalog.Match, len(found.Hits))
	for i, h := range found.Hits {
		out[i] = catalog.Match{Name: h.Name, Fit: h.Fit}
	}
	return out, err
}
