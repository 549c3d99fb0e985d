package hub_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// What one node did the others leave, unless it failed.
func TestOneNodeDoesMaintenance(t *testing.T) {
	address := storetest.SQLite(t)
	one, two := start(t, hub.Options{Database: address}), start(t, hub.Options{Database: address})
	var done []string
	work := func(n *node, name string, err error) error {
		return n.Alone(t.Context(), "count", time.Hour, func(context.Context) error {
			done = append(done, name)
			return err
		})
	}
	broken := errors.New("broken")
	if err := work(one, "one", broken); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	for _, n := range []*node{two, one, two} {
		if err := work(n, map[*node]string{one: "one", two: "two"}[n], nil); err != nil {
			t.Error(err)
		}
	}
	wantEqual(t, done, []string{"one", "two"})
}
