package library

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Review is what a person decided about the code of a version.
type Review = store.Review

// The states of a review.
const (
	Pending  = store.Pending
	Approved = store.Approved
	Rejected = store.Rejected
)

// Skill is a skill, and what its current version says of it.
type Skill struct {
	ID          string      `json:"id"`
	Namespace   Namespace   `json:"namespace"`
	Name        string      `json:"name"`
	DisplayName string      `json:"displayName,omitempty"`
	Description string      `json:"description"`
	Tags        []string    `json:"tags,omitempty"`
	Number      int64       `json:"number"`            // of the current version
	Label       string      `json:"version,omitempty"` // as its author calls it
	Digest      string      `json:"digest"`
	Review      Review      `json:"review"`
	Code        bool        `json:"code"`            // it has scripts, servers or a provider, which a review is about
	Tokens      int         `json:"tokens"`          // of the instructions
	LineTokens  int         `json:"lineTokens"`      // of the line by which a model is told of it
	Score       *Score      `json:"score,omitempty"` // nil where nobody rated it, or it was not asked for
	Size        int64       `json:"size"`            // of all files, in bytes
	Files       int64       `json:"files"`
	Hidden      bool        `json:"hidden"`
	Source      *Source     `json:"source,omitempty"` // nil of an upload
	CreatedBy   string      `json:"createdBy"`
	Created     time.Time   `json:"created"`
	Updated     time.Time   `json:"updated"`
	Listings    []Namespace `json:"listings,omitempty"` // where it is seen; in lists it is left out
}

func newSkill(s store.Skill, listings []Namespace) *Skill {
	m := readMeta(s.Meta)
	return &Skill{
		ID: s.ID, Namespace: s.Namespace, Name: s.Name, DisplayName: s.Display, Description: s.Description, Tags: s.Tags,
		Number: s.Number, Label: s.Label, Digest: s.Digest, Review: s.Review, Code: m.hasCode(), Tokens: m.Tokens, LineTokens: m.catalogTokens(s), Size: s.Size, Files: s.Files,
		Hidden: s.Hidden, Source: readSource(s.Source), CreatedBy: s.CreatedBy, Created: s.Created, Updated: s.Updated, Listings: listings,
	}
}

// Skill returns a skill that the principal sees. Of its listings those are returned that
// he may see too. One that is hidden is seen by those alone who manage it.
func (l *Library) Skill(ctx context.Context, p account.Principal, id string) (*Skill, error) {
	h, err := l.authorize(ctx, p, account.SkillRead, id)
	if err != nil {
		return nil, err
	}
	return h.viewFor(p), nil
}

// viewFor is what a principal sees of a skill.
func (h *skillRecord) viewFor(p account.Principal) *Skill {
	all := h.check(p, account.SkillPublish, h.CreatedBy) == nil
	return newSkill(h.Skill, slices.DeleteFunc(slices.Clone(h.listings), func(n Namespace) bool {
		return !all && !account.Can(p, account.SkillRead, resourceOf(n, h.CreatedBy))
	}))
}

// Query asks for skills.
type Query struct {
	// In are the namespaces that are looked at; none is all that the principal reaches
	// by name: his own, his groups', and the public one.
	In []Namespace
	// Text is part of the name, the title, the tags or the description; "" is in all.
	Text string
	// Hidden asks for hidden ones too, in namespaces where the principal manages them.
	Hidden bool
	// Shadowed asks also for skills whose name a nearer namespace has.
	Shadowed bool
	// Page is a page by name; its size is that before shadowed skills are left out.
	store.Page
}

// List returns skills by name, and how to ask for more, "" at the end. It reads
// metadata alone.
func (l *Library) List(ctx context.Context, p account.Principal, q Query) ([]*Skill, string, error) {
	in, err := l.queryNamespaces(p, q.In, q.Hidden)
	if err != nil {
		return nil, "", err
	}
	rows, next, err := l.db.Skills.List(ctx, store.SkillQuery{Namespaces: in, Text: q.Text, Hidden: q.Hidden, Page: q.Page})
	if err != nil {
		return nil, "", err
	}
	// Of a question for all that is reached, as of no namespace by name, each is asked for.
	rows = slices.DeleteFunc(rows, func(s store.Skill) bool { return s.Hidden && !canSeeHidden(p, s) })
	if !q.Shadowed && len(in) > 1 && len(rows) > 0 {
		if err := l.index.refresh(ctx); err != nil {
			return nil, "", err
		}
		rows = slices.DeleteFunc(rows, func(s store.Skill) bool { return l.index.isShadowed(s.ID, s.Name, in) })
	}
	out := make([]*Skill, len(rows))
	for i, s := range rows {
		out[i] = newSkill(s, nil)
	}
	return out, next, l.addScores(ctx, out)
}

// canSeeHidden reports whether a principal sees a skill though it is hidden.
func canSeeHidden(p account.Principal, s store.Skill) bool {
	at := resourceOf(s.Namespace, s.CreatedBy)
	at.Hidden = true
	return account.Can(p, account.SkillRead, at)
}

// queryNamespaces are the namespaces of a question, each of which the principal may read.
func (l *Library) queryNamespaces(p account.Principal, in []Namespace, hidden bool) ([]Namespace, error) {
	if len(in) == 0 {
		return namespaces(p, account.SkillRead)
	}
	if len(in) > store.MaxNamespaces {
		return nil, fmt.Errorf("%w: %d namespaces, more than %d", ErrInvalid, len(in), store.MaxNamespaces)
	}
	for _, n := range in {
		action := account.SkillRead
		if hidden {
			action = account.SkillHide
		}
		if err := checkNamespace(p, action, n); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// Hit is a skill that a search found.
type Hit struct {
	*Skill
	Score float64 `json:"score"` // more is better; comparable within one search only
}

// maxHits bounds what one search returns.
const maxHits = 100

// Search ranks the skills that the principal reaches by name, hidden and shadowed ones
// left out, by how well their names, descriptions and tags fit a query. It returns at
// most limit of them; 0 is 10, and more than 100 is that.
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
	return l.loadHits(ctx, p, l.index.search(query, in, min(limit, maxHits)))
}

// loadHits are the skills of a ranking, of which those are left out that are gone, or not
// seen any more.
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
			continue // it went meanwhile
		}
		h := &skillRecord{Skill: *rows[f.id], listings: listings[f.id]}
		if h.check(p, account.SkillRead, h.CreatedBy) == nil { // else it is seen no longer
			hits = append(hits, Hit{h.viewFor(p), f.score})
		}
	}
	shown := make([]*Skill, len(hits))
	for i, h := range hits {
		shown[i] = h.Skill
	}
	return hits, l.addScores(ctx, shown)
}

// Ref names a skill, as an agent that uses it does: by its name alone, or precisely. It
// is kept as it was asked for, and resolved when it is used.
type Ref struct {
	Name string `json:"name"`
	// ID is that of one skill, whatever it is called elsewhere; "" is by name.
	ID string `json:"skill_id,omitempty"`
	// Namespace is where the name is looked for; "" is everywhere that the principal
	// reaches, nearest first.
	Namespace Namespace `json:"namespace,omitempty"`
	// Digest pins a version by what its files are; "" is the current one.
	Digest string `json:"content_hash,omitempty"`
}

// Resolution is what a reference stands for.
type Resolution struct {
	Skill   *Skill    `json:"skill"`
	Version *Version  `json:"version"` // the pinned one, or the current one
	In      Namespace `json:"in"`      // where it was found
}

// Resolve returns the skill and version that a reference stands for when the principal
// uses it. As something names it, one that is hidden is found as well. It fails with
// [ErrNotFound] where there is none, or the principal may not use it, and with
// [ErrConflict] where a precise reference names another skill than it says.
func (l *Library) Resolve(ctx context.Context, p account.Principal, r Ref) (*Resolution, error) {
	return l.resolve(ctx, p, account.SkillUse, r, true)
}

// ResolveForBinding is [Library.Resolve] for a reference that is about to be made: the principal
// may bind the skill, and one that is hidden is not found by those who do not manage it.
func (l *Library) ResolveForBinding(ctx context.Context, p account.Principal, r Ref) (*Resolution, error) {
	return l.resolve(ctx, p, account.SkillBind, r, false)
}

func (l *Library) resolve(ctx context.Context, p account.Principal, a account.Action, r Ref, bound bool) (*Resolution, error) {
	h, in, err := l.findByRef(ctx, p, a, r, bound)
	if err != nil {
		return nil, err
	}
	digest := cmp.Or(r.Digest, h.Digest)
	v, err := l.db.Versions.GetByDigest(ctx, h.ID, digest)
	if isNotFound(err) {
		return nil, fmt.Errorf("skill %.100q: there is no version with the digest %.80q: %w", h.Name, digest, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return &Resolution{Skill: h.viewFor(p), Version: newVersion(v, v.Number == h.Number), In: in}, nil
}

// findByRef finds the skill that a reference names.
func (l *Library) findByRef(ctx context.Context, p account.Principal, a account.Action, r Ref, bound bool) (*skillRecord, Namespace, error) {
	if r.ID != "" {
		h, err := l.loadAuthorized(ctx, p, a, r.ID, bound)
		if err != nil {
			return nil, "", err
		}
		if r.Name != "" && r.Name != h.Name {
			return nil, "", fmt.Errorf("skill %.100q: it is named %q, not %.100q: %w", r.ID, h.Name, r.Name, ErrConflict)
		}
		return h, h.Namespace, nil
	}
	in, err := refNamespaces(p, a, r)
	if err != nil {
		return nil, "", err
	}
	found, err := l.db.Skills.Find(ctx, r.Name, in)
	if err != nil {
		return nil, "", err
	}
	for _, c := range found {
		h, err := l.loadAuthorized(ctx, p, a, c.ID, bound)
		if err == nil || !isNotFound(err) {
			return h, c.ListedIn, err
		}
	}
	return nil, "", notFound(r.Name)
}

// refNamespaces are the namespaces in which the name of a reference is looked for.
func refNamespaces(p account.Principal, a account.Action, r Ref) ([]Namespace, error) {
	if r.Namespace == "" {
		return namespaces(p, a)
	}
	return []Namespace{r.Namespace}, checkNamespace(p, a, r.Namespace)
}

// authorizeBound is a skill on which a principal may do an action by something that names it,
// whether or not it is hidden.
func (l *Library) authorizeBound(ctx context.Context, p account.Principal, a account.Action, id string) (*skillRecord, error) {
	return l.loadAuthorized(ctx, p, a, id, true)
}

func (l *Library) loadAuthorized(ctx context.Context, p account.Principal, a account.Action, id string, bound bool) (*skillRecord, error) {
	h, err := l.getSkill(ctx, &l.db.Tables, id)
	if err != nil {
		return nil, err
	}
	shown := *h
	shown.Hidden = h.Hidden && !bound
	if err := shown.check(p, a, h.CreatedBy); err != nil {
		return nil, err
	}
	return h, nil
}

// Candidate is a skill that a name could stand for, and its fate.
type Candidate struct {
	In     Namespace `json:"in"`
	Skill  *Skill    `json:"skill"`
	Chosen bool      `json:"chosen"`
	Reason string    `json:"reason"`
}

// Explain lists every skill that a name could stand for when the principal uses it,
// nearest first, with why it was chosen or not.
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
		if account.Can(p, account.SkillRead, candidateResource(c)) {
			why := "the nearest of that name"
			switch {
			case c.Hidden:
				why = "it is hidden: only what names it already uses it"
			case chosen != "":
				why = "a skill in " + chosen + " is nearer"
			}
			out = append(out, Candidate{In: c.ListedIn, Skill: newSkill(c.Skill, nil), Chosen: !c.Hidden && chosen == "", Reason: why})
		}
		if !c.Hidden && chosen == "" {
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
	at := resourceOf(c.ListedIn, author)
	at.Hidden = c.Hidden
	return at
}

// Source is where a skill was imported from.
type Source struct {
	Kind     string    `json:"kind"` // as package remote names it
	URL      string    `json:"url"`
	Dir      string    `json:"dir"` // in the place, "." for the whole
	Ref      string    `json:"ref,omitempty"`
	Commit   string    `json:"commit,omitempty"`
	Imported time.Time `json:"imported"`
	By       string    `json:"by"` // the user whose credential is used
	// Pinned keeps the skill as it is: no update takes it along, and nobody is told of
	// newer states of the place.
	Pinned bool `json:"pinned,omitempty"`
}

// origin is the label by which all skills of one place are found.
func (s *Source) origin() string {
	if s == nil {
		return ""
	}
	return s.URL
}

func (s *Source) json() json.RawMessage {
	if s == nil {
		return nil
	}
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // a struct of texts, a flag and a time, which is always encoded
	}
	return data
}

// readSource is nil where there is none.
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
