package secretname_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/secretname"
)

func TestCheck(t *testing.T) {
	for _, good := range []string{"A", "_", "api_KEY2", strings.Repeat("a", 128)} {
		if err := secretname.Check(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "2A", "A-B", "A B", "A\n", "Ä", strings.Repeat("a", 129)} {
		if err := secretname.Check(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
