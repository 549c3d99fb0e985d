package setup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/policy"
)

// Skills of a directory given with --skills have one history, whatever the
// working directory and the spelling of the path.
func TestApprovalsOfGivenDirectory(t *testing.T) {
	home := t.TempDir()
	skills := filepath.Join(home, "skills")
	if err := os.Mkdir(skills, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(home, "link")
	if err := os.Symlink(skills, link); err != nil {
		t.Skip(err)
	}
	in := func(workdir, skills string) policy.Store {
		t.Chdir(workdir)
		return (&Setup{Skills: []string{skills}, Console: console.Console{Getenv: func(name string) string {
			return map[string]string{"HOME": home, "USERPROFILE": home}[name]
		}}}).GrantStore()
	}
	version := func(v string) policy.Digest { return policy.Digest("sha256:" + strings.Repeat(v, 64)) }
	approve := func(s policy.Store, v string) {
		t.Helper()
		_, err := s.Put(t.Context(), policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Subject: version(v), Name: "pdf", Origin: "dir.skills",
			Permissions: policy.Permissions{Run: true}, Scope: policy.Always})
		if err != nil {
			t.Fatal(err)
		}
	}
	a, b := t.TempDir(), t.TempDir()
	approve(in(a, skills), "1")
	approve(in(b, link), "2")
	for _, dir := range []string{a, b, t.TempDir()} {
		if _, err := in(dir, skills).Find(t.Context(), policy.LocalUser(), version("1"), ""); !errors.Is(err, policy.ErrNotGranted) {
			t.Errorf("in %s, the older version is approved: %v", dir, err)
		}
		if _, err := in(dir, skills).Find(t.Context(), policy.LocalUser(), version("2"), ""); err != nil {
			t.Errorf("in %s, the newer version is not approved: %v", dir, err)
		}
	}
}
