//go:build unix

package bundle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Permissions are those of every directory on the way, for a user without groups.
func TestReachableAndSearchable(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can create files of other users")
	}
	const user, other = 12345, 12346
	root := t.TempDir()
	for _, own := range []string{root, filepath.Dir(root)} { // both belong to this test
		if err := os.Chmod(own, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := Reachable(filepath.Dir(filepath.Dir(root)), user); err != nil {
		t.Skip(err)
	}
	dir := filepath.Join(root, "d")
	file, link := filepath.Join(dir, "f"), filepath.Join(root, "link")
	for _, err := range []error{os.Mkdir(dir, 0o755), os.WriteFile(file, nil, 0o644), os.Symlink(file, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name       string
		mode       os.FileMode
		owner      int
		reachable  string // in the error; "" for none
		searchable bool
	}{
		{"of root", 0o755, 0, "", true},
		{"closed to others", 0o750, 0, "is not accessible to other users", false},
		{"not to be listed", 0o711, 0, "", true},
		{"only to be listed", 0o754, 0, "is not accessible to other users", false},
		{"writable by everyone", 0o757, 0, "is writable by everyone", true},
		{"writable and sticky", 0o757 | os.ModeSticky, 0, "", true},
		{"sticky", 0o755 | os.ModeSticky, 0, "", true},
		{"of the user", 0o755, user, "is owned by user 12345", true},
		{"of the user only", 0o700, user, "is owned by user 12345", true},
		{"of the user, who closed it", 0o655, user, "is owned by user 12345", false},
		{"of another", 0o700, other, "is not accessible to other users", false},
	} {
		for _, err := range []error{os.Chown(dir, tt.owner, -1), os.Chmod(dir, tt.mode)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{file, link} {
			err := Reachable(path, user)
			if tt.reachable == "" && err != nil || tt.reachable != "" && (err == nil || !strings.Contains(err.Error(), dir+" "+tt.reachable)) {
				t.Errorf("%s: Reachable: %v, want %q", tt.name, err, tt.reachable)
			}
			err = Searchable(path, user)
			if tt.searchable && err != nil || !tt.searchable && (err == nil || !strings.Contains(err.Error(), "no permission to search directory "+dir)) {
				t.Errorf("%s: Searchable: %v, want %t", tt.name, err, tt.searchable)
			}
		}
		// A directory itself counts for what others can do to its files.
		if err := Reachable(dir, user); (err == nil) != (tt.reachable == "") {
			t.Errorf("%s: Reachable of the directory: %v", tt.name, err)
		}
		if err := Searchable(dir, user); err != nil {
			t.Errorf("%s: Searchable of the directory: %v", tt.name, err)
		}
	}
	for _, path := range []string{filepath.Join(root, "none"), filepath.Join(file, "x")} {
		if Reachable(path, user) == nil || Searchable(path, user) == nil {
			t.Errorf("%s does not exist, and is accessible", path)
		}
	}
}
