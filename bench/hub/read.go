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

	_ "github.com/jackc/pgx/v5/stdlib" // driver for the baselines
	_ "modernc.org/sqlite"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/internal/store"
)

const (
	perRound    = 100 // requests of each kind per round
	manyClients = 16
)

// question is a kind of request to measure.
type question struct {
	name     string
	baseline string             // name of the question that is its baseline
	url      func(i int) string // URL of request i
	token    string             // "" rotates through the tokens of all users
}

// skillPage holds the fields of a page of skills that the benchmarks use.
type skillPage struct {
	Items []struct{ ID, Name string }
	Next  string
}

// measureReads measures list, search and download requests.
func (b *bench) measureReads() error {
	data, first, err := b.send(b.tokens[0], "GET", b.node.url+"/api/v1/search?q=pdf+tables", "", nil)
	if err != nil {
		return err
	}
	fmt.Printf("First search, which indexes all skills: %s ms.\n\n", measure.FormatNumber(first.Seconds()*1e3))
	page, _, err := b.send(b.tokens[0], "GET", b.node.url+"/api/v1/skills?namespace=public&limit=50", "", nil)
	if err != nil {
		return err
	}
	var public skillPage
	if err := json.Unmarshal(page, &public); err != nil {
		return err
	}
	baselines, err := b.serveBaselines(public.Items[0].ID, map[string][]byte{"/hits": data, "/page": page})
	if err != nil {
		return err
	}
	defer baselines.Close()
	r := rand.New(rand.NewPCG(1, 1))
	words := strings.Fields("tables invoices deploy report images browser python review database schedule")
	at := func(format string, args ...any) string { return b.node.url + "/api/v1" + fmt.Sprintf(format, args...) }
	const sel, mem, hits, file = "baseline: an indexed SELECT of 50 rows", "baseline: the bytes of a list from memory", "baseline: the bytes of a search from memory", "baseline: http.ServeFile of a package"
	questions := []question{
		{name: sel, url: func(int) string { return baselines.URL + "/select" }},
		{name: mem, url: func(int) string { return baselines.URL + "/page" }},
		{name: hits, url: func(int) string { return baselines.URL + "/hits" }},
		{name: file, url: func(int) string { return baselines.URL + "/package" }},
		{name: "list: the first 50 that a user can see", baseline: sel, url: func(int) string { return at("/skills?limit=50") }},
		{name: "list: 50 public ones", baseline: sel, url: func(int) string { return at("/skills?limit=50&namespace=public") }},
		{name: "list: 50 with a word", baseline: sel, url: func(i int) string { return at("/skills?limit=50&q=%s", words[i%len(words)]) }},
		{name: "search: 10", baseline: hits, url: func(i int) string {
			return at("/search?q=%s+%s", words[i%len(words)], words[r.IntN(len(words))])
		}},
		{name: "package", baseline: file, token: b.admin, url: func(i int) string {
			return at("/skills/%s/versions/1/package", public.Items[i%len(public.Items)].ID)
		}},
	}
	for _, clients := range []int{1, manyClients} {
		if err := b.measureQuestions(questions, clients); err != nil {
			return err
		}
	}
	return nil
}

// measureQuestions sends each kind of request in turn and prints the latencies.
func (b *bench) measureQuestions(questions []question, clients int) error {
	var table measure.Table
	median, high, cpu := map[string]*measure.Row{}, map[string]*measure.Row{}, map[string]*measure.Row{}
	for _, q := range questions {
		median[q.name] = table.Row(measure.Row{Name: q.name + ", p50", Unit: "ms", Baseline: median[q.baseline]})
		high[q.name] = table.Row(measure.Row{Name: q.name + ", p95", Unit: "ms", Baseline: high[q.baseline]})
		if q.baseline != "" {
			cpu[q.name] = table.Row(measure.Row{Name: q.name + ", CPU time of the node", Unit: "ms"})
		}
	}
	for round := range b.rounds + 1 {
		for _, q := range questions {
			before := measure.CPUOf(b.node.pid())
			took, err := b.sendMany(q, round, clients)
			if err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			if round == 0 { // the first round only fills the caches
				continue
			}
			median[q.name].Add(measure.Quantile(took, 0.5))
			high[q.name].Add(measure.Quantile(took, 0.95))
			if row := cpu[q.name]; row != nil {
				row.AddTime((measure.CPUOf(b.node.pid()) - before) / perRound)
			}
		}
	}
	fmt.Printf("%d concurrent clients:\n\n", clients)
	table.Print(os.Stdout)
	fmt.Println()
	return nil
}

// sendMany sends perRound requests of one kind from several clients and returns their latencies
// in ms.
func (b *bench) sendMany(q question, round, clients int) (ms []float64, failed error) {
	var mu sync.Mutex
	var sending sync.WaitGroup
	for c := range clients {
		sending.Go(func() {
			for i := c; i < perRound; i += clients {
				n := round*perRound + i
				token := q.token
				if token == "" {
					token = b.tokens[n*7%len(b.tokens)]
				}
				_, took, err := b.send(token, "GET", questionURL(&mu, q, n), "", nil)
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

// questionURL calls q.url with mu locked, because some functions use a shared random source.
func questionURL(mu *sync.Mutex, q question, n int) string {
	mu.Lock()
	defer mu.Unlock()
	return q.url(n)
}

// serveBaselines starts a server that does the least work for the same responses: it reads rows from
// the same database as JSON, a package from a file, and stored responses by their paths.
func (b *bench) serveBaselines(skill string, responses map[string][]byte) (*baselineServer, error) {
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
	for path, data := range responses {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { w.Write(data) })
	}
	mux.HandleFunc("/package", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) })
	mux.HandleFunc("/select", func(w http.ResponseWriter, r *http.Request) {
		rows, err := selectSkills(r.Context(), db)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(rows)
	})
	return &baselineServer{httptest.NewServer(mux), db}, nil
}

type baselineServer struct {
	*httptest.Server
	db *sql.DB
}

func (l *baselineServer) Close() {
	l.Server.Close()
	l.db.Close()
}

// selectSkills returns the first 50 public skills in name order, using an index.
func selectSkills(ctx context.Context, db *sql.DB) ([]any, error) {
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
