package assembly

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// base is what kits of one person with the same skills, servers and rules have in common:
// a catalog with its runtime, and the tools. Where one of these is another, so is the
// base.
type base struct {
	assembler       *Assembler
	key             string // by which it is found, and whose connections they are
	principal       account.Principal
	policyPrincipal policy.Principal
	plan            *plan
	rt              *loadout.Runtime
	set             *tools.Set
	servers         map[string]agents.Server           // of documents, by name
	skillIDs        map[string]library.SkillIdentifier // by label of the source

	ready chan struct{} // closed when it is put together, or err is set
	err   error

	stop         context.CancelFunc // of what runs
	running      sync.WaitGroup
	stopWatching []func()
	changed      chan struct{}                  // has one when settings changed
	settings     atomic.Pointer[catalog.Filter] // as they are now
	seenRevision atomic.Int64                   // the revision of skills that the catalog has

	textMu      sync.Mutex // guards what follows
	cachedText  string     // the catalog text
	textVersion uint64     // of the snapshot that it is of

	// The rest is guarded by the mutex of kits.
	users         int
	idle          *time.Timer    // ends it when nobody has used it for a while
	since         time.Time      // when the last user left
	conversations map[string]int // conversations under way that have it, and how many kits of each
	watchers      int            // kits whose clients are told of changes
	unwatch       func()
}

// newBase is a base that is not put together yet.
func (k *Assembler) newBase(key string, p *plan) *base {
	return &base{
		assembler: k, key: key, principal: p.principal, policyPrincipal: policy.Principal{ID: string(p.principal.User), Kind: policy.UserPrincipal}, plan: p,
		servers: map[string]agents.Server{}, skillIDs: map[string]library.SkillIdentifier{}, ready: make(chan struct{}), stop: func() {}, changed: make(chan struct{}, 1),
		conversations: map[string]int{},
	}
}

// open puts a base together.
func (b *base) open(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	err = b.watchSettings(ctx, b.plan.settingsNamespaces, func(f catalog.Filter) {
		b.settings.Store(&f)
		b.signalChange()
	})
	if err != nil {
		return err
	}
	revisions, err := b.assembler.o.DB.Revisions(ctx)
	if err != nil {
		return err
	}
	sources, err := b.newSources(ctx, b.plan)
	if err != nil {
		return err
	}
	select { // what comes from here on is put in force by keepUp
	case <-b.changed:
	default:
	}
	b.rt, err = loadout.New(ctx, &loadout.Options{Sources: sources, Filter: b.plan.withSelection(*b.settings.Load()), Search: b.search,
		Scripts: b.newScripts(), Logger: b.assembler.o.Logger})
	if err != nil {
		return err
	}
	b.markSeen(revisions[store.SkillsRevision])
	b.set = b.newTools()
	running, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.running.Go(func() { b.applySettings(running) })
	return nil
}

// close ends what was opened.
func (b *base) close() error {
	for _, stop := range b.stopWatching {
		stop()
	}
	b.stop()
	b.running.Wait()
	var errs []error
	if b.set != nil {
		errs = append(errs, b.set.Close())
	}
	for _, s := range b.assembler.pool.Servers() {
		if s.Config().Identity() == b.key {
			s.Close() // nobody else may use it
		}
	}
	if b.rt != nil {
		errs = append(errs, b.rt.Close())
	}
	return errors.Join(errs...)
}

// watchSettings has f told what settings let through in some namespaces, now and whenever that
// changes. f does not wait.
func (b *base) watchSettings(ctx context.Context, in []store.Namespace, f func(catalog.Filter)) error {
	stop, err := b.assembler.o.Agents.WatchFilter(ctx, in, func(now catalog.Filter, why error) {
		if why != nil {
			now = catalog.Filter{Disabled: true} // what cannot be known lets nothing through
		}
		f(now)
	})
	if err == nil {
		b.stopWatching = append(b.stopWatching, stop)
	}
	return err
}

// signalChange has settings put in force.
func (b *base) signalChange() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// applySettings puts settings in force as they change, until ctx ends.
func (b *base) applySettings(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.changed:
		}
		c := b.rt.Catalog()
		err := c.SetFilter(b.plan.withSelection(*b.settings.Load()))
		if err == nil {
			err = c.Reload(ctx)
		}
		if err != nil && ctx.Err() == nil {
			b.assembler.o.Logger.Error("skills are switched off: settings cannot be put in force", "error", err)
			_ = c.SetFilter(catalog.Filter{Disabled: true}) // has no pattern that could be wrong
		}
	}
}

// refresh brings the catalog up to what the database has.
func (b *base) refresh(ctx context.Context) error {
	revisions, err := b.assembler.o.DB.Revisions(ctx)
	if err != nil {
		return err
	}
	now := revisions[store.SkillsRevision]
	if b.seenRevision.Load() >= now {
		return nil
	}
	if err := b.rt.Catalog().Reload(ctx); err != nil {
		return err
	}
	b.markSeen(now)
	return nil
}

// markSeen notes that the catalog has the skills of a revision, unless one of its sources could
// not be read: then it is read again the next time.
func (b *base) markSeen(now int64) {
	for _, p := range b.rt.Catalog().Snapshot().Problems() {
		if p.Path == p.Origin { // it is of the whole source
			return
		}
	}
	for was := b.seenRevision.Load(); was < now && !b.seenRevision.CompareAndSwap(was, now); was = b.seenRevision.Load() {
	}
}

// watchCatalog keeps the catalog up to date as skills change, for a kit whose clients are told
// of that, until it calls stop.
func (b *base) watchCatalog() (stop func()) {
	b.assembler.mu.Lock()
	defer b.assembler.mu.Unlock()
	if b.watchers++; b.watchers == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		b.unwatch = cancel
		b.running.Go(func() { _ = b.rt.Catalog().Run(ctx) }) // returns nil when it is ended
	}
	return sync.OnceFunc(func() {
		b.assembler.mu.Lock()
		defer b.assembler.mu.Unlock()
		if b.watchers--; b.watchers == 0 {
			b.unwatch()
		}
	})
}

// newTools are those of the servers of a plan, and those that skills bring.
func (b *base) newTools() *tools.Set {
	k := b.assembler
	var configs []*upstream.Config
	for _, s := range b.plan.servers {
		b.servers[s.Name] = s
		configs = append(configs, s.Config)
	}
	return tools.ForRuntime(b.rt, &tools.Options{
		Pool: k.pool, Profile: configs, Identity: b.key, Rules: b.plan.rules,
		Personal:     func(c *upstream.Config) bool { return b.plan.stamps[c.Name] != "" },
		VariablesFor: func(c *upstream.Config) upstream.Variables { return b.plan.values[c.Name] },
		SkillServers: b.skillServers(), Providers: k.providers(), Pins: definitions{b},
		Grants: NewGrantStore(k.o.DB, b.policyPrincipal), Audit: k.auditor().Append, Logger: k.o.Logger,
	})
}

// newScripts is what running code of skills needs.
func (b *base) newScripts() *loadout.Scripts {
	k := b.assembler
	return &loadout.Scripts{
		Sandbox: newQueuedBackend(k.o.Sandbox, k.o.RunQueue, string(b.principal.User)), Principal: b.policyPrincipal, Audit: k.auditor(), Bounds: k.o.Bounds,
		Grants:      &reviewedGrants{GrantStore: NewGrantStore(k.o.DB, b.policyPrincipal), checkRunnable: b.checkRunnable},
		ReadServers: tools.ReadServers, SecretFor: b.secretValue, Packages: k.o.Packages, Executable: k.o.Executable, PrivateNetworks: k.o.PrivateNetworks, Getenv: k.o.Getenv,
		FolderDir: k.dir("work"), CacheDir: k.dir("cache"), Logger: k.o.Logger,
	}
}

// checkRunnable says whether code of these bytes may run: what comes with the program, and what
// was approved.
func (b *base) checkRunnable(ctx context.Context, d policy.Digest) error {
	known, err := b.assembler.bundledDigests()
	if err != nil {
		return err
	}
	if known[string(d)] {
		return nil
	}
	err = b.assembler.o.Library.CheckRunnable(ctx, b.principal, string(d))
	if t := b.plan.draft; t != nil && string(d) == t.Digest && errors.Is(err, library.ErrNotFound) {
		return &library.ReviewError{Name: t.Name, Review: library.Pending, Draft: true}
	}
	return err
}

// catalogTokens bounds what a model is told of the skills that there are.
const catalogTokens = 4000

// catalogText tells a model which skills there are. Of many that takes long, and so it is kept.
func (b *base) catalogText() string {
	b.textMu.Lock()
	defer b.textMu.Unlock()
	if now := b.rt.Catalog().Snapshot().Version; b.textVersion != now {
		b.cachedText, b.textVersion = b.rt.CatalogText(loadout.TextOptions{Tokens: catalogTokens}), now
	}
	return b.cachedText
}

// skillID is the id in the store of a skill of a source, "" where it is not of the
// library.
func (b *base) skillID(origin, dir string) string {
	if s := b.skillIDs[origin]; s != nil {
		return s.SkillID(dir)
	}
	return ""
}

// search ranks many skills by what the library has for all in common. Those that come
// with the program, of which it does not know, are put between.
func (b *base) search(ctx context.Context, query string, limit int) ([]string, error) {
	hits, err := b.searchLibrary(ctx, query, limit)
	if err != nil {
		return nil, err
	}
	own, err := b.assembler.searchBundled(ctx, query, limit)
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range max(len(hits), len(own)) {
		if i < len(hits) {
			out = append(out, hits[i])
		}
		if i < len(own) && !slices.Contains(out, own[i]) {
			out = append(out, own[i])
		}
	}
	return out, nil
}

// searchLibrary are the names of skills of the library that fit a query, the best first.
func (b *base) searchLibrary(ctx context.Context, query string, limit int) ([]string, error) {
	if b.plan.draft != nil {
		return b.plan.draft.Search(ctx, query, limit)
	}
	hits, err := b.assembler.o.Library.Search(ctx, b.principal, query, limit)
	names := make([]string, len(hits))
	for i, h := range hits {
		names[i] = h.Name
	}
	return names, err
}
