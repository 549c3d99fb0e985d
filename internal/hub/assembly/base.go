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
	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/toolset"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/tools"
)

// base holds the runtime, the catalog and the tools. A user's setups with the
// same skills, servers and rules share a base.
type base struct {
	assembler       *Assembler
	key             string // identifies the base and its connections
	principal       account.Principal
	policyPrincipal policy.Principal
	plan            *plan
	rt              *loadout.Runtime
	set             *tools.Set
	servers         map[string]agents.Server           // servers defined by documents, by name
	publishers      []*Publisher                       // servers whose skills are used
	published       *catalog.Catalog                   // only the skills of these servers, for search; nil without publishers
	skillIDs        map[string]library.SkillIdentifier // IDs of library skills, by source origin

	ready chan struct{} // closed when open has returned and err is set
	err   error

	stop         context.CancelFunc // ends the goroutines
	running      sync.WaitGroup
	stopWatching []func()
	changed      chan struct{}                  // receives a value when settings change
	settings     atomic.Pointer[catalog.Filter] // current settings
	seenRevision atomic.Int64                   // revision of the skills in the catalog

	textMu      sync.Mutex // guards the fields below
	cachedText  string     // catalog text of the snapshot with version textVersion
	textVersion uint64
	textDay     time.Time // day of the skill order that the text uses

	orderMu    sync.Mutex // guards the fields below
	order      skillOrder
	orderRetry time.Time // when the order may be read again after a failure

	platformMu     sync.Mutex                       // guards the field below
	platformOwners map[policy.Digest][]agents.Owner // whose platform values the servers of a skill version got

	// The following fields are guarded by assembler.mu.
	users         int
	idle          *time.Timer    // closes an unused base
	since         time.Time      // time at which users became 0
	conversations map[string]int // number of setups by conversation ID
	watchers      int            // number of setups that watch the catalog
	unwatch       func()
}

// newBase returns a base for a plan. The caller must open the base.
func (k *Assembler) newBase(key string, p *plan) *base {
	return &base{
		assembler: k, key: key, principal: p.principal, policyPrincipal: UserPrincipal(p.principal.User), plan: p,
		servers: map[string]agents.Server{}, skillIDs: map[string]library.SkillIdentifier{}, ready: make(chan struct{}), stop: func() {}, changed: make(chan struct{}, 1),
		conversations: map[string]int{}, platformOwners: map[policy.Digest][]agents.Owner{},
	}
}

// open creates the catalog, the runtime and the tools.
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
	if err := b.openPublishers(ctx); err != nil {
		return err
	}
	sources, err := b.newSources(ctx, b.plan)
	if err != nil {
		return err
	}
	var published []catalog.Source
	for _, p := range b.publishers {
		published = append(published, p.skills)
	}
	sources = append(sources, published...)
	if len(published) > 0 {
		if b.published, err = catalog.New(published, nil); err != nil {
			return err
		}
	}
	select { // applySettings handles changes from now on
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
	for _, p := range b.publishers {
		b.running.Go(func() { _ = p.source.Watch(running, b.signalChange) }) // returns nil after stop
	}
	return nil
}

// close closes everything that open opened.
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
	for _, p := range b.publishers {
		p.release()
	}
	for _, s := range b.assembler.pool.Servers() {
		if s.Config().Identity() == b.key {
			s.Close() // no other base uses it
		}
	}
	if b.rt != nil {
		errs = append(errs, b.rt.Close())
	}
	return errors.Join(errs...)
}

// watchSettings calls f with the filter for the namespaces, now and after each
// change. f must not block.
func (b *base) watchSettings(ctx context.Context, in []store.Namespace, f func(catalog.Filter)) error {
	stop, err := b.assembler.o.Agents.WatchFilter(ctx, in, func(now catalog.Filter, why error) {
		if why != nil {
			now = catalog.Filter{Disabled: true} // fail closed
		}
		f(now)
	})
	if err == nil {
		b.stopWatching = append(b.stopWatching, stop)
	}
	return err
}

// signalChange makes applySettings apply the settings again.
func (b *base) signalChange() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// applySettings applies changed settings until ctx is done.
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
		if err == nil && b.published != nil {
			err = b.published.Reload(ctx)
		}
		if err != nil && ctx.Err() == nil {
			b.assembler.o.Logger.Error("skills are switched off: cannot apply settings", "error", err)
			_ = c.SetFilter(catalog.Filter{Disabled: true}) // cannot fail: no patterns
		}
	}
}

// refresh updates the catalog to the current revision in the database.
func (b *base) refresh(ctx context.Context) error {
	for _, p := range b.publishers {
		p.source.ListIfOld()
	}
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

// markSeen records the revision of the catalog. If a source failed, it does
// nothing, so that the next refresh tries again.
func (b *base) markSeen(now int64) {
	for _, p := range b.rt.Catalog().Snapshot().Problems() {
		if p.Path == p.Origin { // the whole source failed
			return
		}
	}
	for was := b.seenRevision.Load(); was < now && !b.seenRevision.CompareAndSwap(was, now); was = b.seenRevision.Load() {
	}
}

// watchCatalog keeps the catalog up to date until stop is called, so that clients
// can be notified of changes.
func (b *base) watchCatalog() (stop func()) {
	b.assembler.mu.Lock()
	defer b.assembler.mu.Unlock()
	if b.watchers++; b.watchers == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		b.unwatch = cancel
		b.running.Go(func() { _ = b.rt.Catalog().Run(ctx) }) // returns nil after cancel
	}
	return sync.OnceFunc(func() {
		b.assembler.mu.Lock()
		defer b.assembler.mu.Unlock()
		if b.watchers--; b.watchers == 0 {
			b.unwatch()
		}
	})
}

// newTools returns the tools of the plan's servers and skills.
func (b *base) newTools() *tools.Set {
	k := b.assembler
	var configs []*upstream.Config
	for _, s := range b.plan.servers {
		b.servers[s.Name] = s
		configs = append(configs, s.Config)
	}
	return tools.ForRuntime(b.rt, toolset.With(&tools.Options{
		Profile: configs, Rules: b.plan.rules,
		Shared: func(c *upstream.Config) bool {
			return !k.o.Single && b.servers[c.Name].In != store.UserNamespace(string(b.principal.User))
		},
		Variables:    upstream.Variables{HowToSet: agents.HowToSet},
		VariablesFor: func(c *upstream.Config) upstream.Variables { return b.plan.values[c.Name] },
		SkillServers: b.skillServers(), Providers: k.o.Providers,
		Grants: NewGrantStore(k.o.DB, b.policyPrincipal), Audit: k.auditor().Append, OnCallEnd: b.recordCall, Logger: k.o.Logger,
	}, toolset.Options{
		Pool: k.pool, Identity: b.key, OtherService: b.documentService, Definitions: definitions{b},
		Personal: func(c *upstream.Config) bool { return b.plan.stamps[c.Name] != "" },
	}))
}

// newScripts returns the options for running skill scripts.
func (b *base) newScripts() *loadout.Scripts {
	k := b.assembler
	return &loadout.Scripts{
		Sandbox: newQueuedBackend(k.o.Sandbox, k.o.RunQueue, string(b.principal.User)), Principal: b.policyPrincipal, Audit: k.auditor().Append, Bounds: k.o.Bounds,
		Grants:      &reviewedGrants{Store: NewGrantStore(k.o.DB, b.policyPrincipal), db: k.o.DB, principal: b.policyPrincipal, checkRunnable: b.checkRunnable},
		ReadServers: tools.ReadServers, SecretFor: b.secretValue, Packages: k.o.Packages, Executable: k.o.Executable, PrivateNetworks: k.o.PrivateNetworks, Getenv: k.o.Getenv,
		FolderDir: k.createDir("work"), CacheDir: k.createDir("cache"), Logger: k.o.Logger,
		DirectWorkspace: true, // the workspace is the conversation's own, and no user works in it
	}
}

// checkRunnable returns an error unless the code with the given digest is bundled
// or approved.
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

// catalogTokens is the maximum length of the catalog text for a model, in tokens.
const catalogTokens = 4000

// catalogText renders the catalog for a model. It caches the text, because
// rendering many skills is slow. It does not cache text in which the skills are
// unordered because of a database error.
func (b *base) catalogText(ctx context.Context) string {
	snap, day := b.rt.Catalog().Snapshot(), orderDay(time.Now())
	cached := func() (string, bool) {
		return b.cachedText, b.textVersion == snap.Version && b.textDay.Equal(day)
	}
	b.textMu.Lock()
	text, ok := cached()
	b.textMu.Unlock()
	if ok {
		return text
	}
	first, ordered := b.firstSkills(ctx, snap, day) // without the lock, because it may take long
	b.textMu.Lock()
	defer b.textMu.Unlock()
	if text, ok := cached(); ok {
		return text
	}
	used := false
	text = snap.Text(catalog.FormatOptions{Tokens: catalogTokens, First: func() []string { used = true; return first }})
	if ordered || !used {
		b.cachedText, b.textVersion, b.textDay = text, snap.Version, day
	}
	return text
}

// skillID returns the ID of a skill, or "" if the skill is not in the library.
func (b *base) skillID(origin, dir string) string {
	if s := b.skillIDs[origin]; s != nil {
		return s.SkillID(dir)
	}
	return ""
}

// search returns the matching skills of the library, of MCP servers and of the
// program. The ranks of different searches do not say which skill fits better, so
// weak matches follow all others.
func (b *base) search(ctx context.Context, query string, limit int) ([]catalog.Match, error) {
	hits, err := b.searchLibrary(ctx, query, limit)
	if err != nil {
		return nil, err
	}
	own, err := b.assembler.searchBundled(ctx, query, limit)
	if err != nil {
		return nil, err
	}
	published, err := b.searchPublished(ctx, query, limit)
	if err != nil {
		return nil, err
	}
	var out []catalog.Match
	known := map[string]bool{}
	for i := range max(len(hits), len(own), len(published)) {
		for _, found := range [][]catalog.Match{hits, own, published} {
			if i < len(found) && !known[found[i].Name] {
				known[found[i].Name] = true
				out = append(out, found[i])
			}
		}
	}
	slices.SortStableFunc(out, func(a, b catalog.Match) int { return weakRank(a) - weakRank(b) })
	return out, nil
}

func weakRank(m catalog.Match) int {
	if bm25.IsWeak(m.Fit) {
		return 1
	}
	return 0
}

// searchPublished returns the matching skills of MCP servers, best first.
func (b *base) searchPublished(ctx context.Context, query string, limit int) ([]catalog.Match, error) {
	if b.published == nil {
		return nil, nil
	}
	hits, err := b.published.Search(ctx, query, catalog.SearchOptions{Limit: limit})
	return matchesOf(hits), err
}

// searchLibrary returns the matching skills of the library, best first.
func (b *base) searchLibrary(ctx context.Context, query string, limit int) ([]catalog.Match, error) {
	if b.plan.draft != nil {
		return b.plan.draft.Search(ctx, query, limit)
	}
	hits, err := b.assembler.o.Library.Search(ctx, b.principal, query, limit)
	out := make([]catalog.Match, len(hits))
	for i, h := range hits {
		out[i] = catalog.Match{Name: h.Name, Fit: h.Fit}
	}
	return out, err
}
