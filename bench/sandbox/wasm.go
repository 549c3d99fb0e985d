//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/sandbox"
)

// hello is the source of a WebAssembly module that includes the Go runtime (2
// MB).
const hello = `package main

import "fmt"

func main() { fmt.Println("hello") }
`

// tiny is a WebAssembly module that returns immediately. It is used to measure the
// overhead of running a module.
var tiny = []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x00\x0a\x04\x01\x02\x00\x0b")

// addWASM adds rows for cached modules, run by a process inside a sandbox.
func (b *bench) addWASM(be sandbox.Backend) error {
	modules := filepath.Join(b.tmp, "modules")
	if err := os.Mkdir(modules, 0o755); err != nil {
		return err
	}
	src := filepath.Join(b.tmp, "hello.go")
	if err := os.WriteFile(src, []byte(hello), 0o644); err != nil {
		return err
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(modules, "hello.wasm"), src)
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build hello.wasm: %w\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(modules, "tiny.wasm"), tiny, 0o644); err != nil {
		return err
	}
	spec := &sandbox.Spec{Mounts: []sandbox.Mount{{Host: b.loadout, Path: b.loadout}, {Host: modules, Path: modules}}}
	s, spec, err := b.prepare(be, spec)
	if err != nil {
		return err
	}
	start := b.addSandboxed("loadout version, in a prepared sandbox", nil, func() error { return runIn(s, spec, []string{b.loadout, "version"}) })
	for _, name := range []string{"tiny", "hello"} {
		file := filepath.Join(modules, name+".wasm")
		code, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		cache := filepath.Join(modules, name+".cache")
		if out, err := exec.Command(b.loadout, execution.WASMCommand, "--compile", "--cache", cache, "--", file).CombinedOutput(); err != nil {
			return fmt.Errorf("compile %s: %w\n%s", file, err, out)
		}
		if err := makeReadable(cache); err != nil {
			return err
		}
		b.addSandboxed(fmt.Sprintf("%s.wasm (%d KB) from the cache", name, len(code)>>10), start, func() error {
			return runIn(s, spec, []string{b.loadout, execution.WASMCommand, "--cache", cache, "--", file})
		})
	}
	return nil
}

// makeReadable makes the files under dir readable for every user. A sandbox started by root
// runs code as another user.
func makeReadable(dir string) error {
	return filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(p, map[bool]os.FileMode{true: 0o755, false: 0o644}[d.IsDir()])
	})
}
