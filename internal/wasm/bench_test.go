package wasm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/wasm"
)

// BenchmarkCached measures a run from the command line to the exit code,
// without starting a process.
func BenchmarkCached(b *testing.B) {
	goModule, _ := guest(b)
	work := b.TempDir()
	must(b, os.WriteFile(filepath.Join(work, "f"), []byte("text"), 0o600))
	for _, c := range []struct {
		name, module string
		args         []string
	}{
		{"tiny", file(b, assemble(nop)), nil},
		{"rust-cat-90k", example(b, "cargo-wasi"), []string{"/work/f"}},
		{"tinygo-cat-50k", example(b, "tinygo"), []string{"/work/f"}},
		{"go-hello-4M", goModule, []string{"hello"}},
	} {
		if c.module == "" {
			continue
		}
		module, err := os.ReadFile(c.module)
		must(b, err)
		dir := b.TempDir()
		must(b, wasm.Compile(b.Context(), module, dir))
		for mode, options := range map[string][]string{"cold": nil, "cached": {"--cache", dir}} {
			args := append(append(options, "--dir", "/work="+work, "--", c.module), c.args...)
			b.Run(c.name+"/"+mode, func(b *testing.B) {
				for b.Loop() {
					if r := worker(b, args...); r.code != 0 {
						b.Fatalf("%+v", r)
					}
				}
			})
		}
	}
}

// example returns wazero's test program cat, built by the given compiler, or ""
// if it is not available.
func example(tb testing.TB, compiler string) string {
	tb.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		return ""
	}
	path := filepath.Join(strings.TrimSpace(string(out)), "imports/wasi_snapshot_preview1/example/testdata", compiler, "cat.wasm")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// TestCompilers runs the program cat of compilers other than Go.
func TestCompilers(t *testing.T) {
	_, work := outside(t)
	must(t, os.WriteFile(filepath.Join(work, "f"), []byte("text"), 0o600))
	symlink(t, "../secret.txt", filepath.Join(work, "link"))
	for _, compiler := range []string{"cargo-wasi", "tinygo", "zig-cc"} {
		t.Run(compiler, func(t *testing.T) {
			module := example(t, compiler)
			if module == "" {
				t.Skip("wazero's examples are missing")
			}
			expect(t, worker(t, "--dir", "/work="+work+":ro", "--", module, "/work/f"), 0, "text", "")
			if r := worker(t, "--dir", "/work="+work, "--", module, "/work/link"); r.code == 0 || r.out != "" {
				t.Errorf("link: %+v", r)
			}
			if r := worker(t, "--dir", "/work="+work, "--dir", ".="+work, "--", module, "f"); r.code != 0 || r.out != "text" {
				t.Logf("relative: %+v", r)
			}
		})
	}
}
