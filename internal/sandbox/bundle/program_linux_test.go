package bundle

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// bytesRead returns the number of bytes that this process has read.
func bytesRead(t *testing.T) (n int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(b)) {
		if _, err := fmt.Sscanf(line, "rchar: %d", &n); err == nil {
			return n
		}
	}
	t.Skip("the kernel does not count")
	return 0
}

// A program is read again only if it or its copy could have changed since it was
// verified.
func TestProgramIsVerifiedOnce(t *testing.T) {
	const size = 1 << 20
	cache, exe := cacheDir(t), filepath.Join(t.TempDir(), "exe")
	text := func(c byte) []byte { return bytes.Repeat([]byte{c}, size) }
	if err := os.WriteFile(exe, text('a'), 0o700); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, text('o'), 0o700); err != nil {
		t.Fatal(err)
	}
	var path string
	use := func(what string, want byte, verifies bool) {
		t.Helper()
		before := bytesRead(t)
		from := exe
		if want == 'o' {
			from = other
		}
		p, b, err := Program(cache, from)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if read := bytesRead(t) - before; read >= size != verifies {
			t.Errorf("%s: read %d bytes", what, read)
		}
		if got, err := os.ReadFile(p); err != nil || !bytes.Equal(got, text(want)) {
			t.Errorf("%s: the copy is %.10q…, %v; want %q", what, got, err, want)
		}
		path = p
	}
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		use("first", 'a', true)
		use("files that just changed", 'a', true)
		time.Sleep(100 * 365 * 24 * time.Hour) // since the bubble's clock started in 2000
		use("first after a while", 'a', true)
		use("unchanged", 'a', false)
		use("unchanged again", 'a', false)
		use("another program", 'o', true)
		use("unchanged beside another", 'a', false)
		use("another program again", 'o', false)
		use("the first program again", 'a', false)

		fi, err := os.Stat(path)
		try(err)
		try(os.Chmod(path, 0o755))
		try(os.WriteFile(path, text('x'), 0o755))
		try(os.Chmod(path, 0o555))
		try(os.Chtimes(path, fi.ModTime(), fi.ModTime()))
		use("a changed copy", 'a', true)
		use("unchanged", 'a', false)

		try(os.Chmod(filepath.Dir(path), 0o755))
		try(os.WriteFile(filepath.Join(filepath.Dir(path), "more"), nil, 0o444))
		try(os.Chmod(filepath.Dir(path), 0o555))
		use("a copy with another file", 'a', true)

		old := path
		try(os.WriteFile(exe, text('b'), 0o700))
		use("a changed program", 'b', true)
		use("unchanged", 'b', false)
		if path == old {
			t.Errorf("both programs have the copy %s", path)
		}
		remove(filepath.Dir(path))
		use("a missing copy", 'b', true)
		try(os.Remove(exe))
		if _, b, err := Program(cache, exe); err == nil || b != nil {
			t.Error("a missing program has a copy")
		}
	})
}
