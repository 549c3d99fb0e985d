//go:build linux

package sandboxtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/sandbox"
)

// TestBackend tests that a backend fulfills the contract of package sandbox.
func TestBackend(t *testing.T, b sandbox.Backend) {
	s := newScene(t)
	if err := s.checkBehaviour(t, b, behaviour{try: (*check).start}); err != nil {
		t.Fatal(err)
	}
	for _, c := range allBehaviours() {
		t.Run(c.name, func(t *testing.T) {
			if err := s.checkBehaviour(t, b, c); err != nil {
				t.Error(err)
			}
		})
	}
}

// behaviour is a requirement of the contract and its test.
type behaviour struct {
	name string
	try  func(*check) error
}

// check holds the state of a behaviour test.
type check struct {
	*scene
	ctx  context.Context
	b    sandbox.Backend
	mark string
	spec *sandbox.Spec
	box  sandbox.Sandbox
}

// checkBehaviour tests one behaviour, with a new sandbox spec.
func (s *scene) checkBehaviour(t *testing.T, b sandbox.Backend, c behaviour) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	k := &check{scene: s, ctx: ctx, b: b, mark: "behaves-" + randomWord(), spec: newSpec(t)}
	k.spec.Limits.Output = 1 << 20
	defer func() {
		if k.box != nil {
			k.box.Close()
		}
		sweep(k.mark)
	}()
	return c.try(k)
}

// run runs the payload in the test's sandbox and returns its result, which is
// not nil even if there is an error.
func (k *check) run(opts *execute.Options, command string, args ...string) (*execute.Result, error) {
	return k.runCmd(opts, payloadCmd(command, k.mark, args...))
}

func (k *check) runCmd(opts *execute.Options, cmd *sandbox.Cmd) (*execute.Result, error) {
	if err := k.start(); err != nil {
		return &execute.Result{}, err
	}
	res, err := execute.RunIn(k.ctx, k.box, k.spec, cmd, opts)
	if res == nil {
		res = &execute.Result{}
	}
	return res, err
}

func (k *check) start() error {
	if k.box != nil {
		return nil
	}
	box, err := k.b.Start(k.ctx, k.spec)
	if err != nil {
		return fmt.Errorf("start sandbox: %w", err)
	}
	k.box = box
	return nil
}

// expectOutput runs the payload and returns an error if its output is not want.
func (k *check) expectOutput(want, command string, args ...string) error {
	res, err := k.run(nil, command, args...)
	if err != nil {
		return err
	}
	if got := string(res.Stdout); got != want || res.ExitCode != 0 {
		return fmt.Errorf("%s: got stdout %.200q, stderr %.200q, exit code %d (%s %s), want stdout %.200q", command, got, res.Stderr, res.ExitCode, res.Reason, res.Detail, want)
	}
	return nil
}

// expectFailure runs the payload and returns an error if the payload succeeds.
func (k *check) expectFailure(command string, args ...string) error {
	res, err := k.run(nil, command, args...)
	if err != nil {
		return err
	}
	if res.ExitCode == 0 {
		return fmt.Errorf("%s %q succeeded, want a failure: stdout %.200q", command, args, res.Stdout)
	}
	return nil
}

func joinErrors(errs ...error) error { return errors.Join(errs...) }

func allBehaviours() []behaviour {
	return slices.Concat(exitBehaviours(), limitBehaviours(), streamBehaviours(), environmentBehaviours(), fileBehaviours())
}

func exitBehaviours() []behaviour {
	return []behaviour{
		{"exit codes", func(k *check) error {
			for _, code := range []int{0, 1, 7, 255} {
				res, err := k.run(nil, "exit", fmt.Sprint(code))
				want := sandbox.Exited
				if code == 0 {
					want = sandbox.OK
				}
				if err != nil || res.ExitCode != code || res.Signal != "" || res.Reason != want || res.Killed {
					return fmt.Errorf("exit with code %d: got result %+v, error %v", code, res, err)
				}
			}
			return nil
		}},
		{"a command that kills itself", func(k *check) error {
			res, err := k.run(nil, "signal", "15")
			if err != nil || res.ExitCode != 143 || res.Signal != "SIGTERM" || res.Reason != sandbox.Exited {
				return fmt.Errorf("got result %+v, error %v, want exit code 143 and SIGTERM", res, err)
			}
			return nil
		}},
		{"a timeout is a result", func(k *check) error {
			cmd := payloadCmd("sleep", k.mark)
			cmd.Timeout = 5 * time.Second // enough to start on a slow machine
			res, err := k.runCmd(nil, cmd)
			if err != nil || res.Reason != sandbox.Timeout || !res.Killed || string(res.Stdout) != "asleep\n" {
				return fmt.Errorf("got result %+v, error %v, want a timeout", res, err)
			}
			return k.expectOutput("still", "both", "still", "")
		}},
		{"cancelling the context ends the command", func(k *check) error {
			if err := k.start(); err != nil {
				return err
			}
			ctx, cancel := context.WithCancelCause(k.ctx)
			stop := errors.New("cancelled by the test")
			started := writerFunc(func([]byte) { cancel(stop) })
			res, err := execute.RunIn(ctx, k.box, k.spec, payloadCmd("sleep", k.mark), &execute.Options{Stdout: started})
			if !errors.Is(err, stop) || res == nil || !res.Killed {
				return fmt.Errorf("got result %+v, error %v, want error %v", res, err, stop)
			}
			return nil
		}},
		{"a missing program", func(k *check) error {
			for _, cmd := range []*sandbox.Cmd{{Args: []string{mountpoint.Skill + "/none"}}, {Args: []string{"no-such-program-anywhere"}}, {Args: []string{mountpoint.Skill + "/SKILL.md"}}} {
				res, err := k.runCmd(nil, cmd)
				if err != nil || res.ExitCode != 127 || res.Reason != sandbox.StartFailed {
					return fmt.Errorf("run %q: got result %+v, error %v, want exit code 127", cmd.Args, res, err)
				}
			}
			return nil
		}},
		{"Wait returns the same again, Kill after the end does nothing", func(k *check) error {
			p, err := k.startProcess("exit", "3")
			if err != nil {
				return err
			}
			one, two := p.Wait(), p.Wait()
			p.Kill()
			if three := p.Wait(); one != two || two != three || one.Code != 3 {
				return fmt.Errorf("wait three times: got %+v, %+v and %+v, want exit code 3 each time", one, two, three)
			}
			return nil
		}},
		{"Close ends running commands, can be called twice, and prevents new commands", func(k *check) error {
			p, err := k.startProcess("sleep")
			if err != nil {
				return err
			}
			if err := joinErrors(k.box.Close(), k.box.Close()); err != nil {
				return err
			}
			ended := make(chan sandbox.Exit, 1)
			go func() { ended <- p.Wait() }()
			select {
			case e := <-ended:
				if e.Code == 0 {
					return fmt.Errorf("command succeeded although the sandbox was closed: %+v", e)
				}
			case <-time.After(maxLifetime / 2):
				return errors.New("command still running after Close")
			}
			if pids := processesWithMark(k.mark); len(pids) > 0 && !poll(maxLifetime/4, func() bool { return len(processesWithMark(k.mark)) == 0 }) {
				return fmt.Errorf("processes still running after Close: %v", pids)
			}
			if p, err := k.box.Exec(k.ctx, payloadCmd("exit", k.mark, "0")); err == nil {
				p.Kill()
				return errors.New("command started after Close")
			}
			return nil
		}},
	}
}

// startProcess starts the payload in the sandbox, discarding its output.
func (k *check) startProcess(command string, args ...string) (sandbox.Process, error) {
	if err := k.start(); err != nil {
		return nil, err
	}
	p, err := k.box.Exec(k.ctx, payloadCmd(command, k.mark, args...))
	if err != nil {
		return nil, err
	}
	go io.Copy(io.Discard, p.Stdout())
	go io.Copy(io.Discard, p.Stderr())
	return p, nil
}

// runJSON runs the payload and decodes its JSON output.
func (k *check) runJSON(cmd *sandbox.Cmd, into any) error {
	res, err := k.runCmd(nil, cmd)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(res.Stdout, into); err != nil {
		return fmt.Errorf("decode JSON output: stdout %.200q, stderr %.200q, reason %s: %w", res.Stdout, res.Stderr, res.Reason, err)
	}
	return nil
}

func lookup(env []string, name string) (string, bool) {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v, true
		}
	}
	return "", false
}
