package overlay_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/internal/overlay"
)

// With too many open files, changes are refused or an error. No file is missing from
// the changes, and none is applied in part.
func TestTooManyOpenFiles(t *testing.T) {
	lower := tree{"a": "fone", "dir": "d", "dir/x": "fx", "dir/y": "fy", "gone": "d", "gone/z": "fz", "hidden": "d", "hidden/old": "f"}
	merged := tree{"a": "ftwo", "dir": "d", "dir/x": "fother", "dir/y": "fy", "new": "d", "new/f": "fn", "hidden": "d", "hidden/new": "f"}
	dir, upper := dirs(t, lower, merged)
	want := summary(read(t, dir, upper))
	limittest.EachOpen(t, func() error {
		s, err := overlay.Read(dir, upper, time.Now())
		if err != nil {
			return err
		}
		defer s.Close()
		for i := range s.List {
			if c := &s.List[i]; c.Refused != "" {
				return errors.New(c.Refused)
			}
		}
		if diff := cmp.Diff(want, summary(s)); diff != "" {
			t.Error(diff)
		}
		return nil
	}, func(error) {})
	limittest.EachOpen(t, func() error {
		s, err := overlay.Read(dir, upper, time.Now())
		if err != nil {
			return err
		}
		defer s.Close()
		for _, f := range s.Apply(t.Context(), all) {
			return f.Err
		}
		return nil
	}, func(error) {})
	if diff := cmp.Diff(merged, readTree(t, dir)); diff != "" {
		t.Error(diff)
	}
}
