//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/loadout-dev/loadout/policy"
)

func TestOnlyTheUserCanReadWhatIsKept(t *testing.T) {
	_, dir, file := kept(t)
	log := filepath.Join(dir, "audit.jsonl")
	try(t, policy.NewAudit(log).Append(t.Context(), record("one")))
	for path, want := range map[string]os.FileMode{dir: 0o700, file: 0o600, filepath.Join(dir, ".lock"): 0o600, log: 0o600} {
		info, err := os.Stat(path)
		try(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

// tampered are ways in which somebody else may have had a hand in a path.
var tampered = map[string]func(t *testing.T, path string){
	"group can write":    func(t *testing.T, p string) { chmod(t, p, 0o020) },
	"others can write":   func(t *testing.T, p string) { chmod(t, p, 0o002) },
	"of another user":    func(t *testing.T, p string) { chown(t, p) },
	"a symbolic link":    func(t *testing.T, p string) { link(t, p) },
	"a pipe":             func(t *testing.T, p string) { try(t, os.RemoveAll(p)); try(t, syscall.Mkfifo(p, 0o600)) },
	"a dangling link":    func(t *testing.T, p string) { try(t, os.RemoveAll(p)); try(t, os.Symlink("nowhere", p)) },
	"what it should not": func(t *testing.T, p string) { swapKind(t, p) },
}

func chmod(t *testing.T, path string, more os.FileMode) {
	info, err := os.Stat(path)
	try(t, err)
	try(t, os.Chmod(path, info.Mode().Perm()|more))
}

func chown(t *testing.T, path string) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	try(t, os.Chown(path, 12345, -1))
}

func link(t *testing.T, path string) {
	try(t, os.Rename(path, path+".real"))
	try(t, os.Symlink(filepath.Base(path)+".real", path))
}

func swapKind(t *testing.T, path string) {
	info, err := os.Stat(path)
	try(t, err)
	try(t, os.RemoveAll(path))
	if info.IsDir() {
		try(t, os.WriteFile(path, nil, 0o600))
	} else {
		try(t, os.Mkdir(path, 0o700))
	}
}

func isUnsafe(t *testing.T, what string, err error, path string) {
	t.Helper()
	if u, ok := errors.AsType[*policy.UnsafeFileError](err); !ok || u.Path != path {
		t.Errorf("%s: %v, want an error that %s cannot be trusted", what, err, path)
	}
}

func TestAnUnsafeDirectoryIsRefused(t *testing.T) {
	for name, spoil := range tampered {
		t.Run(name, func(t *testing.T) {
			s, dir, _ := kept(t)
			spoil(t, dir)
			_, err := s.Find(t.Context(), robot, digestOf("a"), "")
			isUnsafe(t, "find", err, dir)
			_, _, err = s.List(t.Context())
			isUnsafe(t, "list", err, dir)
			_, err = s.Revoke(t.Context(), "pdf")
			isUnsafe(t, "revoke", err, dir)
			if _, err = s.Put(t.Context(), newGrant(digestOf("b"))); err == nil {
				t.Error("a grant was kept")
			}
		})
	}
}

func TestAnUnsafeFileGrantsNothingAndHarmsNoOther(t *testing.T) {
	for name, spoil := range tampered {
		t.Run(name, func(t *testing.T) {
			s, _, file := kept(t)
			other, err := s.Put(t.Context(), newGrant(digestOf("b")))
			try(t, err)
			spoil(t, file)
			_, err = s.Find(t.Context(), robot, digestOf("a"), "")
			isUnsafe(t, "find", err, file)
			if _, err := s.Find(t.Context(), robot, other.Subject, ""); err != nil {
				t.Errorf("the other grant: %v", err)
			}
			grants, problems, err := s.List(t.Context())
			if err != nil || len(grants) != 1 || len(problems) != 1 || problems[0].Where != file {
				t.Errorf("listed %v, %v, %v; want the other, and one problem of %s", grants, problems, err, file)
			}
		})
	}
}

func TestAnUnsafeLockIsRefused(t *testing.T) {
	s, dir, _ := kept(t)
	lock := filepath.Join(dir, ".lock")
	link(t, lock)
	_, err := s.Put(t.Context(), newGrant(digestOf("b")))
	isUnsafe(t, "put", err, lock)
}

func TestAFileThatIsTooLargeIsRefused(t *testing.T) {
	s, _, file := kept(t)
	try(t, os.WriteFile(file, []byte(strings.Repeat(" ", policy.MaxGrantBytes+1)), 0o600))
	_, err := s.Find(t.Context(), robot, digestOf("a"), "")
	isUnsafe(t, "find", err, file)
}

func TestAnUnreadableStoreIsNotAnEmptyOne(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can read everything")
	}
	s, dir, _ := kept(t)
	try(t, os.Chmod(dir, 0))
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	if _, err := s.Find(t.Context(), robot, digestOf("a"), ""); err == nil || errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("find: %v, want an error that says why", err)
	}
	if _, _, err := s.List(t.Context()); err == nil {
		t.Error("the directory was listed")
	}
}

func TestDecideFailsClosedWherePolicyCannotBeRead(t *testing.T) {
	s, dir, _ := kept(t)
	chmod(t, dir, 0o002)
	d := policy.Decide(t.Context(), s, request())
	if d.Allow || d.Code != policy.Unreadable || !strings.HasPrefix(d.Reason, "cannot read grants: ") || !strings.Contains(d.Hint, dir) {
		t.Errorf("decided %+v, want a refusal that names %s", d, dir)
	}
}

func TestAnUnsafeAuditLogIsRefused(t *testing.T) {
	for name, spoil := range tampered {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "audit.jsonl")
			a := policy.NewAudit(path)
			try(t, a.Append(t.Context(), record("one")))
			spoil(t, path)
			isUnsafe(t, "append", a.Append(t.Context(), record("two")), path)
			_, _, err := a.Read(t.Context(), 1)
			isUnsafe(t, "read", err, path)
		})
	}
}
