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

// deadlines remembers until when an answer may be written.
type deadlines struct {
	*httptest.ResponseRecorder
	last time.Time
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
		r := httptest.NewRequest(tt.method, "http://127.0.0.1"+tt.path, strings.NewReader(tt.body))
		r.RemoteAddr = "127.0.0.1:1234"
		r.Header.Set("Content-Type", "application/json")
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		start := time.Now()
		h.Handler().ServeHTTP(w, r)
		if w.Code == http.StatusNotFound || w.last.Before(start.Add(tt.most)) || w.last.After(time.Now().Add(tt.most)) {
			t.Errorf("%s: status %d, and until %s after it began", tt.path, w.Code, w.last.Sub(start))
		}
	}
}
