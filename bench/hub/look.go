//go:build linux

package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the drivers of the limit
	_ "modernc.org/sqlite"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/internal/store"
)

// each is how many requests of a kind are sent in a round, and atOnce by how many clients
// where it is many.
const (
	each   = 100
	atOnce = 16
)

// question is one kind of request: url makes the one with a number.
type question struct {
	name  string
	limit string // the name of another
	url   func(i int) string
	token string // "" is that of one user after the other
}

// listed is as much of a list as counts here.
type listed struct {
	Items []struct{ ID, Name string }
	Next  string
}

// look measures lists, searches and downloads.
func (b *bench) look() error {
	data, first, err := b.send(b.tokens[0], "GET", b.node.url+"/api/v1/search?q=pdf+tables", "", nil)
	if err != nil {
		return err
	}
	fmt.Printf("The first search, which reads all skills, took %s ms.\n\n", measure.Number(first.Seconds()*1e3))
	page, _, err := b.send(b.tokens[0], "GET", b.node.url+"/api/v1/skills?namespace=public&limit=50", "", nil)
	if err != nil {
		return err
	}
	var public listed
	if err := json.Unmarshal(page, &public); err != nil {
		return err
	}
	limits, err := b.limits(public.Items[0].ID, map[string][]byte{"/hits": data, "/page": page})
	if err != nil {
		return err
	}
	defer limits.Close()
	r := rand.New(rand.NewPCG(1, 1))
	words := strings.Fields("tables invoices deploy report images browser python review database schedule")
	at := func(format string, args ...any) string { return b.node.url + "/api/v1" + fmt.Sprintf(format, args...) }
	const sel, mem, hits, file = "limit: an indexed SELECT of 50 rows", "limit: the bytes of a list from memory", "limit: the bytes of a search from memory", "limit: http.ServeFile of a package"
	questions := []question{
		{name: sel, url: func(int) string { return limits.URL + "/select" }},
		{name: mem, url: func(int) string { return limits.URL + "/page" }},
		{name: hits, url: func(int) string { return limits.URL + "/hits" }},
		{name: file, url: func(int) string { return limits.URL + "/package" }},
		{name: "list: the first 50 that a user reaches", limit: sel, url: func(int) string { return at("/skills?limit=50") }},
		{name: "list: 50 public ones", limit: sel, url: func(int) string { return at("/skills?limit=50&namespace=public") }},
		{name: "list: 50 with a word", limit: sel, url: func(i int) string { return at("/skills?limit=50&q=%s", words[i%len(words)]) }},
		{name: "search: 10", limit: hits, url: func(i int) string {
			return at("/search?q=%s+%s", words[i%len(words)], words[r.IntN(len(words))])
		}},
		{name: "package", limit: file, token: b.admin, url: func(i int) string {
			return at("/skills/%s/versions/1/package", public.Items[i%len(public.Items)].ID)
		}},
	}
	for _, clients := range []int{1, atOnce} {
		if err := b.ask(questions, clients); err != nil {
			return err
		}
	}
	return nil
}

// ask sends all questions in turns, and prints what they took.
func (b *bench) ask(questions []question, clients int) error {
	var table measure.Table
	middle, high, cpu := map[string]*measure.Row{}, map[string]*measure.Row{}, map[string]*measure.Row{}
	for _, q := range questions {
		middle[q.name] = table.Row(measure.Row{Name: q.name + ", p50", Unit: "ms", Limit: middle[q.limit]})
		high[q.name] = table.Row(measure.Row{Name: q.name + ", p95", Unit: "ms", Limit: high[q.limit]})
		if q.limit != "" {
			cpu[q.name] = table.Row(measure.Row{Name: q.name + ", CPU time of the node", Unit: "ms"})
		}
	}
	for round := range b.rounds + 1 {
		for _, q := range questions {
			before := measure.CPUOf(b.node.pid())
			took, err := b.many(q, round, clients)
			if err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			if round == 0 { // it fills caches
				continue
			}
			middle[q.name].Add(measure.Quantile(took, 0.5))
			high[q.name].Add(measure.Quantile(took, 0.95))
			if row := cpu[q.name]; row != nil {
				row.AddTime((measure.CPUOf(b.node.pid()) - before) / each)
			}
		}
	}
	fmt.Printf("%d clients at once:\n\n", clients)
	table.Print(os.Stdout)
	fmt.Println()
	return nil
}

// many sends a question again and again, by some clients, and returns what each took.
func (b *bench) many(q question, round, clients int) (ms []float64, failed error) {
	var mu sync.Mutex
	var sending sync.WaitGroup
	for c := range clients {
		sending.Go(func() {
			for i := c; i < each; i += clients {
				n := round*each + i
				token := q.token
				if token == "" {
					token = b.tokens[n*7%len(b.tokens)]
				}
				_, took, err := b.send(token, "GET", b.url(&mu, q, n), "", nil)
				mu.Lock()
				ms = append(ms, took.Seconds()*1e3)
				if err != nil {
					failed = err
				}
				mu.Unlock()
			}
		})
	}
	sending.Wait()
	return ms, failed
}

func (b *bench) url(mu *sync.Mutex, q question, n int) string {
	mu.Lock()
	defer mu.Unlock()
	return q.url(n)
}

// limits serves what the figures are compared with: rows of the same database as JSON, a
// package from a file, and answers from memory.
func (b *bench) limits(skill string, from map[string][]byte) (*limit, error) {
	pkg, _, err := b.send(b.admin, "GET", b.node.url+"/api/v1/skills/"+skill+"/versions/1/package", "", nil)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.home, "package.zip")
	if err := os.WriteFile(file, pkg, 0o600); err != nil {
		return nil, err
	}
	driver, address := "pgx", b.database
	if path := store.SQLitePath(b.database); path != "" {
		driver, address = "sqlite", "file:"+path+"?_pragma=query_only(1)"
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for path, data := range from {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { w.Write(data) })
	}
	mux.HandleFunc("/package", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) })
	mux.HandleFunc("/select", func(w http.ResponseWriter, r *http.Request) {
		rows, err := fifty(r.Context(), db)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(rows)
	})
	return &limit{httptest.NewServer(mux), db}, nil
}

type limit struct {
	*httptest.Server
	db *sql.DB
}

func (l *limit) Close() {
	l.Server.Close()
	l.db.Close()
}

// fifty are the first skills that everybody sees, by name: an index has them.
func fifty(ctx context.Context, db *sql.DB) ([]any, error) {
	rows, err := db.QueryContext(ctx, "SELECT id, namespace, name, created_by, created, updated FROM skills WHERE namespace = 'public' ORDER BY name LIMIT 50")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []any
	for rows.Next() {
		var id, in, name, by string
		var created, updated int64
		if err := rows.Scan(&id, &in, &name, &by, &created, &updated); err != nil {
			return nil, err
		}
		out = append(out, map[string]any{"id": id, "namespace": in, "name": name, "createdBy": by, "created": time.UnixMilli(created), "updated": time.UnixMilli(updated)})
	}
	return out, rows.Err()
}
