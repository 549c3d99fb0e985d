package wasm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// Compile checks module and puts its compiled code into dir, which is the module's own and is made if it is missing.
// Code that is there already for this processor and version of the runtime is kept. It reads a stranger's bytes with
// a compiler whose memory and time are not limited by anything but the process: call it in the sandbox, or use the
// worker's --compile. When ctx ends it stops after the function it is at.
func Compile(ctx context.Context, module []byte, dir string) error {
	if err := check(module); err != nil {
		return err
	}
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return fmt.Errorf("compilation cache: %w", err)
	}
	p, err := compile(ctx, module, cache, maxPages)
	if err != nil {
		return err
	}
	p.close()
	return nil
}

// program is a compiled module and what it needs to live.
type program struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	cache   wazero.CompilationCache // may be nil
}

func (p *program) close() {
	p.runtime.Close(context.Background())
	if p.cache != nil {
		p.cache.Close(context.Background())
	}
}

// load makes a module ready to run, from its compiled code in dir if there is any.
func load(ctx context.Context, module []byte, dir string, pages uint32) (*program, error) {
	if err := check(module); err != nil {
		return nil, err
	}
	if filled(dir) {
		// wazero fails when it cannot write what it had to compile, as for another kind of processor, or when an entry
		// is damaged. Neither is a reason not to run.
		if cache, err := wazero.NewCompilationCacheWithDir(dir); err == nil {
			if p, err := compile(ctx, module, cache, pages); err == nil || ctx.Err() != nil {
				return p, err
			}
		}
	}
	return compile(ctx, module, nil, pages)
}

// compile takes over cache. The settings that are part of the compiled code are the same for every run.
func compile(ctx context.Context, module []byte, cache wazero.CompilationCache, pages uint32) (*program, error) {
	config := wazero.NewRuntimeConfig(). // the compiler where there is one, else the interpreter
						WithCloseOnContextDone(true).
						WithMemoryLimitPages(pages).
						WithDebugInfoEnabled(false)
	if cache != nil {
		config = config.WithCompilationCache(cache)
	}
	p := &program{runtime: wazero.NewRuntimeWithConfig(ctx, config), cache: cache}
	// With one worker wazero compiles all functions before it looks at the context.
	ctx = experimental.WithCompilationWorkers(ctx, max(2, runtime.GOMAXPROCS(0)))
	m, err := p.runtime.CompileModule(ctx, module)
	if err == nil {
		err = command(m)
	}
	if err != nil {
		p.close()
		return nil, &failure{ExitModule, fmt.Errorf("invalid module: %w", err)}
	}
	p.module = m
	return p, nil
}

// command says whether m is a program: a module with a function _start that takes and returns nothing.
func command(m wazero.CompiledModule) error {
	start := m.ExportedFunctions()["_start"]
	if start == nil || len(start.ParamTypes()) != 0 || len(start.ResultTypes()) != 0 {
		return errors.New("it exports no function _start: build it as a WASI preview 1 command")
	}
	return nil
}

// filled reports whether dir holds compiled code of this version of the runtime. Without it wazero would write: first
// its own directory, then, after the work of compiling, the code.
func filled(dir string) bool {
	if dir == "" {
		return false
	}
	fsys := os.DirFS(dir) // not filepath.Glob: dir is no pattern
	codes, _ := fs.Glob(fsys, "wazero-*-"+runtime.GOARCH+"-"+runtime.GOOS+"/*")
	return slices.ContainsFunc(codes, func(name string) bool { return !strings.HasSuffix(name, ".tmp") })
}

// check refuses bytes that are not worth the compiler's attention.
func check(module []byte) error {
	switch {
	case len(module) > MaxModule:
		return &failure{ExitModule, fmt.Errorf("the module has more than %d bytes", MaxModule)}
	case len(module) < 8 || string(module[:4]) != "\x00asm":
		return &failure{ExitModule, errors.New("not a WebAssembly module")}
	case string(module[4:8]) == "\x0d\x00\x01\x00":
		return &failure{ExitModule, errors.New("a WebAssembly component, not a module: build it for WASI preview 1")}
	}
	if err := scan(module); err != nil {
		return &failure{ExitModule, err}
	}
	return nil
}

// readModule reads a regular file of at most [MaxModule] bytes and one more.
func readModule(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, min(info.Size(), MaxModule)+1)
	n, err := io.ReadFull(f, b)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return nil, err
	}
	return b[:n], nil
}
