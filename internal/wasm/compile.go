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

// Compile checks module and writes its compiled code to dir. The directory must
// be used only for this module; it is created if necessary. Existing code for
// the same processor and runtime version is kept.
//
// The compiler reads untrusted bytes, and its memory and time are limited only
// by the limits of the process. So call Compile in the sandbox, or use the
// --compile option of the worker. When ctx is done, Compile stops after the
// current function.
func Compile(ctx context.Context, module []byte, dir string) error {
	if err := checkModule(module); err != nil {
		return err
	}
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return fmt.Errorf("open compilation cache: %w", err)
	}
	p, err := compileModule(ctx, module, cache, maxPages)
	if err != nil {
		return err
	}
	p.close()
	return nil
}

// program is a compiled module and the runtime that runs it.
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

// loadProgram prepares a module to run. It uses compiled code in dir if there
// is any.
func loadProgram(ctx context.Context, module []byte, dir string, pages uint32) (*program, error) {
	if err := checkModule(module); err != nil {
		return nil, err
	}
	if hasCompiledCode(dir) {
		// wazero returns an error for a damaged entry, or if it cannot write
		// new code, for example for another processor. In both cases, compile
		// in memory.
		if cache, err := wazero.NewCompilationCacheWithDir(dir); err == nil {
			if p, err := compileModule(ctx, module, cache, pages); err == nil || ctx.Err() != nil {
				return p, err
			}
		}
	}
	return compileModule(ctx, module, nil, pages)
}

// compileModule compiles a module and takes ownership of cache. Settings that
// affect the compiled code are the same in every run.
func compileModule(ctx context.Context, module []byte, cache wazero.CompilationCache, pages uint32) (*program, error) {
	config := wazero.NewRuntimeConfig(). // the compiler if there is one, else the interpreter
						WithCloseOnContextDone(true).
						WithMemoryLimitPages(pages).
						WithDebugInfoEnabled(false)
	if cache != nil {
		config = config.WithCompilationCache(cache)
	}
	p := &program{runtime: wazero.NewRuntimeWithConfig(ctx, config), cache: cache}
	// With a single worker, wazero would compile all functions before it checks
	// the context.
	ctx = experimental.WithCompilationWorkers(ctx, max(2, runtime.GOMAXPROCS(0)))
	m, err := p.runtime.CompileModule(ctx, module)
	if err == nil {
		err = checkCommand(m)
	}
	if err != nil {
		p.close()
		return nil, &failure{ExitModule, fmt.Errorf("invalid module: %w", err)}
	}
	p.module = m
	return p, nil
}

// checkCommand returns an error unless m is a command: a module with a function
// _start that has no parameters and no results.
func checkCommand(m wazero.CompiledModule) error {
	start := m.ExportedFunctions()["_start"]
	if start == nil || len(start.ParamTypes()) != 0 || len(start.ResultTypes()) != 0 {
		return errors.New("missing exported function _start: build a WASI preview 1 command")
	}
	return nil
}

// hasCompiledCode reports whether dir contains code compiled by this runtime
// version. If it does not, wazero would try to write to dir.
func hasCompiledCode(dir string) bool {
	if dir == "" {
		return false
	}
	fsys := os.DirFS(dir) // not filepath.Glob, because dir may contain pattern characters
	codes, _ := fs.Glob(fsys, "wazero-*-"+runtime.GOARCH+"-"+runtime.GOOS+"/*")
	return slices.ContainsFunc(codes, func(name string) bool { return !strings.HasSuffix(name, ".tmp") })
}

// checkModule returns an error for an invalid module, before the compiler reads
// it.
func checkModule(module []byte) error {
	switch {
	case len(module) > MaxModule:
		return &failure{ExitModule, fmt.Errorf("module too large (limit %d bytes)", MaxModule)}
	case len(module) < 8 || string(module[:4]) != "\x00asm":
		return &failure{ExitModule, errors.New("not a WebAssembly module")}
	case string(module[4:8]) == "\x0d\x00\x01\x00":
		return &failure{ExitModule, errors.New("unsupported WebAssembly component: build a module for WASI preview 1")}
	}
	if err := checkSections(module); err != nil {
		return &failure{ExitModule, err}
	}
	return nil
}

// readModule reads up to [MaxModule]+1 bytes of a regular file.
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
