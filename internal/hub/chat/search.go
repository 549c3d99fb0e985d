package chat

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
)

// Limits of searches.
const (
	MaxQuery      = 200 // maximum length of a query, in characters
	maxQueryWords = 8   // maximum number of words; further ones are ignored
	excerptBefore = 60  // maximum number of bytes before the first match
	excerptLength = 240 // maximum number of bytes in an excerpt
	maxCounted    = 20  // messages of a conversation that are read to find all words in one
	maxCountedAll = 200 // such messages of all conversations of a search
	maxSearches   = 4   // concurrent searches on a node; further ones wait
)

// Found is a conversation that a search found.
type Found struct {
	Conversation
	Seq     int64         `json:"seq,omitempty" doc:"Step number of a message that contains words of the query, if possible all of them; absent if only the title contains them"`
	Role    llm.Role      `json:"role,omitempty" doc:"user or assistant: who wrote the message"`
	Time    *time.Time    `json:"time,omitempty" doc:"Time of the message"`
	Excerpt []ExcerptPart `json:"excerpt,omitempty" doc:"The message around the words"`
}

// ExcerptPart is a part of an excerpt.
type ExcerptPart struct {
	Text  string `json:"text"`
	Match bool   `json:"match,omitempty" doc:"Whether the part is a word that was searched for"`
}

// Search finds the principal's conversations that contain, for each word of a query,
// a word that starts with it: in the title, in a message of the user or in an answer,
// on any branch. It returns them newest first, with the cursor of the next page, or
// "" if there is none. A page may contain fewer conversations than its limit although
// there is a next page. For a query without words, the result is empty.
func (e *Engine) Search(ctx context.Context, p account.Principal, query string, page store.Page) ([]Found, string, error) {
	if err := account.Check(p, account.SessionRead, account.OwnedBy(p.User)); err != nil {
		return nil, "", err
	}
	if utf8.RuneCountInString(query) > MaxQuery || !utf8.ValidString(query) {
		return nil, "", fmt.Errorf("search conversations: %w: query must be UTF-8 of at most %d characters", ErrInvalid, MaxQuery)
	}
	words := queryWords(query)
	leave, err := e.searches.Acquire(ctx, string(p.User))
	if err != nil {
		return nil, "", err
	}
	defer leave()
	matches, next, err := e.db.ConversationWords.Search(ctx, string(p.User), words, page)
	if err != nil {
		return nil, "", err
	}
	out := make([]Found, 0, len(matches))
	left := maxCountedAll
	for _, m := range matches {
		f := Found{Conversation: conversation(m.Session)}
		if f.Trial {
			continue
		}
		if err := e.addExcerpt(ctx, &f, m.Steps, words, &left); err != nil {
			return nil, "", err
		}
		out = append(out, f)
	}
	return out, next, nil
}

// queryWords returns the words of a query, longest first, because longer words are in
// fewer conversations.
func queryWords(query string) []string {
	var out []string
	end := 0
	for t := range bm25.Tokens(query, MaxQuery) {
		// A token within the previous one is a part of a camelCase word or the last
		// character of a run of pairs.
		if t.End > end && !slices.Contains(out, t.Word) && len(out) < maxQueryWords {
			out = append(out, t.Word)
		}
		end = t.End
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return out
}

// addExcerpt sets the fields of f that describe the message with the most words. steps
// has the last step with each word. If none of them has all words, addExcerpt reads
// earlier messages, as long as left allows.
func (e *Engine) addExcerpt(ctx context.Context, f *Found, steps []int64, words []string, left *int) error {
	steps = slices.DeleteFunc(slices.Clone(steps), func(s int64) bool { return s == 0 })
	want := len(steps) // words that are not only in the title
	slices.Sort(steps)
	slices.Reverse(steps)
	most := 0
	add := func(rows []store.Event) {
		for _, r := range rows {
			s, err := readStep(r)
			if err != nil || s.Message == nil { // a damaged step is left out
				continue
			}
			if n := countWords(s.Message.Text, words); n > most {
				most = n
				f.Seq, f.Role, f.Time, f.Excerpt = s.Seq, s.Message.Role, &s.Time, excerpt(s.Message.Text, words)
			}
		}
	}
	for _, seq := range slices.Compact(steps) {
		rows, err := e.db.Events.Read(ctx, f.ID, seq-1, 1)
		if err != nil {
			return err
		}
		if add(rows); most >= want {
			return nil
		}
	}
	if want < 2 || *left <= 0 {
		return nil
	}
	rows, err := e.db.Events.ReadMessagesBefore(ctx, f.ID, steps[0], min(maxCounted, *left))
	if err != nil {
		return err
	}
	*left -= len(rows)
	add(rows)
	return nil
}

// countWords returns how many of the given words start a word of a text.
func countWords(text string, words []string) int {
	found := make([]bool, len(words))
	n := 0
	for t := range bm25.Tokens(text, maxIndexed) {
		for i, w := range words {
			if !found[i] && strings.HasPrefix(t.Word, w) {
				found[i] = true
				n++
			}
		}
		if n == len(words) {
			break
		}
	}
	return n
}

// excerpt returns the part of a text that starts shortly before the first word that
// starts with one of the given words.
func excerpt(text string, words []string) []ExcerptPart {
	from, end := 0, runeStart(text, excerptLength)
	var matches [][2]int
	for t := range bm25.Tokens(text, maxIndexed) {
		if len(matches) > 0 && t.End > end {
			break
		}
		if !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(t.Word, w) }) {
			continue
		}
		n := len(matches)
		if n == 0 {
			from = wordStart(text, t.Start-excerptBefore, t.Start)
			end = max(runeStart(text, from+excerptLength), t.End)
		}
		if n > 0 && t.Start <= matches[n-1][1] { // pairs of characters overlap
			matches[n-1][1] = max(matches[n-1][1], t.End)
		} else {
			matches = append(matches, [2]int{t.Start, t.End})
		}
	}
	return excerptParts(text, from, end, matches)
}

// excerptParts divides text[from:end] at the matches and replaces white space with
// single spaces. An ellipsis marks omitted text.
func excerptParts(text string, from, end int, matches [][2]int) []ExcerptPart {
	var out []ExcerptPart
	add := func(text string, match bool) {
		if text = whiteSpace.ReplaceAllString(text, " "); text != "" {
			out = append(out, ExcerptPart{text, match})
		}
	}
	before, after := "", ""
	if from > 0 {
		before = "…"
	}
	if end < len(text) {
		after = "…"
	}
	for _, m := range matches {
		add(before+text[from:m[0]], false)
		add(text[m[0]:m[1]], true)
		from, before = m[1], ""
	}
	add(before+text[from:end]+after, false)
	return out
}

var whiteSpace = lazyregexp.New(`\s+`)

// runeStart returns the largest offset up to max at which a character of text starts
// or text ends.
func runeStart(text string, max int) int {
	if max >= len(text) {
		return len(text)
	}
	for max > 0 && !utf8.RuneStart(text[max]) {
		max--
	}
	return max
}

// wordStart returns the offset at which an excerpt starts. That is the first word
// after min. If there is no white space between min and before, it is the first
// character after min.
func wordStart(text string, min, before int) int {
	if min <= 0 {
		return 0
	}
	min = runeStart(text, min)
	return min + strings.IndexAny(text[min:before], " \t\r\n") + 1
}
