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
	"time"
)

// Build builds a program of this module into dir and returns its path.
func Build(dir, pkg string) (string, error) {
	return build("", filepath.Join(dir, filepath.Base(pkg)), pkg)
}

// BuildSource builds a program of one file into dir and returns its path.
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
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Dir, cmd.Stderr = workDir, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build %s: %w", out, err)
	}
	return out, nil
}

// Process is an MCP server that runs as a child, spoken to over its standard
// input and output, one call at a time.
type Process struct {
	Started time.Time // just before exec

	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	id  int
}

// Start runs an MCP server; close it when done.
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

// PID is the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// CPU is what the process used so far.
func (p *Process) CPU() time.Duration { return CPUOf(p.PID()) }

// Initialize opens the connection as a client of the older era does.
func (p *Process) Initialize() error {
	if _, err := p.Call("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": struct{}{},
		"clientInfo": map[string]string{"name": "bench", "version": "1"}}); err != nil {
		return err
	}
	_, err := p.in.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"))
	return err
}

// Call sends a request and returns the result.
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

// Measure sends a request and returns what the process took to answer it.
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

// exchange writes a request and waits for the line that is its answer.
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

// Result takes the result out of an answer.
func Result(answer []byte) (json.RawMessage, error) {
	var m struct {
		Result json.RawMessage
		Error  json.RawMessage
	}
	if err := json.Unmarshal(answer, &m); err != nil {
		return nil, err
	}
	if m.Error != nil {
		return nil, fmt.Errorf("the server answers %s", m.Error)
	}
	return m.Result, nil
}

// Settle waits until the process has not run for a while.
func (p *Process) Settle() {
	for before := time.Duration(-1); p.CPU()-before > time.Millisecond; time.Sleep(500 * time.Millisecond) {
		before = p.CPU()
	}
}

// Close ends the process as a client does, by closing its standard input.
func (p *Process) Close() error {
	p.in.Close()
	_, _ = io.Copy(io.Discard, p.out) // until it ends
	return p.cmd.Wait()
}
