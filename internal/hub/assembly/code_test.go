package assembly_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/queue"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/tools"
)

// W20: servers and providers of a skill start only if its code was approved, in the
// sandbox. The skill loads without them. They are not called after the approval is
// revoked.
func TestW20SkillServers(t *testing.T) {
	w := sqlite(t, sandboxed(t))
	code, err := json.Marshal(pyServer)
	must(t, err)
	outside := filepath.Join(t.TempDir(), "outside") // of the sandbox
	must(t, os.WriteFile(outside, nil, 0o644))
	s := w.upload(w.ada, own(w.ada), "s", tree("s", fmt.Sprintf("description: Brings a server.\nmcpServers: {py: {command: python3, args: [\"-c\", %s, %q]}}", code, outside), "Call where."))
	w.ask(w.ada, w.begin(w.ada, ""), `call load_skill {"name":"s"}`, "Call where.", "are not started", "its code is not reviewed yet")
	w.review(s, library.Approved)
	id := w.begin(w.ada, "")
	w.ask(w.ada, id, `call load_skill {"name":"s"}`+"\n"+call("s_py__where"), "outside False")
	w.review(s, library.Rejected)
	w.ask(w.ada, id, call("s_py__where"), "rejected in review")
	w.ask(w.bob, w.begin(w.bob, ""), call("s_py__where"), "not found")
}

func TestCommandsNeedRunScope(t *testing.T) {
	w := sqlite(t, sandboxed(t))
	const command = `call run_command {"command":"echo $((40 + 2)) in the sandbox"}`
	w.ask(w.ada, w.begin(w.ada, ""), command, "42 in the sandbox")
	limited := w.ada.LimitedTo(account.AllScopes &^ account.ScopeRun)
	if got := w.ask(limited, w.begin(limited, ""), command); strings.Contains(got, "42 in") {
		t.Errorf("without the scope it answers %q", got)
	}
	for _, tool := range w.model.last().Tools {
		if strings.Contains(tool.Name, "run_command") {
			t.Errorf("without the scope there is %s", tool.Name)
		}
	}
}

// failing is a backend that cannot be had.
type failing struct{ sandbox.Backend }

func (failing) Name() string       { return "failing" }
func (failing) Tier() sandbox.Tier { return sandbox.Isolated }
func (failing) Start(context.Context, *sandbox.Spec) (sandbox.Sandbox, error) {
	return nil, &sandbox.UnavailableError{Backend: "failing", Missing: "user namespaces are off"}
}

// W31: a short message says that code cannot run, and the skill is loaded anyway.
func TestW31ShortReasons(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*assembly.Options)
		want   string
	}{
		"no sandbox":      {func(*assembly.Options) {}, "There is no tool"},
		"none to be had":  {func(o *assembly.Options) { o.Sandbox = failing{} }, "user namespaces are off"},
		"too much waits":  {func(o *assembly.Options) { o.Sandbox, o.RunQueue = failing{}, full() }, "too many queued operations"},
		"needs a package": {func(o *assembly.Options) { o.Sandbox = failing{} }, "installation is disabled"},
	} {
		t.Run(name, func(t *testing.T) {
			w := sqlite(t, c.change)
			more := []string{"high.sh", "echo 12:10\n"}
			if name == "needs a package" {
				more = []string{"high.py", "import x\n", "requirements.txt", "x==1.0\n"}
			}
			s := w.upload(w.ada, own(w.ada), "tides", tree("tides", "", "Run it.", more...))
			w.review(s, library.Approved)
			id := w.begin(w.ada, "")
			w.ask(w.ada, id, loadTides, "Run it.")
			got := w.ask(w.ada, id, strings.Replace(runTides, "high.sh", more[0], 1), c.want)
			if len(got) > 500 || strings.Contains(got, t.TempDir()) || strings.Contains(got, "loadout ") && name != "none to be had" {
				t.Errorf("the reason is %q", got)
			}
		})
	}
}

// full is a queue without free slots.
func full() *queue.Queue {
	q := queue.New(1, 0)
	if _, err := q.Acquire(context.Background(), "somebody"); err != nil {
		panic(err)
	}
	return q
}

func TestRunsWaitForASlot(t *testing.T) {
	slots := queue.New(1, 10)
	w := sqlite(t, sandboxed(t), func(o *assembly.Options) { o.RunQueue = slots })
	s := w.upload(w.root, w.team, "tides", tree("tides", "", "Run high.sh.", "high.sh", "echo high water at 12:10\n"))
	w.review(s, library.Approved)
	release, err := slots.Acquire(t.Context(), "somebody")
	must(t, err)
	var all sync.WaitGroup
	for _, p := range []account.Principal{w.ada, w.bob, w.meg} {
		id := w.begin(p, "")
		w.ask(p, id, loadTides)
		all.Go(func() {
			if got := answer(w.say(p, id, runTides)); !strings.Contains(got, "high water at 12:10") {
				t.Errorf("%s is answered %q", p.Name, got)
			}
		})
	}
	release()
	all.Wait()
	code, err := json.Marshal(pyServer)
	must(t, err)
	served := w.upload(w.root, w.team, "served", tree("served", fmt.Sprintf("description: x\nmcpServers: {py: {command: python3, args: [\"-c\", %s]}}", code), "x"))
	w.review(served, library.Approved)
	k := w.open(assembly.Request{Principal: w.ada, Session: "x"})
	if _, err := k.Tools.Call(t.Context(), &tools.Call{Name: "served_py__where", Principal: k.Principal}); err != nil {
		t.Fatal(err)
	}
	again, err := slots.Acquire(t.Context(), "somebody")
	must(t, err)
	again()
}

// Secrets granted to a skill are available to its code only.
func TestSkillSecrets(t *testing.T) {
	w := sqlite(t, sandboxed(t))
	front := "description: Reads tide tables.\nsandbox: {secrets: [KEY]}"
	body := "cat /run/secrets/KEY | wc -c; cat /run/secrets/KEY\n"
	s := w.upload(w.ada, own(w.ada), "tides", tree("tides", front, "Run high.sh.", "high.sh", body))
	w.review(s, library.Approved)
	w.ask(w.ada, w.begin(w.ada, ""), loadTides+"\n"+runTides, "KEY is not set")
	w.grant(w.ada, "KEY", "a-secret-value", agents.Subject{Kind: agents.SkillKind, Name: "tides"})
	got := w.ask(w.ada, w.begin(w.ada, ""), loadTides+"\n"+runTides, "14")
	if strings.Contains(got, "a-secret-value") {
		t.Errorf("it tells the secret: %q", got)
	}
}

// A stopping node opens no assemblies, and their shared resources are closed.
func TestClosedAssembly(t *testing.T) {
	w := sqlite(t)
	k := w.open(assembly.Request{Principal: w.ada})
	must(t, k.Close())
	must(t, k.Close())
	must(t, w.kits.Close())
	if _, err := w.kits.Open(t.Context(), assembly.Request{Principal: w.ada}); err == nil || !strings.Contains(err.Error(), "shutting down") {
		t.Errorf("the error is %v", err)
	}
	if _, err := k.Tools.Call(t.Context(), &tools.Call{Name: "x__y", Principal: policy.Principal{ID: "x", Kind: policy.UserPrincipal}}); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
