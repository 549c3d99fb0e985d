//go:build unix

package superseded_test

import (
	"errors"
	"testing"

	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/policy"
)

// With too many open files, each operation is done or returns an error, and no failure
// makes a superseded version count again.
func TestWithinLimits(t *testing.T) {
	m := newMachine(t)
	s := m.in("a")
	m.approve(s, "user", "1")
	limittest.EachOpen(t, func() error { _, err := s.Put(t.Context(), grant("user", "2")); return err }, func(err error) {
		if errors.Is(err, policy.ErrNotGranted) {
			t.Errorf("a failure counts as a decision: %v", err)
		}
	})
	if _, err := s.Find(t.Context(), policy.LocalUser(), digest("1"), ""); !errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("the first version: %v", err)
	}
	for what, f := range map[string]func() error{
		"Find": func() error {
			g, err := s.Find(t.Context(), policy.LocalUser(), digest("2"), "")
			if err == nil && g.Subject != digest("2") {
				t.Errorf("found %+v", g)
			}
			return err
		},
		"Superseded": func() error {
			all, err := s.Superseded()
			if err == nil && len(all) != 1 {
				t.Errorf("superseded are %+v", all)
			}
			return err
		},
		"List": func() error {
			all, problems, err := s.List(t.Context())
			if err == nil && len(all)+len(problems) != 1 {
				t.Errorf("listed %v, %v", all, problems)
			}
			return err
		},
	} {
		limittest.EachOpen(t, f, func(err error) {
			if errors.Is(err, policy.ErrNotGranted) {
				t.Errorf("%s: a failure counts as a decision: %v", what, err)
			}
		})
	}
	done := false
	limittest.EachOpen(t, func() (err error) { done, err = s.Reinstate(t.Context(), digest("1"), "user"); return err }, func(error) {
		if done {
			t.Error("reinstated with an error")
		}
	})
	if _, err := s.Find(t.Context(), policy.LocalUser(), digest("1"), ""); err != nil || !done {
		t.Errorf("reinstated: %t, %v", done, err)
	}
	gone := 0
	limittest.EachOpen(t, func() error {
		all, err := s.Revoke(t.Context(), "pdf")
		if gone += len(all); errors.Is(err, policy.ErrNotGranted) && gone > 0 {
			return nil
		}
		return err
	}, func(error) {})
	if all, err := s.Superseded(); err != nil || len(all) > 0 || gone < 2 {
		t.Errorf("%d revoked, %+v left, %v", gone, all, err)
	}
}
