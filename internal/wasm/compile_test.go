package wasm_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/loadout-dev/loadout/internal/wasm"
)

// hasCompiler reports whether wazero has a compiler for this processor.
func hasCompiler() bool { return runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64" }

// entries returns the files with compiled code.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	must(t, err)
	return found
}

func TestCompile(t *testing.T) {
	if !hasCompiler() {
		t.Skip("wazero interprets here")
	}
	module := assemble(exit(7))
	path := file(t, module)
	dir := filepath.Join(t.TempDir(), "made")
	must(t, wasm.Compile(t.Context(), module, dir))
	once := entries(t, dir)
	if len(once) != 1 {
		t.Fatalf("compiled code: %v", once)
	}
	expect(t, worker(t, "--cache", dir, "--", path), 7, "", "")

	// The code is what runs: with damaged code it is compiled again, in memory, and nothing is written.
	good, err := os.ReadFile(once[0])
	must(t, err)
	for what, bad := range map[string][]byte{"empty": {}, "short": good[:len(good)/2], "checksum": flip(good)} {
		must(t, os.WriteFile(once[0], bad, 0o600))
		expect(t, worker(t, "--cache", dir, "--", path), 7, "", "")
		if b, _ := os.ReadFile(once[0]); string(b) != string(bad) {
			t.Errorf("%s: a run has written compiled code", what)
		}
	}
}

func flip(b []byte) []byte {
	b = append([]byte(nil), b...)
	for i := len(b) / 2; i < len(b)/2+8; i++ {
		b[i] ^= 0xff
	}
	return b
}

// TestPoison shows why compiled code must stay in the directory of its own module: it
// runs unchecked.
func TestPoison(t *testing.T) {
	if !hasCompiler() {
		t.Skip("wazero interprets here")
	}
	mine, theirs := assemble(exit(7)), assemble(exit(8))
	dir, other := t.TempDir(), t.TempDir()
	must(t, wasm.Compile(t.Context(), mine, dir))
	must(t, wasm.Compile(t.Context(), theirs, other))
	code, err := os.ReadFile(entries(t, other)[0])
	must(t, err)
	must(t, os.WriteFile(entries(t, dir)[0], code, 0o600))
	expect(t, worker(t, "--cache", dir, "--", file(t, mine)), 8, "", "")
}

func TestReadOnlyCache(t *testing.T) {
	path := file(t, assemble(exit(7)))
	// An empty directory stays empty for any user, so the test also works as root.
	empty := t.TempDir()
	expect(t, worker(t, "--cache", empty, "--", path), 7, "", "")
	if list, _ := os.ReadDir(empty); len(list) != 0 {
		t.Errorf("a run has written %v", list)
	}
	expect(t, worker(t, "--cache", filepath.Join(empty, "none"), "--", path), 7, "", "")

	// A directory that cannot be written (root can, in a test).
	dir := t.TempDir()
	must(t, wasm.Compile(t.Context(), assemble(exit(7)), dir))
	if !hasCompiler() {
		return
	}
	entry := entries(t, dir)[0]
	must(t, os.Chmod(filepath.Dir(entry), 0o500))
	must(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { os.Chmod(dir, 0o700); os.Chmod(filepath.Dir(entry), 0o700) })
	expect(t, worker(t, "--cache", dir, "--", path), 7, "", "")
	// A miss: another module with the same directory.
	expect(t, worker(t, "--cache", dir, "--", file(t, assemble(exit(8)))), 8, "", "")
	if os.Geteuid() != 0 {
		if now := entries(t, dir); len(now) != 1 {
			t.Errorf("a run has written %v", now)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	dir := t.TempDir()
	for what, module := range map[string][]byte{
		"nothing": nil, "text": []byte("hello, world"), "large": make([]byte, wasm.MaxModule+1), "truncated": assemble(nop)[:60],
	} {
		if err := wasm.Compile(t.Context(), module, dir); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	name := file(t, nil)
	if err := wasm.Compile(t.Context(), assemble(nop), filepath.Join(name, "x")); err == nil {
		t.Error("a cache below a file: no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := wasm.Compile(ctx, bomb(10, 10), dir); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if list := entries(t, dir); len(list) != 0 {
		t.Errorf("left behind: %v", list)
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
