package library

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Order is the order of a list of skills.
type Order string

// Orders of a list. All but [ByName] and [ByTitle] put the highest value first.
const (
	ByName      Order = "name"
	ByTitle     Order = "title"     // the display name, or else the name, ignoring case
	ByRelevance Order = "relevance" // matches of a search for the text, then skills that contain it
	ByUpdate    Order = "updated"
	ByUses      Order = "used" // loads and calls since Query.Since
	ByRating    Order = "rating"
	ByTokens    Order = "tokens"
	ByCreation  Order = "created"
	ByApproval  Order = "approved" // when a reviewer approved the current version
	ByTeamUses  Order = "team"     // uses by the principal's groups; see [Library.countTeamUses]
)

// Query selects skills for [Library.List].
type Query struct {
	// In lists the namespaces to search. If it is empty, they are the
	// principal's own, those of its groups, and those that everyone can see.
	In []Namespace
	// Text is a substring of the name, the title, the tags or the description. It has
	// at most 256 bytes.
	Text string
	// Hidden also selects hidden skills if the principal manages them.
	Hidden bool
	// Shadowed also selects skills whose name resolves to a skill in another
	// namespace.
	Shadowed bool
	// Installable selects only skills that the principal may download and whose
	// current version was not rejected and has no code that is awaiting review.
	// Users may install their own skills before the review. Skills that it does not
	// select do not shadow others.
	Installable bool

	// The following fields restrict the selection, unless they are zero.
	OnlyHidden bool
	Code       *bool  // whether the current version has code
	Review     Review // review state of the current version, which must have code
	Imported   *bool  // whether the skill has a source
	Tag        string
	Category   string
	Attention  bool // whether the skill needs the attention of the principal; see [Attention]. Implies Shadowed
	Unused     bool // created before Since and not used since then

	Order Order     // "" means ByName
	Since time.Time // start of the period for uses
	Uses  bool      // whether to set the uses of each skill
	// Attentions sets why each skill needs the attention of the principal, and counts
	// these skills, including shadowed ones.
	Attentions bool
	// Page selects a page of the list. A cursor remains valid if the list changes.
	store.Page
}

// Listing is a page of a list of skills.
type Listing struct {
	Skills []*Skill
	Next   string // cursor of the next page; "" on the last one
	Total  int    // number of skills on all pages
	Facets Facets
}

// Facets counts the skills that a query selects, ignoring the fields that restrict
// the selection, such as Code and Tag.
type Facets struct {
	Total      int               `json:"total" doc:"Number of skills without the filters"`
	Namespaces map[Namespace]int `json:"namespaces" doc:"Number by own namespace"`
	Code       int               `json:"code" doc:"Number with code"`
	Reviews    map[Review]int    `json:"reviews" doc:"Number with code by review"`
	Imported   int               `json:"imported" doc:"Number with a source"`
	Hidden     int               `json:"hidden" doc:"Number of hidden ones"`
	Attention  int               `json:"attention" doc:"Number of those that need your attention, including shadowed ones"`
	Tags       []TagCount        `json:"tags" nullable:"false" doc:"The most frequent tags, at most 100"`
	Categories []CategoryCount   `json:"categories" nullable:"false" doc:"The most frequent categories, at most 100"`
}

// TagCount is the number of skills with a tag.
type TagCount struct {
	Tag   string `json:"tag"`
	Count int    `json:"count"`
}

// CategoryCount is the number of skills in a category.
type CategoryCount struct {
	Category string `json:"category"`
	Count    int    `json:"count"`
}

// maxListText is the maximum length of [Query.Text] in bytes.
const maxListText = 256

// maxTags is the maximum number of tags, and of categories, in [Facets].
const maxTags = 100

// summary holds the data that a list of skills needs about each skill in
// addition to its catalog entry.
type summary struct {
	home      Namespace
	author    string
	created   time.Time
	updated   time.Time
	approved  time.Time // when a reviewer approved the current version; zero if none did
	review    Review
	code      bool
	imported  bool
	concealed bool // whether a user hid the skill
	category  string
	tokens    int
	unscanned bool                   // whether the scan of the current version failed or timed out
	commit    string                 // commit of the current version at the source; "" if unknown, or if updates skip the skill
	pending   []store.PendingVersion // newest versions that need a review
}

func newSummary(s store.Skill, m meta, pending []store.PendingVersion) summary {
	out := summary{home: s.Namespace, author: s.CreatedBy, created: s.Created, updated: s.Updated, review: s.Review, code: m.hasCode(),
		concealed: s.Hidden, category: m.Category, tokens: m.Tokens, unscanned: m.Unscanned}
	if s.Review == Approved && s.Reviewer != "" {
		out.approved = s.Reviewed
	}
	if from := readSource(s.Source); from != nil {
		out.imported = true
		if !from.Pinned {
			out.commit = from.Commit
		}
	}
	for _, v := range pending {
		if awaitsReview(v) {
			v.Meta = nil // not needed any more
			out.pending = append(out.pending, v)
		}
	}
	return out
}

// List returns a page of the selected skills. It does not read the skills' files.
func (l *Library) List(ctx context.Context, p account.Principal, q Query) (*Listing, error) {
	if len(q.Text) > maxListText {
		return nil, invalidf("search text has %d bytes, limit %d; shorten it", len(q.Text), maxListText)
	}
	found, shadowed, ranks, err := l.findListed(ctx, p, q)
	if err != nil {
		return nil, err
	}
	var attention map[string][]Attention
	if q.Attention || q.Attentions {
		if attention, err = l.attentionOf(ctx, p, slices.Concat(found, shadowed)); err != nil {
			return nil, err
		}
	}
	out := &Listing{Facets: countFacets(found, attention)}
	if q.Attention {
		found = append(found, shadowed...)
	}
	var uses map[string]int64
	if q.Unused || q.Order == ByUses {
		if uses, err = l.usesSince(ctx, p, q.Since, found); err != nil {
			return nil, err
		}
	}
	found = slices.DeleteFunc(found, func(k *indexedSkill) bool { return !q.selects(k, uses, attention) })
	order, err := l.order(ctx, p, q, ranks, uses)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, order)
	out.Total = len(found)
	from, err := startOfPage(q.After, found)
	if err != nil {
		return nil, err
	}
	found = found[from:]
	if n := q.Size(); len(found) > n {
		found = found[:n]
		out.Next = encodeListCursor(listCursor{from + n, found[n-1].id})
	}
	if q.Uses && uses == nil {
		if uses, err = l.usesOf(ctx, p, q.Since, found); err != nil {
			return nil, err
		}
	}
	return out, l.loadListed(ctx, p, q, out, found, uses, attention)
}

// findListed returns the skills that a query selects, ignoring the fields that
// restrict the selection, and those that it would also select with [Query.Shadowed].
// With [ByRelevance], it also returns the ranks of the skills in a search for the
// text.
func (l *Library) findListed(ctx context.Context, p account.Principal, q Query) (found, shadowed []*indexedSkill, ranks map[string]int, err error) {
	in, err := l.queryNamespaces(p, q.In, q.Hidden)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := l.index.refresh(ctx); err != nil {
		return nil, nil, nil, err
	}
	if q.Order == ByRelevance && q.Text != "" {
		ranks = map[string]int{}
		for i, f := range l.index.search(q.Text, in, maxRanked) {
			ranks[f.id] = i + 1
		}
	}
	ignored := func(k *indexedSkill) bool { return q.Installable && !canInstall(p, k.home, k.code, k.review) }
	found, shadowed = l.index.collect(in, ignored, func(k *indexedSkill) bool {
		return (ranks[k.id] > 0 || k.contains(q.Text)) && (!k.hidden || (q.Hidden || !k.concealed) && k.canSeeHidden(p))
	})
	if q.Shadowed {
		found, shadowed = append(found, shadowed...), nil
	}
	return found, shadowed, ranks, nil
}

// maxRanked is the maximum number of skills that a list sorts by relevance. The
// other skills follow, sorted by name.
const maxRanked = 500

// contains reports whether the skill's name, title, tags or description contain
// text, ignoring case.
func (k *indexedSkill) contains(text string) bool {
	if text == "" {
		return true
	}
	text = strings.ToLower(text)
	e := k.entry
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	return has(e.Name) || has(e.DisplayName) || slices.ContainsFunc(e.Tags, has) || has(e.Description)
}

// canSeeHidden reports whether the principal may see the skill even if it is hidden.
func (k *indexedSkill) canSeeHidden(p account.Principal) bool {
	at := accountResource(k.home, k.author)
	at.Hidden = true
	return account.Can(p, account.SkillRead, at)
}

// title returns the display name, or the name if there is none.
func (k *indexedSkill) title() string { return cmp.Or(k.entry.DisplayName, k.entry.Name) }

// selects reports whether the skill matches the fields of the query that restrict
// the selection, such as Code and Tag.
func (q *Query) selects(k *indexedSkill, uses map[string]int64, attention map[string][]Attention) bool {
	switch {
	case q.OnlyHidden && !k.concealed,
		q.Code != nil && *q.Code != k.code,
		q.Review != "" && (!k.code || k.review != q.Review),
		q.Imported != nil && *q.Imported != k.imported,
		q.Tag != "" && !slices.Contains(k.entry.Tags, q.Tag),
		q.Category != "" && q.Category != k.category,
		q.Attention && attention[k.id] == nil:
		return false
	case q.Unused:
		n, known := uses[k.id]
		return known && n == 0 && k.created.Before(q.Since)
	}
	return true
}

// canInstall reports whether the state of a skill's current version permits the
// principal to install it.
func canInstall(p account.Principal, home Namespace, code bool, r Review) bool {
	return r == Approved || r != Rejected && (!code || home == store.UserNamespace(string(p.User)))
}

// collect returns the matching skills in the namespaces, without duplicates, and
// separately those of them whose names resolve to other skills in these namespaces.
// Skills for which ignored returns true do not shadow other skills.
func (s *skillIndex) collect(in []Namespace, ignored, matches func(*indexedSkill) bool) (found, shadowed []*indexedSkill) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, names := map[string]bool{}, map[string]string{} // names has the IDs of the nearest visible skills
	for _, n := range in {
		sh := s.namespaces[n]
		if sh == nil {
			continue
		}
		for name, k := range sh.byName {
			if ignored(k) {
				continue
			}
			nearest := names[name]
			if nearest == "" && !k.hidden {
				names[name] = k.id
			}
			if seen[k.id] || !matches(k) {
				continue
			}
			if seen[k.id] = true; nearest != "" && nearest != k.id {
				shadowed = append(shadowed, k)
			} else {
				found = append(found, k)
			}
		}
	}
	return found, shadowed
}

// usesSince returns the number of uses of skills, by ID. It omits skills whose
// usage the principal may not see.
func (l *Library) usesSince(ctx context.Context, p account.Principal, since time.Time, skills []*indexedSkill) (map[string]int64, error) {
	all, err := l.db.Usage.Totals(ctx, since)
	if err != nil {
		return nil, err
	}
	out := map[string]int64{}
	for _, k := range skills {
		if k.canReadUsage(p) {
			out[k.id] = all[k.id]
		}
	}
	return out, nil
}

// usesOf is like usesSince for up to [store.MaxPage] skills.
func (l *Library) usesOf(ctx context.Context, p account.Principal, since time.Time, skills []*indexedSkill) (map[string]int64, error) {
	out := map[string]int64{}
	var ids []string
	for _, k := range skills {
		if k.canReadUsage(p) {
			out[k.id], ids = 0, append(ids, k.id)
		}
	}
	sums, err := l.db.Usage.Sum(ctx, ids, since)
	for id, u := range sums {
		out[id] = u.Loads + u.Calls
	}
	return out, err
}

// canReadUsage reports whether the principal may see how often the skill is used.
func (k *indexedSkill) canReadUsage(p account.Principal) bool {
	return account.Can(p, account.UsageRead, accountResource(k.home, k.author))
}

// order returns a function that compares skills according to the order of a query.
func (l *Library) order(ctx context.Context, p account.Principal, q Query, ranks map[string]int, uses map[string]int64) (func(a, b *indexedSkill) int, error) {
	byName := func(a, b *indexedSkill) int {
		return cmp.Or(strings.Compare(a.entry.Name, b.entry.Name), strings.Compare(a.id, b.id))
	}
	highest := func(value func(*indexedSkill) float64) func(a, b *indexedSkill) int {
		return func(a, b *indexedSkill) int { return cmp.Or(cmp.Compare(value(b), value(a)), byName(a, b)) }
	}
	latest := func(value func(*indexedSkill) time.Time) func(a, b *indexedSkill) int {
		return func(a, b *indexedSkill) int { return cmp.Or(value(b).Compare(value(a)), byName(a, b)) }
	}
	switch q.Order {
	case "", ByName:
		return byName, nil
	case ByTitle:
		return func(a, b *indexedSkill) int {
			return cmp.Or(strings.Compare(strings.ToLower(a.title()), strings.ToLower(b.title())), byName(a, b))
		}, nil
	case ByRelevance:
		return highest(func(k *indexedSkill) float64 {
			if r := ranks[k.id]; r > 0 {
				return float64(maxRanked - r)
			}
			return -1
		}), nil
	case ByUpdate:
		return latest(func(k *indexedSkill) time.Time { return k.updated }), nil
	case ByCreation:
		return latest(func(k *indexedSkill) time.Time { return k.created }), nil
	case ByApproval:
		return latest(func(k *indexedSkill) time.Time { return k.approved }), nil
	case ByTeamUses:
		team, err := l.countTeamUses(ctx, p, q.Since)
		return highest(func(k *indexedSkill) float64 { return float64(team[k.id]) }), err
	case ByUses:
		return highest(func(k *indexedSkill) float64 { return float64(uses[k.id]) }), nil
	case ByTokens:
		return highest(func(k *indexedSkill) float64 { return float64(k.tokens) }), nil
	case ByRating:
		scores, err := l.db.Ratings.All(ctx)
		return highest(func(k *indexedSkill) float64 {
			if s, ok := scores[k.id]; ok {
				return newScore(s).Stars
			}
			return 0
		}), err
	}
	return nil, invalidf("unknown order %.40q", string(q.Order))
}

func countFacets(skills []*indexedSkill, attention map[string][]Attention) Facets {
	f := Facets{Total: len(skills), Attention: len(attention), Namespaces: map[Namespace]int{}, Reviews: map[Review]int{}, Tags: []TagCount{}, Categories: []CategoryCount{}}
	tags, categories := map[string]int{}, map[string]int{}
	for _, k := range skills {
		f.Namespaces[k.home]++
		if k.code {
			f.Code++
			f.Reviews[k.review]++
		}
		if k.imported {
			f.Imported++
		}
		if k.concealed {
			f.Hidden++
		}
		for _, t := range k.entry.Tags {
			tags[t]++
		}
		if k.category != "" {
			categories[k.category]++
		}
	}
	for _, t := range mostFrequent(tags, maxTags) {
		f.Tags = append(f.Tags, TagCount{t, tags[t]})
	}
	for _, c := range mostFrequent(categories, maxTags) {
		f.Categories = append(f.Categories, CategoryCount{c, categories[c]})
	}
	return f
}

// mostFrequent returns up to limit names with the highest counts, highest first.
func mostFrequent(counts map[string]int, limit int) []string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	return names[:min(len(names), limit)]
}

// listCursor is the position after a page: the number of skills before it, and the ID
// of the last one.
type listCursor struct {
	Offset int    `json:"offset"`
	ID     string `json:"id"`
}

func encodeListCursor(c listCursor) string {
	data, _ := json.Marshal(c) // cannot fail
	return base64.RawURLEncoding.EncodeToString(data)
}

// startOfPage returns the index of the first skill after a cursor. If the last
// skill of the previous page is gone, startOfPage returns its former index.
func startOfPage(after string, in []*indexedSkill) (int, error) {
	if after == "" {
		return 0, nil
	}
	var c listCursor
	data, err := base64.RawURLEncoding.DecodeString(after)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil || c.Offset < 1 {
		return 0, fmt.Errorf("%w: malformed page cursor %.20q", ErrInvalid, after)
	}
	if i := slices.IndexFunc(in, func(k *indexedSkill) bool { return k.id == c.ID }); i >= 0 {
		return i + 1, nil
	}
	return min(c.Offset-1, len(in)), nil
}

// loadListed adds the rows of skills to a listing. It omits skills that were
// just deleted and, with [Query.Installable], skills that can no longer be
// installed.
func (l *Library) loadListed(ctx context.Context, p account.Principal, q Query, out *Listing, found []*indexedSkill, uses map[string]int64, attention map[string][]Attention) error {
	ids := make([]string, len(found))
	for i, k := range found {
		ids[i] = k.id
	}
	rows, listings, err := l.db.Skills.GetMany(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if rows[id] == nil {
			continue
		}
		s, h := newSkill(*rows[id], nil), &skillRecord{Skill: *rows[id], listings: listings[id]}
		if q.Installable && (!canInstall(p, s.Namespace, s.Code, s.Review) || h.check(p, account.SkillDownload, s.CreatedBy) != nil) {
			continue
		}
		if n, ok := uses[id]; ok {
			s.Uses = &n
		}
		s.Attention = attention[id]
		out.Skills = append(out.Skills, s)
	}
	return l.addScores(ctx, out.Skills)
}
