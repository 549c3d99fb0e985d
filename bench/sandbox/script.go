//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/policy"
)

// scriptCalls is the number of calls of a server after the first one, in each round. The pauses
// before the calls are much shorter than the time that a model needs to choose a call.
const (
	scriptCalls = 3
	firstPause  = 300 * time.Millisecond
	nextPause   = 50 * time.Millisecond
)

// addScript adds rows for a script that does nothing: run directly, with a plain bubblewrap
// command line, by `loadout run`, and by the tool run_skill_script of a new server.
func (b *bench) addScript() error {
	skills, state := filepath.Join(b.tmp, "skills"), filepath.Join(b.tmp, "state")
	script := filepath.Join(skills, "nothing", "nothing.sh")
	if err := os.MkdirAll(filepath.Dir(script), 0o755); err != nil {
		return err
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(skills, "nothing", "SKILL.md"), []byte("---\nname: nothing\ndescription: Does nothing. Use it to measure.\n---\nRun nothing.sh.\n"), 0o644),
		os.WriteFile(script, []byte("exit 0\n"), 0o755),
		approve(skills, state),
	); err != nil {
		return err
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(b.loadout, args...)
		cmd.Dir = b.tmp
		cmd.Env = []string{"HOME=" + b.tmp, "PATH=" + os.Getenv("PATH"), "LOADOUT_STATE=" + state, "LOADOUT_CACHE=" + filepath.Join(b.tmp, "cache")}
		return cmd
	}
	args := []string{"/bin/sh", "-c", "exit 0"}
	plain := b.add("exit 0: plain exec", nil, func() (time.Duration, error) { return runCommand(exec.Command(args[0], args[1:]...)) })
	if path, err := exec.LookPath("bwrap"); err == nil {
		b.add("exit 0: plain bwrap", plain, func() (time.Duration, error) { return runCommand(plainBwrap(path, args)) })
	}
	b.add("exit 0: loadout run", plain, func() (time.Duration, error) {
		return runCommand(command("run", "--skills", skills, "nothing", "nothing.sh"))
	})
	first := b.wall.Row(measure.Row{Name: "exit 0: run_skill_script, first call", Unit: "ms", Baseline: plain.wall})
	next := b.wall.Row(measure.Row{Name: "exit 0: run_skill_script, next call", Unit: "ms", Baseline: plain.wall})
	b.addSandboxed("exit 0: start of a server and all its calls", plain, func() error {
		return b.runOverMCP(command("mcp", "--skills", skills), first, next)
	})
	return nil
}

// approve approves the skill, as its user would.
func approve(skills, state string) (err error) {
	ctx := context.Background()
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{catalog.NewDir("bench", catalog.User, skills, nil)}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	r, err := rt.ReadApprovalRequest(ctx, "nothing")
	if err != nil {
		return err
	}
	_, err = policy.NewFileStore(filepath.Join(state, "grants")).Put(ctx, policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Scope: policy.Always,
		Subject: r.Digest, Needs: r.Needs, Name: r.Entry.Name, Origin: r.Entry.Origin, Permissions: r.Requested.Permissions()})
	return err
}

// runOverMCP starts a server and calls the script several times.
func (b *bench) runOverMCP(cmd *exec.Cmd, first, next *measure.Row) (err error) {
	p, err := measure.Start(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := p.Initialize(); err != nil {
		return err
	}
	if _, err := p.Call("tools/list", struct{}{}); err != nil {
		return err
	}
	time.Sleep(firstPause)
	for i := range scriptCalls + 1 {
		time.Sleep(nextPause)
		took, answer, err := p.Measure("tools/call", map[string]any{"name": toolname.RunSkillScript, "arguments": map[string]string{"skill": "nothing", "script": "nothing.sh"}})
		if err != nil {
			return err
		}
		var res struct {
			IsError bool
			Content []struct{ Text string }
		}
		if err := json.Unmarshal(answer, &res); err != nil {
			return err
		}
		if res.IsError {
			return fmt.Errorf("%s: %s", toolname.RunSkillScript, res.Content[0].Text)
		}
		switch {
		case !b.record:
		case i == 0:
			first.AddTime(took.Wall)
		default:
			next.AddTime(took.Wall)
		}
	}
	return nil
}
