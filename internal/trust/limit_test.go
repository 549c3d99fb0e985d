//go:build unix

package trust_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/internal/trust"
	"github.com/loadout-dev/loadout/policy"
)

// With too many open files, each operation is done or returns an
// error. No failure makes a project trusted.
func TestStoreWithinLimits(t *testing.T) {
	dir := project(t, ".loadout/config.yaml")
	s := trust.NewStore(filepath.Join(t.TempDir(), "trust"))
	d, _ := digest(t, dir)
	try(t, os.MkdirAll(filepath.Join(dir, "x"), 0o700))
	put := func() error {
		_, err := s.Trust(t.Context(), dir, d, policy.LocalUser())
		return err
	}
	limittest.EachOpen(t, put, func(err error) {
		if !strings.HasPrefix(err.Error(), "trust "+dir+": ") {
			t.Error(err)
		}
	})
	if r, err := s.Find(dir); err != nil || r.Digest != d {
		t.Fatalf("trusted: %+v, %v", r, err)
	}
	limittest.EachOpen(t, func() error {
		ok, err := isTrusted(s, dir, d)
		if ok != (err == nil) {
			t.Errorf("trusted: %t, %v", ok, err)
		}
		return err
	}, func(err error) {
		if errors.Is(err, trust.ErrNotTrusted) {
			t.Errorf("an unreadable record counts as none: %v", err)
		}
	})
	limittest.EachOpen(t, func() error {
		all, problems, err := s.List()
		if err == nil && len(all)+len(problems) != 1 {
			t.Errorf("listed %v and %v", all, problems)
		}
		if len(problems) > 0 {
			return errors.New(problems[0].Message)
		}
		return err
	}, func(error) {})
	limittest.EachOpen(t, func() error {
		p, err := trust.Read(dir, s)
		if err == nil && !p.Trusted {
			t.Error("read as not trusted without an error")
		}
		return err
	}, func(error) {})
	if p, err := trust.Read(dir, nil); err != nil || p.Trusted || p.Changed || p.State() != "untrusted" {
		t.Errorf("without a store: %+v, %v", p, err)
	}
	limittest.EachOpen(t, func() error {
		_, err := s.Untrust(t.Context(), dir)
		if errors.Is(err, trust.ErrNotTrusted) {
			return nil // only the directory was not synced before
		}
		return err
	}, func(error) {})
	if _, err := s.Find(dir); !errors.Is(err, trust.ErrNotTrusted) {
		t.Errorf("after untrusting: %v", err)
	}
}

func TestConfigDigestWithinLimits(t *testing.T) {
	dir := project(t, ".loadout/config.yaml", ".loadout/profiles/a/b.yaml")
	want, _ := digest(t, dir)
	root, err := os.OpenRoot(dir)
	try(t, err)
	defer root.Close()
	var got policy.Digest
	limittest.EachOpen(t, func() (err error) { got, _, err = trust.ConfigDigest(root); return err }, func(err error) {
		if got != "" || !strings.HasPrefix(err.Error(), "read project configuration: ") {
			t.Errorf("digest %q with the error %v", got, err)
		}
	})
	if got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

// Only complete records of users are stored.
func TestTrustRefusesInvalidRecords(t *testing.T) {
	dir := project(t, ".loadout/config.yaml")
	d, _ := digest(t, dir)
	at := filepath.Join(t.TempDir(), "trust")
	s := trust.NewStore(at)
	for name, f := range map[string]func() error{
		"no digest": func() error { _, err := s.Trust(t.Context(), dir, "", policy.LocalUser()); return err },
		"an agent": func() error {
			_, err := s.Trust(t.Context(), dir, d, policy.Principal{ID: "robot", Kind: policy.AgentPrincipal})
			return err
		},
		"nobody": func() error { _, err := s.Trust(t.Context(), dir, d, policy.Principal{}); return err },
		"missing": func() error {
			_, err := s.Trust(t.Context(), filepath.Join(dir, "none"), d, policy.LocalUser())
			return err
		},
	} {
		if err := f(); err == nil {
			t.Errorf("%s: trusted", name)
		}
	}
	if _, err := s.Find(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing project: %v", err)
	}
	// A record that was moved to another project, or lacks its time, is damaged.
	r, err := s.Trust(t.Context(), dir, d, policy.LocalUser())
	try(t, err)
	var record string
	try(t, filepath.WalkDir(at, func(p string, e fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(p) == ".json" {
			record = p
		}
		return err
	}))
	text, err := os.ReadFile(record)
	try(t, err)
	other := project(t, ".loadout/config.yaml")
	_, err = s.Trust(t.Context(), other, d, policy.LocalUser())
	try(t, err)
	for what, data := range map[string]string{
		"another directory": strings.Replace(string(text), dir, other, 1),
		"no time":           strings.Replace(string(text), r.Created.Format(time.RFC3339Nano), "0001-01-01T00:00:00Z", 1),
		"a relative path":   strings.Replace(string(text), dir, "x", 1),
	} {
		if data == string(text) {
			t.Fatalf("%s: nothing was replaced in %s", what, text)
		}
		try(t, os.WriteFile(record, []byte(data), 0o600))
		ok, err := isTrusted(s, dir, d)
		if _, damaged := errors.AsType[*privatefile.DamagedError](err); ok || !damaged {
			t.Errorf("%s: %t, %v", what, ok, err)
		}
		if _, problems, err := s.List(); err != nil || len(problems) != 1 {
			t.Errorf("%s: listed with %v, %v", what, problems, err)
		}
	}
	if _, err := s.Untrust(t.Context(), dir); err != nil {
		t.Errorf("a damaged record cannot be removed: %v", err)
	}
}
