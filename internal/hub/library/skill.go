package library

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// Review is the review state of a version: pending, approved or rejected.
type Review = store.Review

// Review states.
const (
	Pending  = store.Pending
	Approved = store.Approved
	Rejected = store.Rejected
	// ChangesRequested is accepted in a [Decision] only. The version is rejected,
	// in the state [skillstate.ChangesRequested].
	ChangesRequested = store.ChangesRequested
)

// Skill describes a skill and its current version, as returned by the API.
// [store.Skill] is the database row, which stores parts of it as JSON.
type Skill struct {
	ID          string      `json:"id"`
	Namespace   Namespace   `json:"namespace" doc:"Its own namespace: user:ID, group:ID, public, hub for the directories of the operator, or bundled"`
	Name        string      `json:"name"`
	DisplayName string      `json:"displayName,omitempty"`
	Description string      `json:"description"`
	Tags        []string    `json:"tags" nullable:"false"`
	Category    string      `json:"category,omitempty" doc:"Given by the author"`
	Author      string      `json:"author,omitempty" doc:"Given by the author; not verified"`
	Number      int64       `json:"number" doc:"Number of the current version"`
	Label       string      `json:"version,omitempty" doc:"Version given by the author"`
	Digest      string      `json:"digest" doc:"Digest of the files of the current version"`
	Review      Review      `json:"review" enum:"pending,approved,rejected"`
	Code        bool        `json:"code" doc:"Whether it has scripts, servers or a provider that need a review"`
	Runnable    bool        `json:"runnable" doc:"Whether its code may run, because a reviewer approved these files"`
	Tokens      int         `json:"tokens" doc:"Estimate for the instructions"`
	LineTokens  int         `json:"catalogTokens" doc:"Estimate for its line in the context of every conversation; 0 if there is none"`
	Rating      *Score      `json:"rating,omitempty" doc:"Absent without ratings; only in lists, searches and details"`
	Uses        *int64      `json:"uses,omitempty" doc:"Loads and calls in the period; only in lists with uses, if you may see its usage"`
	Attention   []Attention `json:"attention,omitempty" enum:"review,scan,source,source-failed" nullable:"false" doc:"Why it needs your attention: review: a version is awaiting your review; scan: the scan of the current version failed; source: the source has a newer version; source-failed: the checks of the source have failed for at least 12 hours. Only in lists"`
	Size        int64       `json:"size" doc:"Total size in bytes"`
	Files       int64       `json:"files" doc:"Number of files"`
	Hidden      bool        `json:"hidden"`
	Source      *Source     `json:"source,omitempty" doc:"Source of the import; absent for an upload"`
	CreatedBy   string      `json:"createdBy"`
	Created     time.Time   `json:"created"`
	Updated     time.Time   `json:"updated"`

	// Listings holds the namespaces that list the skill. It is not set in lists.
	Listings []Namespace `json:"-"`
}

func newSkill(s store.Skill, listings []Namespace) *Skill {
	m := readMeta(s.Meta)
	return &Skill{
		ID: s.ID, Namespace: s.Namespace, Name: s.Name, DisplayName: s.Display, Description: untrusted.New(s.Description).ForPage(), Tags: append([]string{}, s.Tags...),
		Category: untrusted.New(m.Category).ForPage(), Author: untrusted.New(m.Author).ForPage(),
		Number: s.Number, Label: s.Label, Digest: s.Digest, Review: s.Review, Code: m.hasCode(), Runnable: s.Review == Approved, Tokens: m.Tokens, LineTokens: m.catalogTokens(s), Size: s.Size, Files: s.Files,
		Hidden: s.Hidden, Source: readSource(s.Source), CreatedBy: s.CreatedBy, Created: s.Created, Updated: s.Updated, Listings: listings,
	}
}

// Skill returns a skill with the listings that the principal may see. Only
// managers may see hidden skills, and skills whose current version was rejected.
func (l *Library) Skill(ctx context.Context, p account.Principal, id string) (*Skill, error) {
	h, err := l.authorize(ctx, p, account.SkillRead, id)
	if err != nil {
		return nil, err
	}
	return h.viewFor(p), nil
}

// viewFor returns a skill with the listings that p may see.
func (h *skillRecord) viewFor(p account.Principal) *Skill {
	all := h.check(p, account.SkillPublish, h.CreatedBy) == nil
	return newSkill(h.Skill, slices.DeleteFunc(slices.Clone(h.listings), func(n Namespace) bool {
		return !all && !account.Can(p, account.SkillRead, accountResource(n, h.CreatedBy))
	}))
}

// queryNamespaces returns the namespaces that a query covers. The principal must
// be allowed to read each of them.
func (l *Library) queryNamespaces(p account.Principal, in []Namespace, hidden bool) ([]Namespace, error) {
	if len(in) == 0 {
		return namespaces(p, account.SkillRead)
	}
	if len(in) > store.MaxNamespaces {
		return nil, fmt.Errorf("%w: too many namespaces (%d, limit %d)", ErrInvalid, len(in), store.MaxNamespaces)
	}
	for _, n := range in {
		action, at := account.SkillRead, accountResource(n, "")
		if hidden {
			action, at.ReadOnly = account.SkillHide, false // for the rights; nothing is hidden
		}
		if err := checkNamespaceAs(p, action, n, at); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// Hit is a search result.
type Hit struct {
	*Skill
	Score float64 `json:"score" doc:"Higher is better; comparable only within one search"`
	Weak  bool    `json:"weak" doc:"Whether the skill probably does not fit: most of what the query says does not occur in its name, description, tags and examples"`
	// Fit says how well the skill fits the query; see [catalog.Hit].
	Fit float64 `json:"-"`
}

// maxHits is the maximum number of search results.
const maxHits = 100

// Search returns the visible skills whose names, descriptions and tags match a
// query, best first. Of nearly equal ones, those come first that the principal and
// its groups use most, and then those that were updated last. It omits hidden and shadowed skills. It returns up to limit
// results, and never more than 100. A limit of 0 means 10.
func (l *Library) Search(ctx context.Context, p account.Principal, query string, limit int) ([]Hit, error) {
	in, err := namespaces(p, account.SkillRead)
	if err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = 10
	}
	if err := l.index.refresh(ctx); err != nil {
		return nil, err
	}
	found := l.index.search(query, in, maxHits)
	if err := l.orderNearEqual(ctx, p, found); err != nil {
		return nil, fmt.Errorf("order search results: %w", err)
	}
	return l.loadHits(ctx, p, found[:min(limit, len(found))])
}

// loadHits returns the search results whose skills the principal may see.
func (l *Library) loadHits(ctx context.Context, p account.Principal, found []rankedSkill) ([]Hit, error) {
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.id
	}
	rows, listings, err := l.db.Skills.GetMany(ctx, ids)
	if err != nil {
		return nil, err
	}
	var hits []Hit
	for _, f := range found {
		if rows[f.id] == nil {
			continue // just deleted
		}
		h := &skillRecord{Skill: *rows[f.id], listings: listings[f.id]}
		if h.check(p, account.SkillRead, h.CreatedBy) == nil { // the index may be older than the principal's rights
			hits = append(hits, Hit{h.viewFor(p), f.score, bm25.IsWeak(f.fit), f.fit})
		}
	}
	shown := make([]*Skill, len(hits))
	for i, h := range hits {
		shown[i] = h.Skill
	}
	return hits, l.addScores(ctx, shown)
}

// Ref refers to a skill by name or ID. It is resolved each time it is used.
type Ref struct {
	Name string `json:"name"`
	// ID is the ID of the skill. If it is "", the skill is identified by name.
	ID string `json:"skill_id,omitempty"`
	// Namespace is the namespace in which the name is resolved. If it is "", the
	// name is resolved in all of the principal's namespaces, nearest first.
	Namespace Namespace `json:"namespace,omitempty"`
	// Digest pins the version with these files; "" means the current version.
	Digest string `json:"content_hash,omitempty"`
}

// Resolution is the result of resolving a [Ref].
type Resolution struct {
	Skill   *Skill
	Version *Version  // the pinned or current version
	In      Namespace // the namespace that lists it
}

// Resolve returns the skill and version that a reference identifies, even if the
// skill is hidden. It returns [ErrNotFound] if the skill does not exist or the
// principal is not allowed to use it. It returns [ErrConflict] if the ID and the
// name belong to different skills, and a [*ReviewError] if only the uploader and
// the reviewers may access the version.
func (l *Library) Resolve(ctx context.Context, p account.Principal, r Ref) (*Resolution, error) {
	h, in, err := l.findByRef(ctx, p, r)
	if err != nil {
		return nil, err
	}
	v, err := l.getVersionFor(ctx, p, h, r.Digest)
	if err != nil {
		return nil, err
	}
	return &Resolution{Skill: h.viewFor(p), Version: h.newVersionFor(p, v), In: in}, nil
}

// findByRef returns the skill that a reference identifies, and the namespace that
// lists it.
func (l *Library) findByRef(ctx context.Context, p account.Principal, r Ref) (*skillRecord, Namespace, error) {
	if r.ID != "" {
		h, err := l.loadAuthorized(ctx, p, account.SkillUse, r.ID, true)
		if err != nil {
			return nil, "", err
		}
		if r.Name != "" && r.Name != h.Name {
			return nil, "", fmt.Errorf("skill %.100q: name mismatch: want %q, got %.100q: %w", r.ID, h.Name, r.Name, ErrConflict)
		}
		return h, h.Namespace, nil
	}
	in, err := refNamespaces(p, account.SkillUse, r)
	if err != nil {
		return nil, "", err
	}
	found, err := l.db.Skills.Find(ctx, r.Name, in)
	if err != nil {
		return nil, "", err
	}
	for _, c := range found {
		h, err := l.loadAuthorized(ctx, p, account.SkillUse, c.ID, true)
		if err == nil || !isNotFound(err) {
			return h, c.ListedIn, err
		}
	}
	return nil, "", notFound(r.Name)
}

// refNamespaces returns the namespaces in which the reference's name is resolved.
func refNamespaces(p account.Principal, a account.Action, r Ref) ([]Namespace, error) {
	if r.Namespace == "" {
		return namespaces(p, a)
	}
	return []Namespace{r.Namespace}, checkNamespace(p, a, r.Namespace)
}

// authorizeBound is like authorize, but for a skill that is already referenced.
// The skill may be hidden.
func (l *Library) authorizeBound(ctx context.Context, p account.Principal, a account.Action, id string) (*skillRecord, error) {
	return l.loadAuthorized(ctx, p, a, id, true)
}

func (l *Library) loadAuthorized(ctx context.Context, p account.Principal, a account.Action, id string, bound bool) (*skillRecord, error) {
	h, err := l.getSkill(ctx, &l.db.Tables, id)
	if err != nil {
		return nil, err
	}
	shown := *h
	shown.bound = bound
	if err := shown.check(p, a, h.CreatedBy); err != nil {
		return nil, err
	}
	return h, nil
}

// Candidate is a skill to which a name might resolve.
type Candidate struct {
	In     Namespace `json:"in" doc:"Namespace in which it was found"`
	Skill  *Skill    `json:"skill"`
	Chosen bool      `json:"chosen"`
	Reason string    `json:"reason"`
}

// Explain returns the visible skills with the given name, in order of
// precedence, and explains which of them the name resolves to.
func (l *Library) Explain(ctx context.Context, p account.Principal, name string) ([]Candidate, error) {
	in, err := namespaces(p, account.SkillRead)
	if err != nil {
		return nil, err
	}
	found, err := l.db.Skills.Find(ctx, name, in)
	if err != nil {
		return nil, err
	}
	var out []Candidate
	chosen := ""
	for _, c := range found {
		shown := !c.Hidden && !isWithheld(c.Skill)
		if account.Can(p, account.SkillRead, candidateResource(c)) {
			why := "nearest skill with that name"
			switch {
			case c.Hidden:
				why = "hidden: only existing references resolve to it"
			case isWithheld(c.Skill):
				why = "rejected in review: only its uploader and reviewers get it"
			case chosen != "":
				why = "shadowed by the skill in " + chosen
			}
			out = append(out, Candidate{In: c.ListedIn, Skill: newSkill(c.Skill, nil), Chosen: shown && chosen == "", Reason: why})
		}
		if shown && chosen == "" {
			chosen = string(c.ListedIn)
		}
	}
	return out, nil
}

func candidateResource(c store.Candidate) account.Resource {
	author := ""
	if c.ListedIn == c.Namespace {
		author = c.CreatedBy
	}
	at := accountResource(c.ListedIn, author)
	at.Hidden = c.Hidden || isWithheld(c.Skill)
	return at
}

// Source describes where a skill was imported from.
type Source struct {
	Kind     string    `json:"kind"` // see package remote
	URL      string    `json:"url"`
	Dir      string    `json:"dir" doc:"In the source; . for all of it"`
	Ref      string    `json:"ref,omitempty"`
	Commit   string    `json:"commit,omitempty"`
	Imported time.Time `json:"imported"`
	By       string    `json:"by" doc:"User whose credential is used"`
	// Pinned excludes the skill from update notifications too.
	Pinned bool `json:"pinned" doc:"Whether updates skip it"`
}

// origin returns the label shared by all skills from a source.
func (s *Source) origin() string {
	if s == nil {
		return ""
	}
	return s.URL
}

func (s *Source) encode() json.RawMessage {
	if s == nil {
		return nil
	}
	data, err := json.Marshal(struct {
		*Source
		Pinned bool `json:"pinned,omitempty"` // absent in stored rows if false
	}{s, s.Pinned})
	if err != nil {
		panic(err) // strings, a bool and a time always encode
	}
	return data
}

// readSource decodes a source. It returns nil if there is none.
func readSource(data json.RawMessage) *Source {
	if data == nil {
		return nil
	}
	s := new(Source)
	if json.Unmarshal(data, s) != nil || s.URL == "" {
		return nil
	}
	return s
}
