//go:build linux

package container

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/container/containertest"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/sandbox"
)

func TestProbe(t *testing.T) {
	b, engine := backend(t)
	r, err := b.Probe(t.Context())
	if err != nil || r.Tier != sandbox.Isolated {
		t.Fatalf("%+v, %v", r, err)
	}
	if missing := r.Missing(); !slices.Equal(missing, []string{"inodes"}) { // bubblewrap has no such limit
		t.Errorf("missing %q", missing)
	}
	if left := engine.Containers(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// Limits that an engine does not support are reported.
func TestEngineWithoutLimits(t *testing.T) {
	e := containertest.New(t, "limits")
	b := New(&Options{Engine: e.Path, Image: "test:1", Cache: stagetest.OpenDir(t)})
	r, err := b.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Tier != sandbox.Confined {
		t.Errorf("tier %v without a limit of memory, want %v", r.Tier, sandbox.Confined)
	}
	missing := r.Missing()
	for _, name := range []string{"memory", "processes", "cores", "cpu", "file_size", "open_files"} {
		if !slices.Contains(missing, name) {
			t.Errorf("%s is said to be enforced", name)
		}
	}
	for _, l := range r.Layers {
		if !l.Enforced && l.By == "" || l.Name == "memory" && l.Fix == "" {
			t.Errorf("no message of %+v", l)
		}
	}
}

// A container that does not isolate is not used, by a probe or otherwise.
func TestEngineThatDoesNotIsolate(t *testing.T) {
	for fault, want := range map[string]string{"network": "network access: the interface ", "seccomp": "seccomp filter is not active", "privileges": "can gain privileges"} {
		if fault == "network" {
			if n := parseFacts("= /proc/net/dev\n" + file(t, "/proc/net/dev")).networkAccess(); n == "" {
				t.Log("this machine has no network")
				continue
			}
		}
		if fault == "privileges" && os.Geteuid() != 0 {
			continue // the engine has given up to get any itself
		}
		e := containertest.New(t, fault)
		b := New(&Options{Engine: e.Path, Image: "test:1", Cache: stagetest.OpenDir(t)})
		_, err := b.Probe(t.Context())
		if e, ok := errors.AsType[*sandbox.UnavailableError](err); !ok || !strings.Contains(e.Error(), want) || e.Fix == "" {
			t.Errorf("%s, probe: %v", fault, err)
		}
		if s, err := b.Start(t.Context(), &sandbox.Spec{}); err == nil {
			s.Close()
			t.Errorf("%s: it started", fault)
		}
		if left := e.Containers(t); len(left) > 0 {
			t.Errorf("%s, left behind: %q", fault, left)
		}
	}
}

func file(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const good = `= /proc/self/status
CapPrm:	0000000000000000
CapEff:	0000000000000000
CapAmb:	0000000000000000
NoNewPrivs:	1
Seccomp:	2
= /proc/self/limits
Limit                     Soft Limit           Hard Limit           Units
Max cpu time              30                   31                   seconds
Max open files            unlimited            unlimited            files
= /proc/self/mountinfo
1 2 0:3 / / ro,relatime shared:1 - overlay overlay rw,lowerdir=/a
1 2 0:3 / /work rw,nosuid - tmpfs tmpfs rw,size=65536k,nr_inodes=16384
= /proc/net/dev
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs
    lo:       0       0
  sit0:       0       0
= /proc/net/route
Iface	Destination	Gateway
= /proc/net/ipv6_route
00000000000000000000000000000001 80 00 00 00 00 00 80200001       lo
= /proc/version
Linux version 4.4.0
= groups
memory.max max
memory.max 1048576
pids.max 10
cpu.max 150000 100000
cpu.max max 100000
`

func TestFacts(t *testing.T) {
	f := parseFacts(good)
	b := New(nil)
	if faults := b.faults(f, &sandbox.Spec{}); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
	if f.minLimit("memory.max") != 1048576 || f.minLimit("cpu.max") != 1.5 || f.limits["Max cpu time"] != 30 || len(f.limits) != 1 || f.mounts["/work"][0] != "tmpfs" {
		t.Errorf("%+v", f)
	}
	for _, c := range []struct{ old, new, want string }{
		{"Seccomp:\t2", "Seccomp:\t0", "seccomp filter is not active"},
		{"CapEff:\t0000000000000000", "CapEff:\t00000000a80425fb", "remaining capabilities: CapEff 00000000a80425fb"},
		{"CapPrm:\t0000000000000000\n", "", "remaining capabilities: CapPrm"},
		{"NoNewPrivs:\t1", "NoNewPrivs:\t0", "can gain privileges"},
		{"  sit0:", "  eth0:", "the interface eth0"},
		{"Gateway\n", "Gateway\nsit0\t00000000\t0100\n", "a route by sit0"},
		{"= /proc/net/route\n", "", "cannot be inspected"},
		{"= groups", "= /proc/7/stat\n" + readOwnStat() + "= groups", "host processes"},
	} {
		faults := b.faults(parseFacts(strings.Replace(good, c.old, c.new, 1)), &sandbox.Spec{})
		if len(faults) != 1 || !strings.Contains(faults[0], c.want) {
			t.Errorf("%q: %q", c.want, faults)
		}
	}
	if faults := b.faults(parseFacts(strings.Replace(good, "= groups", "= /proc/7/stat\n7 (sleep) "+strings.Repeat("1 ", 30)+"\n= groups", 1)), &sandbox.Spec{}); len(faults) > 0 {
		t.Errorf("of a container with another process of that number: %q", faults)
	}
	if faults := b.faults(parseFacts(""), &sandbox.Spec{}); len(faults) != 4 {
		t.Errorf("of nothing: %q", faults)
	}
}

// A runtime with its own kernel needs no seccomp inside, and must exist.
func TestFactsOfRuntime(t *testing.T) {
	b := New(&Options{Runtime: "runsc"})
	of := strings.NewReplacer("Seccomp:\t2\n", "Seccomp:\t0\n", "NoNewPrivs:\t1\n", "").Replace(good)
	if faults := b.faults(parseFacts(of), &sandbox.Spec{}); len(faults) > 0 {
		t.Errorf("%q", faults)
	}
	if by := b.enforcedLayers(&engine{kind: "docker"}, parseFacts(of), &sandbox.Spec{})["syscalls"]; by != "runsc" {
		t.Errorf("system calls by %q", by)
	}
	of = strings.Replace(good, "Linux version 4.4.0\n", file(t, "/proc/version"), 1)
	if faults := b.faults(parseFacts(of), &sandbox.Spec{}); len(faults) != 1 || !strings.Contains(faults[0], "runsc is not active") {
		t.Errorf("%q", faults)
	}
}
