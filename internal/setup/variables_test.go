package setup

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/upstream"
)

// Messages about a variable without a value name the command that sets it for
// its owner.
func TestHowToSetVariable(t *testing.T) {
	for _, tt := range []struct {
		of         upstream.Owner
		kind, want string
	}{
		{"", upstream.FromSecret, "loadout secret set KEY"},
		{"", upstream.FromInput, "loadout secret set KEY"},
		{"project", upstream.FromUser, "add it to your configuration, under user: as KEY"},
		{"local/weibo@sha256:0123", upstream.FromSecret, "loadout secret set KEY; then grant it to the skill: loadout secret grant KEY --skill local/weibo"},
	} {
		if got := howToSetVariable(tt.of, tt.kind, "KEY"); got != tt.want {
			t.Errorf("%s of %q: got %q, want %q", tt.kind, tt.of, got, tt.want)
		}
	}
}
