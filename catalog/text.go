package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/tokencount"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// FormatOptions limits the size of the text of [Format]. The zero value means no
// limit.
type FormatOptions struct {
	Tokens     int // maximum number of estimated tokens; 0 means no limit
	Characters int // maximum number of characters; 0 means no limit
	// Partial is the maximum number of characters of a list that cannot hold all
	// names; 0 means the value of Characters. It has no effect if Characters is
	// lower.
	Partial int
	// Fits is a further limit: it reports whether text is short enough. It must
	// be monotonic: if it rejects text, it must also reject any longer text. It
	// may be nil.
	Fits func(text string) bool
	// First returns the keys of the skills that come first, in order; see
	// [Entry.Key]. Unknown keys are ignored. It is called only if the whole
	// list exceeds the limits. It may be nil.
	First func() []string
	// Omit reports whether a skill is left out without being counted. It may be
	// nil.
	Omit func(*Entry) bool
	// More is the last line if skills are omitted, with a %d for their number.
	// The default is "… and %d more: find them with search_skills".
	More string
}

const (
	defaultMore = "… and %d more: find them with search_skills"
	// shortest is the minimum length of a shortened description in bytes.
	// Shorter descriptions are omitted.
	shortest = 20
	// extra is how much longer the first descriptions may be, in bytes.
	extra = 30
)

// Format returns a list of skills for a model. Each skill has a line "- name:
// description". The highest scope comes first; skills in the same scope are
// sorted by name. If the list exceeds the limits, the skills of o.First come
// first, and all descriptions are truncated to the same length, except that in
// a list of up to 100 skills, the first descriptions may be a few words longer.
// If that is not enough, Format lists only names. If those do not fit either,
// it lists some of the names and the number of the others. That number is
// printed even if it alone exceeds the limits. The same skills always produce
// the same text, regardless of their order. Without skills, the text is empty.
// Names and descriptions are printed on one line each, without hidden
// characters or prompt delimiters. The description of a project's skill begins
// with "[project]", even if descriptions are omitted.
func Format(entries []*Entry, o FormatOptions) string {
	if o.Omit != nil {
		entries = slices.DeleteFunc(slices.Clone(entries), o.Omit)
	}
	if len(entries) == 0 {
		return ""
	}
	if o.More == "" {
		o.More = defaultMore
	}
	t := newListing(entries)
	t.count = len(entries)
	if o.bounded() && !o.fits(t.names(len(t.rows))) {
		t.moveFirst(o.first())
		return t.someNames(o.partial())
	}
	t.describe()
	if !o.bounded() {
		return t.lines(0, len(t.rows), maxInt)
	}
	if full := t.total <= 4*o.limit(); full {
		if text := t.lines(0, len(t.rows), maxInt); o.fits(text) {
			return text
		}
	}
	t.moveFirst(o.first())
	// Find the maximum description length that fits. The first skills of a short list
	// get the rest.
	all := len(t.rows)
	best := searchFromStart(t.longest-shortest+1, func(i int) bool { return !o.fits(t.lines(0, all, shortest+i)) }) - 1
	if best < 0 {
		return t.names(all)
	}
	if all > 100 { // a line is short, and so is the rest
		return t.lines(0, all, shortest+best)
	}
	text := func(n int) string { return t.lines(0, n, shortest+best+extra) + t.lines(n, all, shortest+best) }
	return text(sort.Search(all, func(n int) bool { return !o.fits(text(n + 1)) }))
}

// Text returns the text of [Format] for the skills of [Snapshot.ForModel]. If
// there are many more skills than fit, it does not read the remaining ones.
func (s *Snapshot) Text(o FormatOptions) string {
	const shortestLine = len("- \n")
	most := o.limit() / shortestLine
	if !o.bounded() || o.Omit != nil || s.Count() <= most {
		return Format(s.ForModel(), o)
	}
	if o.More == "" {
		o.More = defaultMore
	}
	o = o.partial()
	most = o.limit() / shortestLine
	var first []*Entry
	keys := o.first()
	for _, key := range keys {
		if e := s.ByKey(key); e != nil && !e.DisableModelInvocation && s.ByName(e.Name) == e && !slices.Contains(first, e) {
			first = append(first, e)
		}
	}
	listed := slices.Clone(first)
	s.forModelByScope(func(e *Entry) bool {
		if !slices.Contains(first, e) {
			listed = append(listed, e)
		}
		return len(listed) <= most
	})
	t := newListing(listed)
	t.count = s.Count()
	t.moveFirst(keys)
	return t.someNames(o)
}

// searchFromStart is like [sort.Search], but calls f only with numbers up to about
// twice the result, because f takes longer for larger numbers.
func searchFromStart(n int, f func(int) bool) int {
	from, to := 0, 1 // f is false below from
	for to <= n && !f(to-1) {
		from, to = to, 2*to
	}
	to = min(to-1, n) // f is true at to, unless that is n
	return from + sort.Search(to-from, func(i int) bool { return f(from + i) })
}

const maxInt = int(^uint(0) >> 1)

func (o FormatOptions) bounded() bool { return o.Tokens > 0 || o.Characters > 0 || o.Fits != nil }

// first returns o.First(), or nil if o.First is nil.
func (o FormatOptions) first() []string {
	if o.First == nil {
		return nil
	}
	return o.First()
}

// partial returns o with the size limit for a list that omits some of the
// names.
func (o FormatOptions) partial() FormatOptions {
	if o.Partial > 0 && (o.Characters == 0 || o.Partial < o.Characters) {
		o.Characters = o.Partial
	}
	return o
}

// limit returns an upper bound on the number of characters that fit.
func (o FormatOptions) limit() int {
	n := maxInt / 8
	if o.Tokens > 0 {
		n = o.Tokens * 8
	}
	if o.Characters > 0 {
		n = min(n, o.Characters)
	}
	return n
}

func (o FormatOptions) fits(s string) bool {
	return (o.Characters == 0 || utf8.RuneCountInString(s) <= o.Characters) &&
		(o.Tokens == 0 || tokencount.Estimate(s) <= o.Tokens) && (o.Fits == nil || o.Fits(s))
}

type row struct {
	entry             *Entry
	name, description string
}

// mark adds a mark for the skill's scope, such as "[project]", to a
// description.
func (r *row) mark(description string) string {
	return untrusted.MarkOrigin(r.entry.Scope.String(), description)
}

// write writes the line for the skill.
func (r *row) write(b *strings.Builder, description string) {
	b.WriteString("- ")
	b.WriteString(r.name)
	if text := r.mark(description); text != "" {
		b.WriteString(": ")
		b.WriteString(text)
	}
	b.WriteByte('\n')
}

type rows struct {
	rows    []row
	count   int // number of all skills; the list may hold only the first ones
	total   int // total number of characters
	longest int // length of the longest description, at least shortest
}

// newListing returns the skills sorted by scope, highest first, and then by
// name.
func newListing(entries []*Entry) *rows {
	t := &rows{rows: make([]row, len(entries)), longest: shortest}
	for i, e := range entries {
		t.rows[i] = row{entry: e, name: untrusted.New(e.Name).ForModel()}
	}
	slices.SortFunc(t.rows, func(a, b row) int {
		if c := cmp.Compare(b.entry.Scope, a.entry.Scope); c != 0 {
			return c
		}
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return strings.Compare(a.entry.Key(), b.entry.Key())
	})
	return t
}

// moveFirst moves the skills with the given keys to the front, in the order of
// the keys.
func (t *rows) moveFirst(keys []string) {
	rank := make(map[string]int, len(keys))
	for i, key := range keys {
		if _, known := rank[key]; !known {
			rank[key] = i
		}
	}
	rankOf := func(r row) int {
		if i, ok := rank[r.entry.Key()]; ok {
			return i
		}
		return len(keys)
	}
	slices.SortStableFunc(t.rows, func(a, b row) int { return cmp.Compare(rankOf(a), rankOf(b)) })
}

func (t *rows) describe() {
	for i := range t.rows {
		r := &t.rows[i]
		r.description = untrusted.New(r.entry.Description).ForModel()
		t.total += len(r.name) + len(r.mark(r.description)) + len("- : \n")
		t.longest = max(t.longest, len(r.description))
	}
}

// lines formats the skills in t.rows[from:to]. Descriptions longer than limit
// bytes are truncated.
func (t *rows) lines(from, to, limit int) string {
	var b strings.Builder
	b.Grow(min(t.total, (min(limit, t.longest)+64)*(to-from)))
	for _, r := range t.rows[from:to] {
		r.write(&b, shorten(r.description, limit))
	}
	return b.String()
}

func (t *rows) names(n int) string {
	var b strings.Builder
	for _, r := range t.rows[:n] {
		r.write(&b, "")
	}
	return b.String()
}

func (t *rows) someNames(o FormatOptions) string {
	text := func(n int) string {
		return t.names(n) + fmt.Sprintf(o.More, t.count-n) + "\n"
	}
	n := sort.Search(len(t.rows), func(n int) bool { return !o.fits(text(n)) })
	return text(max(n-1, 0))
}

// shorten truncates s to limit bytes, at a word boundary if possible.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := s[:max(limit-len("…"), 0)]
	for len(cut) > 0 && !utf8.RuneStart(s[len(cut)]) {
		cut = cut[:len(cut)-1]
	}
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)*2/3 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ,.;:-") + "…"
}
