package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ConversationWords stores the words of conversations, for searches. Deleting a
// session deletes its words.
//
// The words of a conversation are stored in parts, so that adding a message
// rewrites only the last part, and a search reads a few rows per conversation. A
// row for each word would need several times the space.
type ConversationWords struct{ c conn }

// maxWordsPart is the size in bytes from which a part is complete.
const maxWordsPart = 16 << 10

// wordsPart is a row of conversation_words.
type wordsPart struct {
	session string
	step    int64 // the first step of the part or later, so that parts are in order; 0 for the title
	words   string
}

const wordsColumns = "session, step, words"

func (p *wordsPart) fields() []any { return []any{&p.session, &p.step, &p.words} }

// Add adds words of new steps to a session. steps contains the last step with each
// word, and its words contain no white space. It fails with [ErrNotFound] if the
// session does not exist.
func (t ConversationWords) Add(ctx context.Context, session string, steps map[string]int64) error {
	if len(steps) == 0 {
		return nil
	}
	err := t.c.inTransaction(ctx, func(c conn) error {
		found, err := queryAll[wordsPart](ctx, c, "SELECT "+wordsColumns+" FROM conversation_words WHERE session = $1 AND step > 0 ORDER BY step DESC LIMIT 1", session)
		if err != nil {
			return err
		}
		part := wordsPart{session: session, step: slices.Min(slices.Collect(maps.Values(steps)))}
		if len(found) > 0 {
			part.step = max(part.step, found[0].step+1)
		}
		if len(found) > 0 && len(found[0].words) < maxWordsPart {
			part.step = found[0].step
			all := parseWords(found[0].words)
			maps.Copy(all, steps)
			steps = all
		}
		for _, words := range splitWords(steps) {
			part.words = formatWords(words)
			if err := c.putWords(ctx, part); err != nil {
				return err
			}
			part.step++
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("add words of session %q: %w", session, toNotFound(err))
	}
	return nil
}

// SetTitle replaces the words of a session's title.
func (t ConversationWords) SetTitle(ctx context.Context, session string, words []string) error {
	steps := map[string]int64{}
	for _, w := range words {
		steps[w] = 0
	}
	if err := t.c.putWords(ctx, wordsPart{session, 0, formatWords(steps)}); err != nil {
		return fmt.Errorf("index title of session %q: %w", session, toNotFound(err))
	}
	return nil
}

func (c conn) putWords(ctx context.Context, p wordsPart) error {
	_, err := c.exec(ctx, "INSERT INTO conversation_words ("+wordsColumns+`) VALUES ($1, $2, $3)
		ON CONFLICT (session, step) DO UPDATE SET words = excluded.words`, p.session, p.step, p.words)
	return err
}

// Clear deletes the words of a session.
func (t ConversationWords) Clear(ctx context.Context, session string) error {
	if _, err := t.c.exec(ctx, "DELETE FROM conversation_words WHERE session = $1", session); err != nil {
		return fmt.Errorf("delete words of session %q: %w", session, err)
	}
	return nil
}

// ListUnindexed returns up to limit sessions whose words are still to be added,
// because an older program stored them, newest first. If before is not "", it returns
// only sessions that are older than this one.
func (t ConversationWords) ListUnindexed(ctx context.Context, before string, limit int) ([]string, error) {
	found, err := queryScalars[string](ctx, t.c, "SELECT session FROM unindexed_sessions WHERE $1 = '' OR session < $1 ORDER BY session DESC LIMIT $2", before, limit)
	if err != nil {
		return nil, fmt.Errorf("list sessions without words: %w", err)
	}
	return found, nil
}

// SetIndexed records that the words of a session were added.
func (t ConversationWords) SetIndexed(ctx context.Context, session string) error {
	if _, err := t.c.exec(ctx, "DELETE FROM unindexed_sessions WHERE session = $1", session); err != nil {
		return fmt.Errorf("record words of session %q: %w", session, err)
	}
	return nil
}

// SessionMatch is a session that contains all words of a query.
type SessionMatch struct {
	Session
	// Steps has, for each word of the query, the last step that contains it, or 0 if
	// only the title contains it.
	Steps []int64
}

// maxSearched is the maximum number of sessions that a search reads.
const maxSearched = 5000

// Search returns a user's sessions that contain, for each of the given words, a word
// that starts with it, newest first. It also returns the cursor of the next page, or
// "" if there is none. Search reads a limited number of sessions, so a page may
// contain fewer sessions than its limit, or none, although there is a next page.
func (t ConversationWords) Search(ctx context.Context, owner string, words []string, p Page) ([]SessionMatch, string, error) {
	found, next, err := t.search(ctx, owner, words, p)
	if err != nil {
		return nil, "", fmt.Errorf("search sessions of user %q: %w", owner, err)
	}
	return found, next, nil
}

func (t ConversationWords) search(ctx context.Context, owner string, words []string, p Page) ([]SessionMatch, string, error) {
	keys, err := p.decodeCursor(1)
	if err != nil || len(words) == 0 {
		return nil, "", err
	}
	query, args := t.c.db.dialect.searchSQL(owner, keys[0], words, p.Size()+1)
	sessions, err := queryAll[Session](ctx, t.c, query, args...)
	if err != nil {
		return nil, "", err
	}
	sessions, next := cutPage(p, sessions, func(s Session) []string { return []string{s.ID} })
	if next == "" {
		last, err := queryScalars[string](ctx, t.c, `SELECT id FROM sessions WHERE owner = $1 AND ($2 = '' OR id < $2)
			ORDER BY id DESC LIMIT 1 OFFSET $3`, owner, keys[0], maxSearched-1)
		if err != nil {
			return nil, "", err
		}
		if len(last) > 0 {
			next = encodeCursor(last)
		}
	}
	steps, err := t.findSteps(ctx, sessions, words)
	if err != nil {
		return nil, "", err
	}
	out := make([]SessionMatch, len(sessions))
	for i, s := range sessions {
		out[i] = SessionMatch{s, steps[s.ID]}
	}
	return out, next, nil
}

// searchSQL returns the query of [ConversationWords.Search] for up to limit sessions. Its
// subqueries return a value instead of using EXISTS, which PostgreSQL may convert to
// a join that reads the whole table.
func (d dialect) searchSQL(owner, after string, words []string, limit int) (string, []any) {
	args := []any{owner, after, maxSearched, limit}
	where := make([]string, len(words))
	for i, w := range words {
		args = append(args, "\n"+w)
		where[i] = fmt.Sprintf("(SELECT 1 FROM conversation_words w WHERE w.session = s.id AND %s(w.words, $%d) > 0 LIMIT 1) = 1", d.position, len(args))
	}
	return "SELECT " + sessionColumns + " FROM (SELECT " + sessionColumns + ` FROM sessions WHERE owner = $1 AND ($2 = '' OR id < $2)
		ORDER BY id DESC LIMIT $3) s WHERE ` + strings.Join(where, " AND ") + " ORDER BY id DESC LIMIT $4", args
}

// findSteps returns, for each session and word of a query, the last step that
// contains a word that starts with it.
func (t ConversationWords) findSteps(ctx context.Context, sessions []Session, words []string) (map[string][]int64, error) {
	out := map[string][]int64{}
	if len(sessions) == 0 {
		return out, nil
	}
	var args []any
	for _, s := range sessions {
		args = append(args, s.ID)
		out[s.ID] = make([]int64, len(words))
	}
	var matches []string
	for _, w := range words {
		args = append(args, "\n"+w)
		matches = append(matches, fmt.Sprintf("%s(words, $%d) > 0", t.c.db.dialect.position, len(args)))
	}
	// A row at a time, because all parts together may be large.
	err := t.c.query(ctx, false, func(rows *sql.Rows) error {
		var p wordsPart
		if err := scanRow(rows, p.fields()...); err != nil {
			return err
		}
		steps := out[p.session]
		for i, w := range words {
			steps[i] = max(steps[i], lastStep(p.words, w))
		}
		return nil
	}, "SELECT "+wordsColumns+" FROM conversation_words WHERE session IN ("+placeholders(1, len(sessions))+
		") AND ("+strings.Join(matches, " OR ")+")", args...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// lastStep returns the last step of a part that contains a word with the given
// prefix, or 0.
func lastStep(words, prefix string) int64 {
	var last int64
	for rest := words; ; {
		_, after, found := strings.Cut(rest, "\n"+prefix)
		if !found {
			return last
		}
		line, _, _ := strings.Cut(after, "\n")
		_, digits, _ := strings.Cut(line, "\t")
		step, _ := strconv.ParseInt(digits, 10, 64)
		last = max(last, step)
		rest = after
	}
}

// splitWords divides words into those of parts, the earliest steps first.
func splitWords(steps map[string]int64) []map[string]int64 {
	words := slices.SortedFunc(maps.Keys(steps), func(a, b string) int {
		return cmp.Or(cmp.Compare(steps[a], steps[b]), cmp.Compare(a, b))
	})
	out := []map[string]int64{{}}
	size := 0
	for _, w := range words {
		if size >= maxWordsPart {
			out, size = append(out, map[string]int64{}), 0
		}
		out[len(out)-1][w] = steps[w]
		size += len(w) + len("\n\t") + len(strconv.FormatInt(steps[w], 10))
	}
	return out
}

// formatWords returns the stored form of the words of a part.
func formatWords(steps map[string]int64) string {
	var b strings.Builder
	for _, w := range slices.Sorted(maps.Keys(steps)) {
		b.WriteString("\n" + w + "\t" + strconv.FormatInt(steps[w], 10))
	}
	return b.String()
}

func parseWords(text string) map[string]int64 {
	steps := map[string]int64{}
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\n"), "\n") {
		if w, digits, ok := strings.Cut(line, "\t"); ok {
			steps[w], _ = strconv.ParseInt(digits, 10, 64)
		}
	}
	return steps
}
