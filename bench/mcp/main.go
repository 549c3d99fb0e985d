//go:build linux

// Command mcp measures calls to `loadout mcp` with many skills: pages of skills/list,
// skills/get, files, the list of tools, loading and searching. It calls a child process over
// standard input and output (protocol version 2025-11-25) and the HTTP handler in its own
// process (protocol version 2026-07-28). It also measures the memory of the idle server:
//
//	go run ./mcp -skills DIR [-idle DIR]…
//
// Each call has a baseline measured in the same run: reading and hashing the same files with
// plain system calls. If a call reads no file, the baseline is a call to a tool that does nothing,
// on a plain SDK server over the same transport.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

func main() {
	dir := flag.String("skills", "", "`directory` with many skills")
	idle := measure.ListFlag("idle", "another `directory` with skills to measure idle memory with (repeatable)")
	calls := flag.Int("calls", 200, "number of calls of each kind")
	empty := flag.Bool("serve-empty", false, "serve a tool that does nothing on stdio; for internal use")
	measure.Main("mcp", true, func() error {
		switch {
		case *empty:
			return newEmptyServer().Run(context.Background(), &mcp.StdioTransport{})
		case *dir == "":
			return errors.New("missing -skills")
		}
		return run(context.Background(), *dir, *idle, *calls)
	})
}

// newEmptyServer returns an SDK server with a single tool.
func newEmptyServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "empty", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "nothing", Description: "Does nothing."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
		})
	return s
}

func run(ctx context.Context, dir string, idle []string, calls int) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "loadout-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	program, err := measure.BuildLoadout(tmp)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Println(measure.Environment())
	if err := measureCalls(ctx, tmp, program, self, dir, calls); err != nil {
		return err
	}
	return measureIdle(tmp, program, self, append(idle, dir))
}

// startServer starts a server as a child process without the user's settings, and connects to
// it.
func startServer(tmp, program string, args ...string) (*measure.Process, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = tmp
	cmd.Env = []string{"HOME=" + tmp, "PATH=" + os.Getenv("PATH"), "LOADOUT_CACHE=" + filepath.Join(tmp, "cache")}
	p, err := measure.Start(cmd)
	if err != nil {
		return nil, err
	}
	if err := p.Initialize(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// measureIdle measures the memory of an idle server for each directory, after it has listed the
// tools. The first start saves the index for the others.
func measureIdle(tmp, program, self string, dirs []string) error {
	t := measure.Table{Name: "idle"}
	baseline := t.Row(measure.Row{Name: "baseline: a server of the bare SDK with one tool", Unit: "MB"})
	baselineOwn := t.Row(measure.Row{Name: "baseline: of that, anonymous", Unit: "MB"})
	add := func(resident, own *measure.Row, program string, args ...string) error {
		p, err := startServer(tmp, program, args...)
		if err != nil {
			return err
		}
		if _, err := p.Call("tools/list", struct{}{}); err != nil {
			return errors.Join(err, p.Close())
		}
		measure.WaitIdle(p.PID())
		m, err := measure.MemoryOf(p.PID())
		resident.Add(float64(m.Resident) / 1e6)
		own.Add(float64(m.Anonymous) / 1e6)
		return errors.Join(err, p.Close())
	}
	rows := map[string][2]*measure.Row{}
	for _, dir := range dirs {
		n, err := countSkills(dir)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("loadout mcp, %d skills", n)
		rows[dir] = [2]*measure.Row{t.Row(measure.Row{Name: name, Unit: "MB", Baseline: baseline}),
			t.Row(measure.Row{Name: name + ", anonymous", Unit: "MB", Baseline: baselineOwn})}
	}
	for range 5 {
		if err := add(baseline, baselineOwn, self, "-serve-empty"); err != nil {
			return err
		}
		for _, dir := range dirs {
			abs, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			if err := add(rows[dir][0], rows[dir][1], program, "mcp", "--skills", abs); err != nil {
				return err
			}
		}
	}
	fmt.Printf("\nResident memory of the idle server after initialize and tools/list, stdio, 5 starts:\n\n")
	t.Print(os.Stdout)
	return nil
}

// countSkills returns the number of directories in dir that contain a SKILL.md.
func countSkills(dir string) (int, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "SKILL.md"))
	return len(files), err
}
