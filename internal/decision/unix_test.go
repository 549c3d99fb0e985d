//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package decision_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/privatefile/privatefiletest"
	"github.com/loadout-dev/loadout/policy"
)

func TestForRunDeniesOnUnreadablePolicy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "grants")
	s := policy.NewFileStore(dir)
	_, err := s.Put(t.Context(), newGrant(digestOf("a")))
	try(t, err)
	privatefiletest.Tamper["writable by others"](t, dir)
	d := decision.ForRun(t.Context(), s, request())
	if d.Effect != policy.Deny || d.Code != decision.Unreadable || !strings.HasPrefix(d.Reason, "cannot read grants: ") || !strings.Contains(d.Hint, dir) {
		t.Errorf("decided %+v, want a refusal that names %s", d, dir)
	}
}
