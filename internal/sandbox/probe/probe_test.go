//go:build linux

package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

// backend is a sandbox that never starts.
type backend struct{ err error }

func (backend) Name() string                                   { return "mine" }
func (backend) Tier() sandbox.Tier                             { return sandbox.Tier(2) }
func (backend) Probe(context.Context) (*sandbox.Report, error) { return nil, nil }
func (b backend) Start(context.Context, *sandbox.Spec) (sandbox.Sandbox, error) {
	return nil, b.err
}

func TestReport(t *testing.T) {
	leaked := map[string]bool{}
	for name := range leakTexts {
		leaked[name] = true
	}
	for name, text := range leakTexts {
		_, err := report(backend{}, sandbox.State{}, leaked, []string{name})
		if e, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || e.Backend != "mine" || e.Err.Error() != text {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := report(backend{}, sandbox.State{}, leaked, []string{"file", "network"}); err == nil || !strings.Contains(err.Error(), leakTexts["file"]+"; "+leakTexts["network"]) {
		t.Errorf("two leaks: %v", err)
	}
	state := sandbox.State{Enforced: map[string]string{"memory": "", "cores": "", "inodes": "", "disk": "", "network": "seccomp"}}
	r, err := report(backend{}, state, leaked, nil)
	if err != nil {
		t.Fatal(err)
	}
	var layers []string
	for _, l := range r.Layers {
		layers = append(layers, fmt.Sprintf("%s %v %.12s %v", l.Name, l.Enforced, l.By, l.Fix != ""))
	}
	if got := strings.Join(layers, "; "); got != "cores false no CPU contr true; disk false nothing false; inodes false this backend true; memory false no memory co true; network true seccomp false" || r.Backend != "mine" || r.Tier != 2 {
		t.Errorf("%+v", r)
	}
	if r, _ := report(backend{}, sandbox.State{Tier: 1}, nil, []string{"file"}); r == nil || r.Tier != 1 {
		t.Errorf("%+v", r)
	}
}

// A probe removes what killed probes left behind, and nothing else.
func TestOldCanariesAreRemoved(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	stays := map[string]bool{canaryPrefix + "old": false, canaryPrefix + "empty": false, canaryPrefix + "new": true, canaryPrefix + "full": true, "other": true}
	for name := range stays {
		dir := filepath.Join(home, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		file := "canary"
		if name == canaryPrefix+"full" {
			file = "something else"
		}
		if name != canaryPrefix+"empty" {
			if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if name != canaryPrefix+"new" {
			if err := os.Chtimes(dir, time.Time{}, time.Now().Add(-2*canaryAge)); err != nil {
				t.Fatal(err)
			}
		}
	}
	c, err := newCanary()
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(c.dir) != home {
		t.Errorf("the canary is in %s", c.dir)
	}
	c.Close()
	for name, want := range stays {
		if _, err := os.Stat(filepath.Join(home, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(c.dir); err == nil {
		t.Error("the canary is left")
	}
}

func TestRunReturnsStartErrors(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	refused := errors.New("refused")
	if _, err := Run(t.Context(), backend{refused}, "", nil); err != refused {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.Getenv("HOME")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestCanary(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	c, err := newCanary()
	if err != nil {
		t.Fatal(err)
	}
	if c.wasReached() || c.processSurvived() {
		t.Error("nothing was tried yet")
	}
	if text, err := os.ReadFile(c.input.Canary); err != nil || string(text) != "canary" || !strings.HasPrefix(c.input.Canary, os.Getenv("HOME")) {
		t.Errorf("%s: %q, %v", c.input.Canary, text, err)
	}
	info, err := os.Stat(c.dir)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v %v", info, err)
	}
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.input.Port))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if <-c.conns; !c.wasReached() {
		t.Error("a connection is not noticed")
	}
	c.Close()
	if _, err := os.Stat(c.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("not removed: %v", err)
	}
}

func TestFirstLine(t *testing.T) {
	for in, want := range map[string]string{"": "no output", "\n \n": "no output", "\n a \nb": "a", "a": "a"} {
		if got := firstLine([]byte(in)); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}
