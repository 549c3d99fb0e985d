//go:build linux

package sandboxtest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/sandbox"
)

// streamBehaviours returns the requirements for standard input and output.
func streamBehaviours() []behaviour {
	return []behaviour{
		{"separate stdout and stderr", func(k *check) error {
			res, err := k.run(nil, "both", "to out", "to err")
			if err != nil || string(res.Stdout) != "to out" || string(res.Stderr) != "to err" || res.Truncated {
				return fmt.Errorf("got stdout %q, stderr %q, error %v", res.Stdout, res.Stderr, err)
			}
			return nil
		}},
		{"no input means EOF", func(k *check) error { return k.expectOutput(fmt.Sprintf("0 %x", sha256.Sum256(nil)), "sum") }},
		{"10 MB of binary input", func(k *check) error {
			data := make([]byte, 10<<20)
			rnd := rand.NewChaCha8([32]byte{1})
			rnd.Read(data)
			res, err := k.run(&execute.Options{Stdin: bytes.NewReader(data)}, "sum")
			if want := fmt.Sprintf("%d %x", len(data), sha256.Sum256(data)); err != nil || string(res.Stdout) != want {
				return fmt.Errorf("got result %+v, error %v, want stdout %s", res, err, want)
			}
			return nil
		}},
		{"unread input", func(k *check) error {
			res, err := k.run(&execute.Options{Stdin: bytes.NewReader(make([]byte, 1<<20))}, "exit", "4")
			if err != nil || res.ExitCode != 4 {
				return fmt.Errorf("got result %+v, error %v, want exit code 4", res, err)
			}
			return nil
		}},
		{"a dialogue", exchangesLines},
		{"output comes while the command runs", func(k *check) error {
			if err := k.start(); err != nil {
				return err
			}
			came := make(chan struct{})
			var once sync.Once
			tee := writerFunc(func([]byte) { once.Do(func() { close(came) }) })
			done := make(chan error, 1)
			cmd := payloadCmd("sleep", k.mark)
			cmd.Timeout = maxLifetime * 3 / 4
			go func() {
				_, err := execute.RunIn(k.ctx, k.box, k.spec, cmd, &execute.Options{Stdout: tee})
				done <- err
			}()
			select {
			case <-came:
			case <-done:
				return errors.New("no output before the command ended")
			}
			return joinErrors(k.box.Close(), <-done)
		}},
		{"output is limited and marked as truncated", func(k *check) error {
			k.spec.Limits.Output = 1000
			res, err := k.run(nil, "fill", "3000")
			if err != nil || len(res.Stdout) != 1000 || !res.Truncated || res.Reason != sandbox.OK {
				return fmt.Errorf("got %d bytes of output, truncated %v, reason %s, error %v", len(res.Stdout), res.Truncated, res.Reason, err)
			}
			res, err = k.run(nil, "fill", "1000000")
			if err != nil || len(res.Stdout) != 1000 || !res.Truncated || res.Reason != sandbox.Output {
				return fmt.Errorf("got %d bytes of output, truncated %v, reason %s, error %v", len(res.Stdout), res.Truncated, res.Reason, err)
			}
			return nil
		}},
		{"secrets are files, and redacted from the output", func(k *check) error {
			k.spec.Secrets = []sandbox.Secret{sandbox.NewSecret("token", "very-secret-value")}
			return k.expectOutput("[secret token]", "read", mountpoint.Secrets+"/token")
		}},
		{"concurrent commands", func(k *check) error {
			if err := k.start(); err != nil {
				return err
			}
			errs := make(chan error, 8)
			for i := range cap(errs) {
				go func() {
					text := strings.Repeat(fmt.Sprint(i), 20000)
					errs <- k.echo(text)
				}()
			}
			var err error
			for range cap(errs) {
				err = joinErrors(err, <-errs)
			}
			return err
		}},
	}
}

func (k *check) echo(text string) error {
	res, err := execute.RunIn(k.ctx, k.box, k.spec, payloadCmd("cat", k.mark), &execute.Options{Stdin: strings.NewReader(text)})
	if err != nil || string(res.Stdout) != text {
		return fmt.Errorf("received %d of %d bytes: result %+.200v, error %v", len(res.Stdout), len(text), res, err)
	}
	return nil
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

// exchangesLines exchanges lines with a command, as an MCP client does with a
// server.
func exchangesLines(k *check) error {
	if err := k.start(); err != nil {
		return err
	}
	cmd := payloadCmd("talk", k.mark)
	cmd.Timeout = -1
	p, err := k.box.Exec(k.ctx, cmd)
	if err != nil {
		return err
	}
	stop := time.AfterFunc(maxLifetime, p.Kill)
	defer stop.Stop()
	go io.Copy(io.Discard, p.Stderr())
	out := bufio.NewReader(p.Stdout())
	for i := range 20 {
		if _, err := fmt.Fprintf(p.Stdin(), "word %d\n", i); err != nil {
			return err
		}
		if got, err := out.ReadString('\n'); err != nil || got != fmt.Sprintf("heard word %d\n", i) {
			return fmt.Errorf("read line %d: got %q, error %v", i, got, err)
		}
	}
	p.Stdin().Close()
	rest, err := io.ReadAll(out)
	if exit := p.Wait(); err != nil || exit.Code != 0 || len(rest) > 0 {
		return fmt.Errorf("close standard input: got exit %+v, output %q, error %v", exit, rest, err)
	}
	return nil
}

// environmentBehaviours returns the requirements for arguments, environment and
// state.
func environmentBehaviours() []behaviour {
	return []behaviour{
		{"unchanged arguments", func(k *check) error {
			args := []string{"", "two words", "line\nbreak", "$HOME `id` ;|&", "'\"", "ünï ☃", "-x", "\\", "*"}
			var got []string
			if err := k.runJSON(payloadCmd("args", k.mark, args...), &got); err != nil {
				return err
			}
			if !slices.Equal(got, args) {
				return fmt.Errorf("arguments: got %q, want %q", got, args)
			}
			return nil
		}},
		{"many and long arguments", func(k *check) error {
			args := slices.Repeat([]string{strings.Repeat("a", 1000)}, 100)
			args = append(args, strings.Repeat("b", 100<<10))
			var got []string
			if err := k.runJSON(payloadCmd("args", k.mark, args...), &got); err != nil {
				return err
			}
			if !slices.Equal(got, args) {
				return fmt.Errorf("got %d arguments, want %d", len(got), len(args))
			}
			return nil
		}},
		{"the environment is exactly that of the spec", cleanEnvironment},
		{"a large environment", func(k *check) error {
			k.spec.Env = map[string]string{"BIG": strings.Repeat("e", 100<<10)}
			for i := range 200 {
				k.spec.Env[fmt.Sprintf("VAR_%d", i)] = strings.Repeat("v", 200)
			}
			var env []string
			if err := k.runJSON(payloadCmd("env", k.mark), &env); err != nil {
				return err
			}
			for name, want := range k.spec.Env {
				if got, _ := lookup(env, name); got != want {
					return fmt.Errorf("variable %s: got %d bytes, want %d", name, len(got), len(want))
				}
			}
			return nil
		}},
		{"the working directory", func(k *check) error {
			for _, c := range []struct{ dir, variable string }{{"", "LOADOUT_WORK"}, {mountpoint.Out, "LOADOUT_OUT"}, {mountpoint.Skill, "LOADOUT_SKILL"}} {
				var env []string
				if err := k.runJSON(payloadCmd("env", k.mark), &env); err != nil {
					return err
				}
				want, _ := lookup(env, c.variable)
				cmd := payloadCmd("pwd", k.mark)
				cmd.Dir = c.dir
				res, err := k.runCmd(nil, cmd)
				if err != nil || string(res.Stdout) != want || want == "" {
					return fmt.Errorf("working directory %q: got stdout %q, stderr %q, error %v, want stdout %q", c.dir, res.Stdout, res.Stderr, err, want)
				}
			}
			return nil
		}},
		{"paths of the layout in arguments and variables", func(k *check) error {
			k.spec.Env = map[string]string{"WHERE": mountpoint.Work + "/x"}
			var env, args []string
			if err := joinErrors(k.runJSON(payloadCmd("env", k.mark), &env), k.runJSON(payloadCmd("args", k.mark, mountpoint.Work+"/x", "--out="+mountpoint.Work+"/x"), &args)); err != nil {
				return err
			}
			work, _ := lookup(env, "LOADOUT_WORK")
			where, _ := lookup(env, "WHERE")
			if want := work + "/x"; where != want || !slices.Equal(args, []string{want, "--out=" + want}) {
				return fmt.Errorf("translate paths: got variable %q, arguments %q, want path %q", where, args, want)
			}
			return nil
		}},
		{"no network", func(k *check) error {
			for _, a := range [][2]string{{"tcp", k.victim.TCP}, {"unix", k.victim.Abstract}} {
				if err := k.expectFailure("dial", a[0], a[1]); err != nil {
					return err
				}
			}
			var names []string
			if err := k.runJSON(payloadCmd("ifaces", k.mark), &names); err != nil {
				return err
			}
			for _, n := range names {
				if n != "lo" && k.b.Tier() >= sandbox.Isolated {
					return fmt.Errorf("unexpected network interfaces %q", names)
				}
			}
			return nil
		}},
		{"the state lists what is enforced", func(k *check) error {
			if err := k.start(); err != nil {
				return err
			}
			enforced := k.box.State().Enforced
			if len(enforced) == 0 {
				return errors.New("state lists no enforced layers")
			}
			enforced["mine"] = "changed" // changing the map must not affect the sandbox
			if k.box.State().Enforced["mine"] != "" {
				return errors.New("changing the returned map affects the sandbox")
			}
			return nil
		}},
	}
}

func cleanEnvironment(k *check) error {
	k.spec.Env = map[string]string{"OF_SPEC": "a b", "BOTH": "spec"}
	cmd := payloadCmd("env", k.mark)
	cmd.Env = map[string]string{"OF_CMD": "c\nd", "BOTH": "cmd"}
	var got []string
	if err := k.runJSON(cmd, &got); err != nil {
		return err
	}
	want := map[string]string{"OF_SPEC": "a b", "OF_CMD": "c\nd", "BOTH": "cmd"}
	known := prepare.Environment(k.spec, cmd, nil)
	for name, value := range want {
		if v, _ := lookup(got, name); v != value {
			return fmt.Errorf("variable %s: got %q, want %q", name, v, value)
		}
	}
	for _, kv := range got {
		name, _, _ := strings.Cut(kv, "=")
		if _, ok := lookup(known, name); !ok {
			return fmt.Errorf("unexpected variable %s", kv)
		}
	}
	if len(got) != len(known) {
		return fmt.Errorf("got %d variables, want %d", len(got), len(known))
	}
	return nil
}
