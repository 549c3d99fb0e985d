//go:build linux

package measure

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Build builds a package of the bench module into dir and returns the binary's path. All programs
// are built as for a release: stripped and without cgo.
func Build(dir, pkg string) (string, error) {
	return build("", filepath.Join(dir, filepath.Base(pkg)), pkg)
}

// BuildLoadout returns the path of the program given with -loadout. Without the flag, it builds
// this repository's program into dir.
func BuildLoadout(dir string) (string, error) {
	if loadout != "" {
		return filepath.Abs(loadout)
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	return build(root, filepath.Join(dir, "loadout"), "./cmd/loadout")
}

// Root returns the root directory of this repository. The working directory must be in it.
func Root() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/loadout-dev/loadout").Output()
	if err != nil {
		return "", fmt.Errorf("find repository: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// BuildSource builds a binary from one source file into dir and returns its path.
func BuildSource(dir, name, source string) (string, error) {
	src := filepath.Join(dir, name+".src")
	if err := os.Mkdir(src, 0o755); err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(filepath.Join(src, "main.go"), []byte(source), 0o644),
		os.WriteFile(filepath.Join(src, "go.mod"), []byte("module "+name+"\n\ngo 1.26\n"), 0o644)); err != nil {
		return "", err
	}
	return build(src, filepath.Join(dir, name), ".")
}

func build(workDir, out, pkg string) (string, error) {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Dir, cmd.Stderr, cmd.Env = workDir, os.Stderr, append(os.Environ(), "CGO_ENABLED=0")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build %s: %w", out, err)
	}
	return out, nil
}

// Process is an MCP server running as a child process. It is called over standard input and
// output, one call at a time.
type Process struct {
	Started time.Time // immediately before exec

	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	id  int
}

// Start starts an MCP server. The caller must close it.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd}
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReaderSize(out, 1<<20)
	p.Started = time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// PID returns the process ID of the server.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// CPU returns the CPU time used by the process so far.
func (p *Process) CPU() time.Duration { return CPUOf(p.PID()) }

// Initialize performs the handshake of protocol version 2025-11-25.
func (p *Process) Initialize() error {
	if _, err := p.Call("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": struct{}{},
		"clientInfo": map[string]string{"name": "bench", "version": "1"}}); err != nil {
		return err
	}
	_, err := p.in.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"))
	return err
}

// Call sends a request and returns its result. An error response is returned as an error.
func (p *Process) Call(method string, params any) (json.RawMessage, error) {
	p.id++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": p.id, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	_, answer, err := p.exchange(line)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return Result(answer)
}

// Measure sends a request and returns its cost and the result.
func (p *Process) Measure(method string, params any) (Cost, json.RawMessage, error) {
	p.id++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": p.id, "method": method, "params": params})
	if err != nil {
		return Cost{}, nil, err
	}
	c, answer, err := p.exchange(line)
	if err != nil {
		return c, nil, fmt.Errorf("%s: %w", method, err)
	}
	res, err := Result(answer)
	return c, res, err
}

// exchange writes a request and reads lines until its response.
func (p *Process) exchange(line []byte) (Cost, []byte, error) {
	line = append(line, '\n')
	start, cpu := time.Now(), p.CPU()
	if _, err := p.in.Write(line); err != nil {
		return Cost{}, nil, err
	}
	for {
		answer, err := p.out.ReadBytes('\n')
		if err != nil {
			return Cost{}, nil, err
		}
		c := Cost{time.Since(start), p.CPU() - cpu}
		if bytes.Contains(answer[:min(len(answer), 64)], fmt.Appendf(nil, `"id":%d,`, p.id)) {
			return c, answer, nil
		}
	}
}

// Result returns the result of a JSON-RPC response. It converts an error response to an error.
func Result(answer []byte) (json.RawMessage, error) {
	var m struct {
		Result json.RawMessage
		Error  json.RawMessage
	}
	if err := json.Unmarshal(answer, &m); err != nil {
		return nil, err
	}
	if m.Error != nil {
		return nil, fmt.Errorf("server returned error: %s", m.Error)
	}
	return m.Result, nil
}

// WaitIdle waits until a process uses at most a millisecond of CPU time in half a second.
func WaitIdle(pid int) {
	for before, now := time.Duration(-time.Hour), CPUOf(pid); now-before > time.Millisecond; now = CPUOf(pid) {
		before = now
		time.Sleep(500 * time.Millisecond)
	}
}

// Close closes the process's standard input, as clients do, and waits for it to exit.
func (p *Process) Close() error {
	p.in.Close()
	_, _ = io.Copy(io.Discard, p.out) // until the process exits
	return p.cmd.Wait()
}

// Children returns the IDs of the child processes of this process.
func Children() (pids []int, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", os.Getpid()))
	for _, f := range files {
		text, _ := os.ReadFile(f) // a thread may have exited
		for word := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// PssOf returns the memory of a process, including its proportional share of shared pages.
func PssOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(text, []byte("\nPss:"))
	var kb int64
	_, err = fmt.Sscan(string(rest[:min(len(rest), 64)]), &kb)
	return kb << 10, err
}
