package filetype_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/filetype"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct{ name, data, want string }{
		{"a.JSON", "\x00", "application/json"}, {"README", "text", "text/plain"}, {"data", "\x00", "application/octet-stream"}, {"empty", "", "application/octet-stream"},
	} {
		if got := filetype.Of(tt.name, []byte(tt.data)); got != tt.want {
			t.Errorf("Of(%q, %q) = %q, want %q", tt.name, tt.data, got, tt.want)
		}
	}
}
