package hub

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/skillapi"
)

// deadlines remembers until when an answer may be written, and for which parts of the
// request there is a read deadline.
type deadlines struct {
	*httptest.ResponseRecorder
	last time.Time

	body          *strings.Reader
	reading, idle bool // whether it was set before and after the end of the body
}

func (d *deadlines) SetReadDeadline(time.Time) error {
	if d.body.Len() > 0 {
		d.reading = true
	} else {
		d.idle = true
	}
	return nil
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.last = at
	return nil
}

// An answer may be written for as long as an operation may take, and then a minute.
func TestLongOperationsHaveLongerDeadlines(t *testing.T) {
	h, err := Open(t.Context(), Options{Data: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, tt := range []struct {
		method, path, body string
		most               time.Duration
	}{
		{"POST", "/api/v1/skills/import/look", `{"source": "./x"}`, skillapi.ImportTimeout + api.ResponseTimeout},
		{"POST", "/api/v1/skills/update", `{}`, skillapi.ImportTimeout + api.ResponseTimeout},
		{"GET", "/api/v1/defaults", "", api.ResponseTimeout},
	} {
		start := time.Now()
		w := serveWithDeadlines(h, tt.method, tt.path, "", tt.body)
		if w.Code == http.StatusNotFound || w.last.Before(start.Add(tt.most)) || w.last.After(time.Now().Add(tt.most)) {
			t.Errorf("%s: status %d, and until %s after it began", tt.path, w.Code, w.last.Sub(start))
		}
	}
}

// A read deadline that expires after the body was read would cancel the request, and
// all later ones of its connection. Such a deadline is never set, even if the node
// stops at that moment.
func TestReadDeadlineEndsWithBody(t *testing.T) {
	h, err := Open(t.Context(), Options{Data: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, tt := range []struct {
		method, path, key, body string
		status                  int
		limited                 bool // whether the body has a deadline
	}{
		{"POST", "/api/v1/groups", "", `{"name": "crew"}`, 201, true},
		{"POST", "/api/v1/groups", "k1", `{"name": "team"}`, 201, true},
		{"POST", "/api/v1/groups", "k2", "", 400, false},
		{"POST", "/api/v1/nothing", "", `{"name": "crew"}`, 404, true},
		{"GET", "/api/v1/groups", "", "", 200, false},
	} {
		w := serveWithDeadlines(h, tt.method, tt.path, tt.key, tt.body)
		if w.Code != tt.status || w.reading != tt.limited || w.idle {
			t.Errorf("%s %s %q: status %d, deadlines while reading %t, afterwards %t: %s", tt.method, tt.path, tt.key, w.Code, w.reading, w.idle, w.Body)
		}
	}
}

// serveWithDeadlines serves a request, with an Idempotency-Key unless key is "".
func serveWithDeadlines(h *Hub, method, path, key, body string) *deadlines {
	w := &deadlines{ResponseRecorder: httptest.NewRecorder(), body: strings.NewReader(body)}
	r := httptest.NewRequest(method, "http://127.0.0.1"+path, w.body)
	r.RemoteAddr = "127.0.0.1:1234"
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	h.Handler().ServeHTTP(w, r)
	return w
}
