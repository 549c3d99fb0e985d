package store_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// A hub of some size.
const (
	manySkills = 10000
	manyUsers  = 200
	manyGroups = 20
)

// visible are the namespaces of a user: their own, five groups, public.
func visible(user int) []store.Namespace {
	in := []store.Namespace{store.UserNamespace(fmt.Sprint("u", user))}
	for g := range 5 {
		in = append(in, store.GroupNamespace(fmt.Sprint("g", (user+g)%manyGroups)))
	}
	return append(in, store.Public)
}

func where(i int) store.Namespace {
	switch i % 5 {
	case 0:
		return store.Public
	case 1, 2:
		return store.GroupNamespace(fmt.Sprint("g", i/5%manyGroups))
	}
	return store.UserNamespace(fmt.Sprint("u", i/5%manyUsers))
}

func skillName(i int) string {
	return fmt.Sprintf("%s-%d", []string{"pdf", "sheet", "mail", "chart"}[i%4], i)
}

// fill makes a hub of some size, in few statements.
func fill(t testing.TB, db *store.DB) {
	t.Helper()
	insertRows(t, db, "users (id, name, display, email, password, admin, disabled, created, seen)", manyUsers, func(i int) string {
		return fmt.Sprintf("('u%d', 'user %d', '', '', '', FALSE, FALSE, 1, 0)", i, i)
	})
	insertRows(t, db, "groups (id, name, display, description, created)", manyGroups, func(i int) string {
		return fmt.Sprintf("('g%d', 'group %d', '', '', 1)", i, i)
	})
	insertRows(t, db, "members (group_id, user_id, role, since)", 5*manyUsers, func(i int) string {
		return fmt.Sprintf("('g%d', 'u%d', 'developer', 1)", (i/5+i%5)%manyGroups, i/5)
	})
	insertRows(t, db, "skills (id, namespace, name, current, hidden, created_by, created, updated, origin, source)", manySkills, func(i int) string {
		return fmt.Sprintf("('s%05d', '%s', '%s', 'v%05d', FALSE, '', 1, 1, '', '')", i, where(i), skillName(i), i)
	})
	insertRows(t, db, "listings (namespace, name, skill_id, listed_by, listed)", manySkills, func(i int) string {
		return fmt.Sprintf("('%s', '%s', 's%05d', '', 1)", where(i), skillName(i), i)
	})
	description := strings.Repeat("What it does and when it is used. ", 10)
	insertRows(t, db, "versions (id, skill_id, number, label, digest, size, files, review, reviewer, reviewed, created_by, created, display, description, tags, note, source, meta, findings)",
		manySkills, func(i int) string {
			return fmt.Sprintf("('v%05d', 's%05d', 1, '1.0', 'sha256:%d', 100, 0, 'approved', '', 0, '', 1, '', '%s', '[\"a\"]', '', '', '{}', '')", i, i, i, description)
		})
	insertRows(t, db, "skill_changes (skill_id, revision)", manySkills, func(i int) string { return fmt.Sprintf("('s%05d', %d)", i, i+1) })
	insertRows(t, db, "events (stream, seq, kind, data, created)", 8000, func(i int) string {
		return fmt.Sprintf("('session %d', %d, 'text', '{}', 1)", i/100, i%100+1)
	})
	insertRows(t, db, "stream_sizes (session, stream, bytes)", 8000, func(i int) string {
		return fmt.Sprintf("('session %d', 'session %d', 200)", i, i)
	})
	insertRows(t, db, "asks (id, session, principal, data, created, deadline, settled, answer)", 3000, func(i int) string {
		return fmt.Sprintf("('a%d', 'session %d', 'user:u%d', '', 1, 2, %d, '')", i, i%200, i%manyUsers, min(i%50, 1))
	})
	insertRows(t, db, "audit (at, actor, action, namespace, subject, decision, details)", 4000, func(i int) string {
		return fmt.Sprintf("(1, 'user %d', 'load', '', 's%05d', 'allow', '')", i%manyUsers, i)
	})
	insertRows(t, db, "meter (day, owner, namespace, agent, model, turns, loads, calls, errors, input, output, cache_read, cache_write)", 20000, func(i int) string {
		return fmt.Sprintf("(%d, 'u%d', 'group:g%d', 'Ghost/g/sea', 'demo:1', 1, 1, 1, 0, 10, 5, 0, 0)", 20000+i/manyUsers, i%manyUsers, i%manyGroups)
	})
	insertRows(t, db, "definitions (server, tool, digest, definition, of_id, accepted, accepted_by, seen, decided)", 5000, func(i int) string {
		return fmt.Sprintf("('sha256:%d', 'tool %d', 'sha256:%d', '{}', 'k%d', TRUE, '', 1, 1)", i/10, i%10, i, i/10)
	})
	insertRows(t, db, "own_usage (owner, skill_id, day, uses, earlier_day, earlier_uses)", 100*manyUsers, func(i int) string {
		return fmt.Sprintf("('u%d', 's%05d', %d, 1, 0, 0)", i%manyUsers, i/manyUsers, 20000+i%90)
	})
	must(store.Exec(context.Background(), db, "INSERT INTO groups (id, name, display, description, created) VALUES ('few', 'few', '', '', 1)"))(t)
	insertRows(t, db, "members (group_id, user_id, role, since)", 3, func(i int) string { return fmt.Sprintf("('few', 'u%d', 'developer', 1)", i) })
	must(store.Exec(context.Background(), db, "ANALYZE"))(t)
}

func insertRows(t testing.TB, db *store.DB, into string, n int, row func(int) string) {
	t.Helper()
	const batch = 500
	for i := 0; i < n; i += batch {
		var rows []string
		for j := i; j < min(i+batch, n); j++ {
			rows = append(rows, row(j))
		}
		must(store.Exec(context.Background(), db, "INSERT INTO "+into+" VALUES "+strings.Join(rows, ", ")))(t)
	}
}

// whole finds a question that reads a table from end to end.
var whole = regexp.MustCompile(`(?m)(Seq Scan on \w+|^SCAN (users|members|skills|s|h|listings|l|versions|v|skill_changes|events|asks|audit|usage|u|refs|kinds|meter|definitions|stream_sizes|own_usage|o)\b.*$)`)

// What is asked often is answered by indexes however much there is.
func TestQueriesUseIndexes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		fill(t, db)
		ctx := t.Context()
		plans := map[string]func() (string, error){
			"a page of what a user sees": func() (string, error) { return store.Plan(ctx, db, store.SkillQuery{Namespaces: visible(7)}) },
		}
		for name, q := range map[string]struct {
			query string
			args  []any
		}{
			"a name":              {"SELECT skill_id FROM listings WHERE name = $1 AND namespace IN ($2, $3)", []any{"pdf-4", "public", "user:u1"}},
			"versions by digest":  {"SELECT id FROM versions WHERE digest = $1", []any{"sha256:5"}},
			"versions of a skill": {"SELECT id FROM versions WHERE skill_id = $1 ORDER BY number DESC", []any{"s00005"}},
			"changes":             {"SELECT skill_id FROM skill_changes WHERE revision > $1 ORDER BY revision LIMIT 500", []any{9900}},
			"versions to review":  {store.PendingSQL(2), []any{"s00005", "s00006"}},
			"uses of members":     {store.ListTeamSQL(1), []any{"u3", 20010, "few"}},
			"uses of a user":      {store.ListTeamSQL(0), []any{"u3", 20010}},
			"groups of a user":    {"SELECT role FROM members WHERE user_id = $1", []any{"u3"}},
			"events after one":    {"SELECT data FROM events WHERE stream = $1 AND seq > $2 ORDER BY seq LIMIT 100", []any{"session 3", 50}},
			"branches":            {store.BranchedSQL, []any{"session 3", 0, 100}},
			"end of a stream":     {"SELECT max(seq) FROM events WHERE stream = $1", []any{"session 3"}},
			"questions to answer": {"SELECT data FROM asks WHERE principal = $1 AND settled = 0", []any{"user:u3"}},
			"what is overdue":     {"SELECT data FROM asks WHERE settled = 0 AND deadline > 0 AND deadline <= $1", []any{1}},
			"audit of an actor":   {"SELECT details FROM audit WHERE actor = $1 ORDER BY seq DESC LIMIT 50", []any{"user 3"}},
			"spent by a user":     {"SELECT sum(turns) FROM meter WHERE owner = $1 AND day >= $2", []any{"u3", 20090}},
			"spent with agents":   {"SELECT sum(turns) FROM meter WHERE namespace = $1 AND day >= $2", []any{"group:g3", 20090}},
			"known definitions":   {"SELECT tool, digest, accepted FROM definitions WHERE server = $1", []any{"sha256:5"}},
			"storage of a group":  {"SELECT SUM(v.size + octet_length(v.meta)) FROM skills s JOIN versions v ON v.skill_id = s.id WHERE s.namespace = $1", []any{"group:g3"}},
			"size of streams":     {"SELECT SUM(bytes) FROM stream_sizes WHERE session = $1", []any{"session 3"}},
			"end of the audit":    {"SELECT details FROM audit WHERE seq < $1 ORDER BY seq DESC LIMIT 50", []any{500}},
		} {
			plans[name] = func() (string, error) { return store.Explain(ctx, db, q.query, q.args...) }
		}
		for name, plan := range plans {
			t.Run(name, func(t *testing.T) {
				text := must(plan())(t)
				if found := whole.FindString(text); found != "" {
					t.Errorf("%s:\n%s", found, text)
				}
			})
		}
		got := must(listAll(ctx, db, visible(7)))(t)
		if len(got) != 2000+5*200+20 {
			t.Errorf("a user sees %d skills", len(got))
		}
	})
}

func listAll(ctx context.Context, db *store.DB, in []store.Namespace) ([]store.Skill, error) {
	var (
		out []store.Skill
		q   = store.SkillQuery{Namespaces: in, Page: store.Page{Limit: store.MaxPage}}
	)
	for {
		skills, next, err := db.Skills.List(ctx, q)
		out = append(out, skills...)
		if err != nil || next == "" {
			return out, err
		}
		q.After = next
	}
}
