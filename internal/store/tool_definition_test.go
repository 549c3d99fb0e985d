package store_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestDefinitions(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		d := func(tool, digest string, accepted bool) store.ToolDefinition {
			return store.ToolDefinition{Server: "s", Tool: tool, Digest: digest, Definition: []byte(`{"is":"` + digest + `"}`), OwnerID: "k", Accepted: accepted}
		}
		if known := must(db.ToolDefinitions.Digests(ctx, "s"))(t); known != nil {
			t.Errorf("of nothing %v is known", known)
		}
		mustDo(t, db.ToolDefinitions.Add(ctx, d("tell", "1", true), d("same", "1", true)))
		mustDo(t, db.ToolDefinitions.Add(ctx, d("tell", "2", false)))
		mustDo(t, db.ToolDefinitions.Add(ctx, d("tell", "3", false), d("new", "4", false)))
		wantEqual(t, must(db.ToolDefinitions.Digests(ctx, "s"))(t), map[string]map[string]bool{
			"tell": {"1": true, "3": false}, "same": {"1": true}, "new": {"4": false}})
		held := must(db.ToolDefinitions.ListPending(ctx, []string{"s", "t"}))(t)
		wantEqual(t, names(held, func(d store.ToolDefinition) string { return d.Tool + d.Digest }), []string{"new4", "tell3"})
		changes := must(db.ToolDefinitions.ListChanges(ctx, "s"))(t)
		wantEqual(t, must(db.ToolDefinitions.ListChangesByOwner(ctx, "k"))(t), changes)
		_, wrong := db.ToolDefinitions.AcceptByOwner(ctx, "another", []string{"3"}, "ada")
		wantError(t, wrong, store.ErrNotFound)
		wantEqual(t, names(changes, func(d store.ToolDefinition) string { return d.Tool + string(d.Definition) }),
			[]string{`new{"is":"4"}`, `tell{"is":"1"}`, `tell{"is":"3"}`})

		_, err := db.ToolDefinitions.Accept(ctx, "s", []string{"3", "2"}, "ada")
		wantError(t, err, store.ErrNotFound)
		wantEqual(t, len(must(db.ToolDefinitions.ListPending(ctx, []string{"s"}))(t)), 2)
		wantEqual(t, must(db.ToolDefinitions.Accept(ctx, "s", []string{"3"}, "ada"))(t), []string{"tell"})
		mustDo(t, db.ToolDefinitions.Add(ctx, d("tell", "5", false)))
		for _, c := range must(db.ToolDefinitions.ListChanges(ctx, "s"))(t) {
			if c.Accepted && (c.Digest != "3" || c.AcceptedBy != "ada" || c.Decided.IsZero()) {
				t.Errorf("what was accepted last is %+v", c)
			}
		}
		for i := range 40 { // a server that tells something else each time
			mustDo(t, db.ToolDefinitions.Add(ctx, d("date", strconv.Itoa(100+i), true)))
		}
		if dates := must(db.ToolDefinitions.Digests(ctx, "s"))(t)["date"]; len(dates) != 16 || !dates["139"] || dates["100"] {
			t.Errorf("of a tool that changes each time is stored: %v", dates)
		}
		wantEqual(t, must(db.ToolDefinitions.Prune(ctx, time.Now().Add(time.Hour)))(t), int64(5+16))
	})
}
