//go:build linux

// Command mcp measures what clients of `loadout mcp` wait for with many skills:
// pages of skills/list, skills/get, files, the list of tools, loading and
// searching, over standard input and output (the older era, a child process)
// and through the HTTP handler (the modern era, in this process); and what the
// idle server holds in memory:
//
//	go run ./bench/mcp -skills DIR [-idle DIR]…
//
// Beside each stands a limit of the same run: reading and hashing, or asking
// for, the same files in the barest way; where no file is read, a call of a
// tool that does nothing on a server of the bare SDK over the same transport.
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
	dir := flag.String("skills", "", "`directory` with many skills, as genskills makes")
	idle := measure.Dirs("idle", "`directory` with skills for idle memory besides (repeatable)")
	calls := flag.Int("calls", 200, "calls of each kind")
	empty := flag.Bool("serve-empty", false, "serve a tool that does nothing on stdio; for the program itself")
	measure.Main("mcp", true, func() error {
		switch {
		case *empty:
			return emptyServer().Run(context.Background(), &mcp.StdioTransport{})
		case *dir == "":
			return errors.New("give -skills")
		}
		return run(context.Background(), *dir, *idle, *calls)
	})
}

// emptyServer is what the SDK costs by itself.
func emptyServer() *mcp.Server {
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
	program, err := measure.Build(tmp, "./cmd/loadout")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fmt.Println(measure.Where())
	if err := measureCalls(ctx, tmp, program, self, dir, calls); err != nil {
		return err
	}
	return measureIdle(tmp, program, self, append(idle, dir))
}

// start runs a server as a child, without the settings of the person who
// measures, and opens the connection.
func start(tmp, program string, args ...string) (*measure.Process, error) {
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

// measureIdle starts a server for each directory, asks for the tools, waits
// until it rests, and looks at its memory. The first start saves the index
// that the others find.
func measureIdle(tmp, program, self string, dirs []string) error {
	var t measure.Table
	limit := t.Row(measure.Row{Name: "limit: a server of the bare SDK with one tool", Unit: "MB"})
	limitOwn := t.Row(measure.Row{Name: "of that, not pages of the program's file", Unit: "MB"})
	add := func(resident, own *measure.Row, program string, args ...string) error {
		p, err := start(tmp, program, args...)
		if err != nil {
			return err
		}
		if _, err := p.Call("tools/list", struct{}{}); err != nil {
			return errors.Join(err, p.Close())
		}
		p.Settle()
		m, err := measure.MemoryOf(p.PID())
		resident.Add(float64(m.Resident) / 1e6)
		own.Add(float64(m.Anonymous) / 1e6)
		return errors.Join(err, p.Close())
	}
	rows := map[string][2]*measure.Row{}
	for _, dir := range dirs {
		n, err := skills(dir)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("loadout mcp, %d skills", n)
		rows[dir] = [2]*measure.Row{t.Row(measure.Row{Name: name, Unit: "MB", Limit: limit}),
			t.Row(measure.Row{Name: "of that, not pages of the program's file", Unit: "MB", Limit: limitOwn})}
	}
	for range 5 {
		if err := add(limit, limitOwn, self, "-serve-empty"); err != nil {
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

// skills is how many directories with a SKILL.md there are in dir.
func skills(dir string) (int, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "SKILL.md"))
	return len(files), err
}
