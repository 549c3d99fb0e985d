package sessionapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/usage"
)

func TestTotals(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }
	h := &Handlers{Options: Options{Price: func(model string) (usage.Price, bool) { return usage.Price{Input: 1e6, Output: 2e6}, model == "a:1" }}}
	entries := []store.MeterEntry{
		{Date: day(2), Model: "b:1", Owner: "ada", Turns: 1, Loads: 2, Calls: 3, Errors: 4, Input: 5, Output: 6, CacheRead: 7, CacheWrite: 8},
		{Date: day(1), Model: "a:1", Owner: "bob", Turns: 1, Input: 10, Output: 1},
		{Date: day(2), Model: "a:1", Owner: "ada", Turns: 2, Input: 1, Output: 2},
		{Date: day(2), Model: "a:1", Owner: "ada", Turns: 1},
	}
	items, total := h.totals(entries, store.ByDay)
	var days []string
	for _, i := range items {
		days = append(days, fmt.Sprintf("%s %s %d turns %d %d %d %d, cost %v, unpriced %d", i.Day, i.User, i.Turns, *i.Input, *i.Output, *i.CacheRead, *i.CacheWrite, *i.Cost, i.Unpriced))
	}
	want := "2026-11-01 bob 1 turns 10 1 0 0, cost 12, unpriced 0\n2026-11-02 ada 4 turns 6 8 7 8, cost 5, unpriced 26"
	if got := strings.Join(days, "\n"); got != want {
		t.Errorf("days:\n%s\nwant\n%s", got, want)
	}
	if total.Turns != 5 || total.Loads != 2 || total.Calls != 3 || total.Errors != 4 || *total.Cost != 17 || total.Unpriced != 26 || total.tokens() != 40 {
		t.Errorf("total %+v", total)
	}
	for i := range entries {
		entries[i].Date = time.Time{}
	}
	items, _ = h.totals(entries, store.ByModel)
	var models []string
	for _, i := range items {
		models = append(models, fmt.Sprintf("%s %s %d", i.Model, i.User, i.tokens()))
	}
	if got := strings.Join(models, ", "); got != "b:1 ada 26, a:1 bob 11, a:1 ada 3" {
		t.Errorf("models, most tokens first: %s", got)
	}
}

// Token counts that no model reported are absent, not 0.
func TestUnreportedCounts(t *testing.T) {
	h := &Handlers{Options: Options{Price: func(string) (usage.Price, bool) { return usage.Price{}, false }}}
	for _, tt := range []struct {
		entry store.MeterEntry
		has   bool
	}{
		{store.MeterEntry{Unreported: 1}, false}, {store.MeterEntry{Unreported: 1, Input: 1}, true}, {store.MeterEntry{}, true},
	} {
		_, total := h.totals([]store.MeterEntry{tt.entry}, store.ByDay)
		for _, part := range total.parts() {
			if (*part != nil) != tt.has {
				t.Errorf("%+v: %+v", tt.entry, total)
			}
		}
		if total.Cost != nil || total.Unpriced != tt.entry.Input {
			t.Errorf("%+v: cost %v, unpriced %d", tt.entry, total.Cost, total.Unpriced)
		}
	}
}

func TestQueuedProblem(t *testing.T) {
	other := errors.New("other")
	if got := queuedProblem(other); got != other {
		t.Error(got)
	}
	if p, _ := errors.AsType[*api.Problem](queuedProblem(fmt.Errorf("load: %w", api.ErrTimeout))); p == nil || p.Status != 504 || p.Code != "waits" {
		t.Errorf("%+v", p)
	}
	if queuedProblem(nil) != nil {
		t.Error("no error is a problem")
	}
}

func TestReadMessageID(t *testing.T) {
	id := strings.Repeat("i", maxMessageID)
	for text, want := range map[string]string{`{"id": "a"}`: "a", `{"id": "` + id + `"}`: id, `{"id": "` + id + `i"}`: "", `{"id": 7}`: "", `{`: "", `{}`: ""} {
		if got := readMessageID([]byte(text)); got != want {
			t.Errorf("%.30s: %q", text, got)
		}
	}
}

func TestFileNames(t *testing.T) {
	for title, want := range map[string]string{"Tides": "Tides", `a/b\c:d*e?f"g<h>i|j`: "a-b-c-d-e-f-g-h-i-j", " .x. ": "x", "": "conversation 7", "...": "conversation 7"} {
		if got := fileName(chat.Conversation{ID: "7", Title: title}); got != want {
			t.Errorf("%q: %q", title, got)
		}
	}
}

func TestAgentNameSchema(t *testing.T) {
	data, err := json.Marshal(agentName{}.Schema(nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"maxLength":600`, `^((Ghost|Bot|Team)/([^/]+/)?[^/]+)?$`, `"enum":["Ghost","Bot","Team"]`, `"additionalProperties":false`, `"required":["kind","name"]`, `"maxLength":200`, `"minLength":1`} {
		if !strings.Contains(string(data), part) {
			t.Errorf("no %s in %s", part, data)
		}
	}
}
