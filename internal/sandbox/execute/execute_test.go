package execute_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/sandbox"
)

// FuzzRedact checks that no secret passes, however the stream is split, and that other
// text is unchanged.
func FuzzRedact(f *testing.F) {
	f.Add("the key is hunter22 and", "hunter22", 5)
	f.Add("aaaaaaaaaaaab", "aaaaaab", 1)
	f.Add("ababababcababab", "ababab", 3)
	f.Fuzz(func(t *testing.T, text, secret string, size int) {
		if len(secret) < 6 || strings.Contains("[secret KEY]", secret) || strings.Contains(secret, "[") || strings.Contains(secret, "]") {
			return
		}
		s := sandbox.NewSecret("KEY", secret)
		p := &scripted{stdout: text, chunk: max(1, size%7)}
		res, err := execute.RunIn(t.Context(), p, &sandbox.Spec{Secrets: []sandbox.Secret{s}}, &sandbox.Cmd{Args: []string{"x"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(res.Stdout); strings.Contains(got, secret) {
			t.Errorf("%q has the secret %q", got, secret)
		} else if !strings.Contains(text, secret) && got != text {
			t.Errorf("%q became %q", text, got)
		}
		if whole := string(execute.Redact([]byte(text), s)); strings.Contains(whole, secret) {
			t.Errorf("%q has the secret at once", whole)
		}
	})
}

func TestOverlappingSecretsAreRedacted(t *testing.T) {
	spec := &sandbox.Spec{Secrets: []sandbox.Secret{sandbox.NewSecret("A", "ABCDEF"), sandbox.NewSecret("B", "EFGHIJ"), sandbox.NewSecret("C", "xxABCDEFyy")}}
	for text, want := range map[string]string{
		"-ABCDEF-": "-[secret A]-", "-ABCDEFGHIJ-": "-[secret A]GHIJ-", "-xxABCDEFyy-": "-[secret C]-", "-xxABCDEF-": "-xx[secret A]-", "ABCDEFEFGHIJ": "[secret A][secret B]", "-ABCDE": "-ABCDE",
	} {
		for chunk := 1; chunk <= len(text); chunk++ {
			res, err := execute.RunIn(t.Context(), &scripted{stdout: text, chunk: chunk}, spec, &sandbox.Cmd{Args: []string{"x"}}, nil)
			if err != nil || string(res.Stdout) != want {
				t.Errorf("%q in pieces of %d: %q, want %q, %v", text, chunk, res.Stdout, want, err)
			}
		}
	}
	for text, want := range map[string]string{"xabcdefx.test:443": "x[secret A]x.test:443", "other.test": "other.test"} {
		if got := execute.RedactText(spec, text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// scripted is a sandbox whose one command writes a text in chunks, and optionally runs
// until it is killed.
type scripted struct {
	stdout string
	chunk  int
	hang   bool
	exit   sandbox.Exit
	files  fstest.MapFS
}

func (s *scripted) Exec(context.Context, *sandbox.Cmd) (sandbox.Process, error) {
	p := &scriptedProcess{killed: make(chan struct{})}
	r, w := io.Pipe()
	p.out = r
	go func() {
		for text := s.stdout; text != ""; {
			n := min(max(s.chunk, 1), len(text))
			if _, err := io.WriteString(w, text[:n]); err != nil {
				break
			}
			text = text[n:]
		}
		if s.hang {
			<-p.killed
		}
		w.Close()
	}()
	p.hang, p.exit = s.hang, s.exit
	if p.exit.Reason == "" {
		p.exit.Reason = sandbox.OK
	}
	return p, nil
}

func (s *scripted) Collect(_ context.Context, visit func(sandbox.File, io.Reader) error) error {
	for name, f := range s.files {
		if err := visit(sandbox.File{Path: name, Size: int64(len(f.Data))}, bytes.NewReader(f.Data)); err != nil {
			return err
		}
	}
	return nil
}

func (s *scripted) State() sandbox.State {
	return sandbox.State{Enforced: map[string]string{"wall": "timer"}, Denied: []string{"x.test:443"}}
}
func (s *scripted) Close() error { return nil }

type scriptedProcess struct {
	out    io.Reader
	hang   bool
	exit   sandbox.Exit
	killed chan struct{}
}

func (p *scriptedProcess) Stdin() io.WriteCloser { return discard{io.Discard} }
func (p *scriptedProcess) Stdout() io.Reader     { return p.out }
func (p *scriptedProcess) Stderr() io.Reader     { return strings.NewReader("") }
func (p *scriptedProcess) Wait() sandbox.Exit {
	if p.hang {
		<-p.killed
		return sandbox.Exit{Code: 137, Signal: "SIGKILL", Reason: sandbox.Exited}
	}
	return p.exit
}

func (p *scriptedProcess) Kill() {
	select {
	case <-p.killed:
	default:
		close(p.killed)
	}
}

type discard struct{ io.Writer }

func (discard) Close() error { return nil }

func TestTimeoutIsAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		res, err := execute.RunIn(t.Context(), &scripted{stdout: "begun", hang: true}, &sandbox.Spec{}, &sandbox.Cmd{Args: []string{"x"}}, nil)
		if err != nil || res.Reason != sandbox.Timeout || !res.Killed || string(res.Stdout) != "begun" || time.Since(start) != time.Minute {
			t.Errorf("%+v %v after %v", res, err, time.Since(start))
		}
	})
}

func TestEndedContextIsAnErrorWithOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		errGone := errors.New("the client has gone")
		time.AfterFunc(time.Second, func() { cancel(errGone) })
		res, err := execute.RunIn(ctx, &scripted{stdout: "begun", hang: true}, &sandbox.Spec{}, &sandbox.Cmd{Args: []string{"x"}}, nil)
		if !errors.Is(err, errGone) || res == nil || string(res.Stdout) != "begun" {
			t.Errorf("%+v %v", res, err)
		}
	})
}

func TestRevocationIsAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(fmt.Errorf("%w: revoked", execute.ErrDisabled)) })
		res, err := execute.RunIn(ctx, &scripted{hang: true}, &sandbox.Spec{}, &sandbox.Cmd{Args: []string{"x"}}, nil)
		if err != nil || res.Reason != sandbox.Disabled || !res.Killed {
			t.Errorf("%+v %v", res, err)
		}
	})
}

func TestOutputIsKeptUpToLimit(t *testing.T) {
	spec := &sandbox.Spec{Limits: sandbox.Limits{Output: 10}}
	var tee bytes.Buffer
	res, err := execute.RunIn(t.Context(), &scripted{stdout: strings.Repeat("0123456789", 3), chunk: 7}, spec, &sandbox.Cmd{Args: []string{"x"}}, &execute.Options{Stdout: &tee})
	if err != nil || string(res.Stdout) != "0123456789" || !res.Truncated || res.Reason != sandbox.OK || tee.String() != "0123456789" {
		t.Errorf("%+v %v, and on the way %q", res, err, tee.String())
	}
	res, err = execute.RunIn(t.Context(), &scripted{stdout: strings.Repeat("0123456789", 5), hang: true}, spec, &sandbox.Cmd{Args: []string{"x"}}, nil)
	if err != nil || res.Reason != sandbox.Output || !res.Killed {
		t.Errorf("%+v %v", res, err)
	}
}

func TestUserGetsAllOutput(t *testing.T) {
	var tee bytes.Buffer
	text := strings.Repeat("0123456789", 100)
	res, err := execute.RunIn(t.Context(), &scripted{stdout: text, chunk: 7}, &sandbox.Spec{Limits: sandbox.Limits{Output: 10}}, &sandbox.Cmd{Args: []string{"x"}}, &execute.Options{Stdout: &tee, Unlimited: true})
	if err != nil || res.Reason != sandbox.OK || res.Killed || res.Truncated || string(res.Stdout) != "0123456789" || tee.String() != text {
		t.Errorf("%+v %v, and on the way %d bytes", res, err, tee.Len())
	}
}

func TestFilesAreHashedWhileCopied(t *testing.T) {
	s := &scripted{files: fstest.MapFS{"out/a": {Data: []byte("abc")}, "b": {Data: []byte("x")}}}
	res, err := execute.RunIn(t.Context(), s, &sandbox.Spec{}, &sandbox.Cmd{Args: []string{"x"}}, &execute.Options{
		Collect: func(f sandbox.File, r io.Reader) (bool, error) { return f.Path == "out/a", nil }})
	want := []sandbox.File{{Path: "out/a", Size: 3, SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}}
	if err != nil || cmp.Diff(want, res.Files) != "" {
		t.Errorf("%v %s", err, cmp.Diff(want, res.Files))
	}
	if diff := cmp.Diff([]string{"x.test:443"}, res.Denied); diff != "" {
		t.Error(diff)
	}
}
