package wasm_test

import (
	"strings"
	"testing"
)

// FuzzModule runs arbitrary bytes as a module. The worker must always return a
// valid exit code, and report its own failures on one line.
func FuzzModule(f *testing.F) {
	for _, seed := range [][]byte{
		nil, []byte("\x00asm\x01\x00\x00\x00"), assemble(nop), assemble(exit(7)), assemble(unreachable),
		assemble(grow(100)), assemble(escape), assemble(renumber), assemble(nop, startSection), bomb(2, 3),
		append(assemble(nop), section(0, cat(str("name"), section(0, str("m")), section(1, vec(cat(uleb(0), str("f"))))))...),
	} {
		f.Add(seed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, module []byte) {
		if len(module) > 4096 {
			return
		}
		r := worker(t, "--timeout", "100ms", "--memory", "4194304", "--output", "4096", "--dir", "/work="+dir, "--", file(t, module))
		if r.code < 0 || r.code > 255 {
			t.Errorf("exit code %d", r.code)
		}
		if len(r.out) > 4096 || len(r.err) > 64<<10 {
			t.Errorf("%d and %d bytes of output", len(r.out), len(r.err))
		}
		if strings.Contains(r.err, "runtime failed") {
			t.Errorf("panic in the worker: %s", r.err)
		}
	})
}
