package outputlink

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
)

func TestReadRegular(t *testing.T) {
	top := t.TempDir()
	dir, outside := filepath.Join(top, "in"), filepath.Join(top, "outside")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, size := range map[string]int64{outside: 1, filepath.Join(dir, "small"): 3, filepath.Join(dir, "largest"): maxFile, filepath.Join(dir, "large"): maxFile + 1} {
		if err := errors.Join(os.WriteFile(path, []byte("abc"), 0o600), os.Truncate(path, size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	want := map[string]error{"small": nil, "largest": nil, "large": ErrTooLarge, "dir": fs.ErrInvalid, "none": fs.ErrNotExist}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err == nil {
		want["link"] = fs.ErrInvalid
	}
	for name, want := range want {
		if data, err := readRegular(dir, name); !errors.Is(err, want) || want == nil && (err != nil || string(data[:3]) != "abc") {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
	}
	if _, err := readRegular(dir, "../outside"); err == nil {
		t.Error("read outside the directory")
	}
}

func TestInvalidLinks(t *testing.T) {
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, fstest.MapFS{})}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	const invalid = "invalid link: want a file in a working folder"
	for link, malformed := range map[string]bool{
		"": true, "https://example.com/x": true, Scheme + "abcdefghijklmnop": true, Scheme + "abcdefghijklmnop/": true, Scheme + "abcdefghijklmnop/../x": true,
		Scheme + "abcdefghijklmnop/%2e%2e/x": true, Scheme + "abcdefghijklmnop/%zz": true, Scheme + "abcdefghijklmnop/a%20b": false,
	} {
		if data, err := Read(rt, link); err == nil || (err.Error() == invalid) != malformed || data != nil {
			t.Errorf("%s: %d bytes, %v", link, len(data), err)
		}
	}
}
