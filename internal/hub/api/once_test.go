package api_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// onceHandler serves two operations, whose response has the size that the request
// asks for, and counts how often they are executed.
func onceHandler(t *testing.T) (db *store.DB, h http.Handler, executed *int) {
	t.Helper()
	return onceHandlerAt(t, storetest.SQLite(t))
}

// onceHandlerAt is like onceHandler, but with the given database.
func onceHandlerAt(t *testing.T, address string) (db *store.DB, h http.Handler, executed *int) {
	t.Helper()
	db = storetest.Open(t, address)
	cipher, err := encryption.New(encryption.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	s := api.New(mux, api.Options{Log: slog.New(slog.DiscardHandler), Requests: api.Requests{DB: db, Cipher: cipher}})
	executed = new(int)
	type answer struct {
		Text string `json:"text"`
	}
	for id, path := range map[string]string{"answer": "/answers", "apply": "/apply"} {
		api.Add(s, api.Operation(id, "POST", path, "Answer"), func(_ context.Context, in *struct {
			Body struct {
				Size   int    `json:"size"`
				Secret string `json:"secret,omitempty"`
			}
		}) (*api.Body[answer], error) {
			*executed++
			return api.BodyOf(answer{strings.Repeat("x", in.Body.Size)}, nil)
		})
	}
	return db, mux, executed
}

func postWithKey(t *testing.T, h http.Handler, path, key string, body io.Reader) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("POST", api.Prefix+path, body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	ctx := api.WithRequest(r.Context(), &api.Request{HTTP: r})
	ctx = account.NewContext(ctx, account.Principal{User: "u1", Scopes: account.ScopeWrite})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(ctx))
	return w
}

// onceServer is like onceHandler. post sends a request to one of the operations.
func onceServer(t *testing.T) (db *store.DB, post func(key string, body io.Reader) *httptest.ResponseRecorder, executed *int) {
	t.Helper()
	db, h, executed := onceHandler(t)
	return db, func(key string, body io.Reader) *httptest.ResponseRecorder {
		t.Helper()
		return postWithKey(t, h, "/answers", key, body)
	}, executed
}

// A dry run stores nothing, not even its response, which may be large.
func TestDryRunIsNotRecorded(t *testing.T) {
	db, h, executed := onceHandler(t)
	for i, tt := range []struct {
		path     string
		executed int
		recorded bool
	}{{"/apply?dry=true", 2, false}, {"/apply?dry=1", 4, false}, {"/apply?dry=false", 5, true}, {"/answers?dry=true", 6, true}} {
		key := fmt.Sprint("k", i)
		for range 2 {
			if w := postWithKey(t, h, tt.path, key, strings.NewReader(`{"size":1}`)); w.Code != http.StatusOK {
				t.Errorf("%s: status %d: %s", tt.path, w.Code, w.Body)
			}
		}
		if *executed != tt.executed {
			t.Errorf("%s: %d executions, want %d", tt.path, *executed, tt.executed)
		}
		if _, err := db.Requests.Get(t.Context(), "u1", key); (err == nil) != tt.recorded {
			t.Errorf("%s: recorded: %v", tt.path, err)
		}
	}
}

// A request with a key has the limit of its operation: a user cannot make the hub
// keep larger bodies in memory.
func TestBodyWithKeyIsLimited(t *testing.T) {
	_, post, executed := onceServer(t)
	limit := 1 << 20
	body := &countingReader{Reader: io.MultiReader(strings.NewReader(`{"size":1,"secret":"`), strings.NewReader(strings.Repeat("x", 20*limit)), strings.NewReader(`"}`))}
	if w := post("k", body); w.Code != http.StatusRequestEntityTooLarge || *executed != 0 {
		t.Errorf("status %d, %d executions: %s", w.Code, *executed, w.Body)
	}
	if body.n > 2*limit {
		t.Errorf("%d bytes were read", body.n)
	}
	exact := `{"size":1,"secret":""}`
	exact = strings.Replace(exact, `""}`, `"`+strings.Repeat("x", limit-1-len(exact))+`"}`, 1)
	for range 2 {
		if w := post("k", strings.NewReader(exact)); w.Code != http.StatusOK || *executed != 1 {
			t.Errorf("status %d, %d executions", w.Code, *executed)
		}
	}
}

// countingReader counts the bytes that were read.
type countingReader struct {
	io.Reader
	n int
}

func (r *countingReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.n += n
	return n, err
}

// A response of any size is repeated, also if it is larger than an encrypted value can be.
func TestLargeResponsesAreRepeated(t *testing.T) {
	_, post, executed := onceServer(t)
	body := fmt.Sprintf(`{"size":%d}`, 3*encryption.MaxValue)
	first := post("k", strings.NewReader(body))
	if first.Code != 200 || first.Body.Len() < 3*encryption.MaxValue {
		t.Fatalf("first: %d, %d bytes", first.Code, first.Body.Len())
	}
	if again := post("k", strings.NewReader(body)); again.Code != 200 || again.Body.String() != first.Body.String() {
		t.Errorf("again: %d %.300s", again.Code, again.Body)
	}
	if other := post("k", strings.NewReader(`{"size":1}`)); other.Code != 422 {
		t.Errorf("another request with the key: %d %s", other.Code, other.Body)
	}
	if *executed != 1 {
		t.Errorf("executed %d times", *executed)
	}
}

// Whoever reads the database cannot try out passwords with the recorded digest of a
// request: no one can compute it without the key.
func TestRecordedDigestsAreEncrypted(t *testing.T) {
	db, post, _ := onceServer(t)
	digest := func(key string) string {
		t.Helper()
		post(key, strings.NewReader(`{"size":1,"secret":"correct horse"}`))
		r, err := db.Requests.Get(t.Context(), "u1", key)
		if err != nil {
			t.Fatal(err)
		}
		return r.Digest
	}
	if a, b := digest("a"), digest("b"); a == b {
		t.Errorf("equal requests have equal digests: %s", a)
	}
}

// A response that is not stored any more is not made a second time, and a user with
// too many requests learns when to try again.
func TestKeysAndResponsesAreBounded(t *testing.T) {
	address := storetest.SQLite(t)
	db, h, executed := onceHandlerAt(t, address)
	post := func(key string, body io.Reader) *httptest.ResponseRecorder {
		return postWithKey(t, h, "/answers", key, body)
	}
	if w := post("k", strings.NewReader(`{"size":1}`)); w.Code != http.StatusOK {
		t.Fatal(w.Code)
	}
	if err := db.Requests.End(t.Context(), store.Request{Principal: "u1", Label: "k", Status: 200}); err != nil {
		t.Fatal(err)
	}
	if w := post("k", strings.NewReader(`{"size":1}`)); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "key_done") || *executed != 1 {
		t.Errorf("status %d, %d executions: %s", w.Code, *executed, w.Body)
	}
	if w := post("large", strings.NewReader(fmt.Sprintf(`{"size":%d}`, 20<<20))); w.Code != http.StatusOK {
		t.Errorf("status %d", w.Code)
	}
	if w := post("large", strings.NewReader(fmt.Sprintf(`{"size":%d}`, 20<<20))); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "key_done") || *executed != 2 {
		t.Errorf("a response that is too large: status %d, %d executions: %s", w.Code, *executed, w.Body)
	}
	file, err := sql.Open("sqlite", strings.TrimPrefix(address, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Exec(`INSERT INTO requests (principal, label, digest, created, status, response)
		WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
		SELECT 'u1', 'l' || i, 'd', (SELECT MIN(created) FROM requests), 0, '' FROM n`, store.MaxRequests); err != nil {
		t.Fatal(err)
	}
	w := post("more", strings.NewReader(`{"size":1}`))
	wait, err := strconv.Atoi(w.Header().Get("Retry-After"))
	if w.Code != http.StatusTooManyRequests || err != nil || wait < 86000 || wait > 86401 || *executed != 2 {
		t.Errorf("status %d, %d executions, Retry-After %q: %s", w.Code, *executed, w.Header().Get("Retry-After"), w.Body)
	}
	if w := post("k", strings.NewReader(`{"size":1}`)); w.Code != http.StatusConflict {
		t.Errorf("a repetition: status %d", w.Code)
	}
}
