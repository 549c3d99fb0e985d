//go:build unix

package secrets_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/internal/secrets"
)

// Exactly the limits are stored, and nothing beyond them.
func TestLimits(t *testing.T) {
	s := secrets.New(filepath.Join(t.TempDir(), "secrets.json"))
	if err := s.Set(t.Context(), "LONG", strings.Repeat("x", secrets.MaxValue)); err != nil {
		t.Errorf("the longest value: %v", err)
	}
	if err := s.Set(t.Context(), "LONGER", strings.Repeat("x", secrets.MaxValue+1)); err == nil || !strings.Contains(err.Error(), "value too long") {
		t.Errorf("a longer value: %v", err)
	}
	values := map[string]string{}
	for i := range secrets.MaxCount - 1 {
		values[fmt.Sprintf("S%04d", i)] = "<v>"
	}
	if err := s.SetAll(t.Context(), values); err != nil {
		t.Errorf("as many secrets as permitted: %v", err)
	}
	if err := s.Set(t.Context(), "ANOTHER", "v"); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("too many secrets (limit %d)", secrets.MaxCount)) {
		t.Errorf("one more: %v", err)
	}
	if err := s.Set(t.Context(), "S0000", "w"); err != nil {
		t.Errorf("a stored one again: %v", err)
	}
	all, err := s.List()
	if err != nil || len(all) != secrets.MaxCount {
		t.Fatalf("%d secrets, %v", len(all), err)
	}
	for i := 1; i < len(all); i++ {
		if all[i-1].Name >= all[i].Name {
			t.Fatalf("%s is listed before %s", all[i-1].Name, all[i].Name)
		}
	}
	if _, err := s.Get("ANOTHER"); !errors.Is(err, secrets.ErrNotSet) {
		t.Errorf("a refused secret: %v", err)
	}
}

// A user can read and repair the file.
func TestFileIsReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.json")
	if err := secrets.New(path).Set(t.Context(), "KEY", "<a&b>"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "\n    \"KEY\": {\n") || !strings.Contains(string(text), `"<a&b>"`) {
		t.Errorf("%v:\n%s", err, text)
	}
}

// With too many open files, an operation is done or returns an error, and no secret
// counts as missing.
func TestWithinLimits(t *testing.T) {
	s := secrets.New(filepath.Join(t.TempDir(), "secrets.json"))
	for _, f := range []func() error{
		func() error { return s.Set(t.Context(), "KEY", "value") },
		func() error { _, err := s.Get("KEY"); return err },
		func() error { _, err := s.List(); return err },
	} {
		limittest.EachOpen(t, f, func(err error) {
			if errors.Is(err, secrets.ErrNotSet) || strings.Contains(err.Error(), "value") {
				t.Error(err)
			}
		})
	}
	if v, err := s.Get("KEY"); err != nil || v != "value" {
		t.Errorf("%q, %v", v, err)
	}
}
