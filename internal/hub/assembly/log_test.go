package assembly_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/assembly"
)

// A turn is nothing that is logged at info.
func TestTurnLogsNothing(t *testing.T) {
	var out bytes.Buffer // a handler writes one line at a time
	w := sqlite(t, func(o *assembly.Options) { o.Logger = slog.New(slog.NewTextHandler(&out, nil)) })
	w.ask(w.ada, w.begin(w.ada, ""), "hello", "script heard: hello")
	must(t, w.kits.Close())
	if out.Len() > 0 {
		t.Errorf("a turn logs\n%s", out.String())
	}
}
