//go:build linux

package probe

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/sandbox"
)

const (
	keyStatus = "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nGid:\t100\t100\t100\t100\nGroups:\t100\nVmRSS:\t1 kB\nCapInh:\t0\nCapPrm:\t0\nCapEff:\t0\nCapBnd:\t1ff\nCapAmb:\t0\nNoNewPrivs:\t0\nSeccomp:\t0\n"
	keyMounts = "20 1 8:1 / / rw - ext4 /dev/sda rw\n21 20 0:5 / /proc rw - proc proc rw\n22 20 0:6 / /run/groups rw - cgroup2 cgroup2 rw\n23 20 8:2 / /home rw - ext4 /dev/sdb rw\n"
	keyInit   = "1 (a) b) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 77 10 11\n"
)

// machineFiles returns the files of an imagined machine. A value that begins
// with -> is the target of a symlink.
func machineFiles() map[string]string {
	m := map[string]string{"proc/self/status": keyStatus, "proc/self/mountinfo": keyMounts, "proc/1/stat": keyInit, "proc/sys/user/max_user_namespaces": "100\n", "proc/sys/user/max_inotify_watches": "5\n"}
	for _, name := range requiredFiles {
		m[name] = "value of " + name
	}
	for _, name := range optionalFiles[:4] {
		m[name] = "value of " + name
	}
	for _, name := range requiredLinks {
		m[name] = "->" + filepath.Base(name) + ":[1]"
	}
	m["proc/self/cgroup"] = "0::/scope\n"
	m["run/groups/scope/cgroup.controllers"] = "cpu memory pids\n"
	m["run/groups/scope/cgroup.max.descendants"] = "max\n"
	m["run/groups/scope/cgroup.subtree_control"] = "\n"
	return m
}

// machineKey writes files to a directory and returns their key.
func machineKey(t *testing.T, files map[string]string) (string, error) {
	t.Helper()
	root := t.TempDir()
	for name, data := range files {
		p := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(p), 0o755)
		if target, ok := strings.CutPrefix(data, "->"); err == nil && ok {
			err = os.Symlink(target, p)
		} else if err == nil {
			err = os.WriteFile(p, []byte(data), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	h := &keyHash{Hash: sha256.New()}
	h.addMachine(root)
	return hex.EncodeToString(h.Sum(nil)), h.err
}

// Each change that the kernel or a user of this program can make to what a
// sandbox may do alters the key.
func TestKeyOfChangedMachine(t *testing.T) {
	want, err := machineKey(t, machineFiles())
	if err != nil {
		t.Fatal(err)
	}
	changes := map[string]func(map[string]string){
		"user":                   func(m map[string]string) { edit(m, "proc/self/status", "Uid:\t1000\t1000", "Uid:\t1000\t0") },
		"group":                  func(m map[string]string) { edit(m, "proc/self/status", "Gid:\t100", "Gid:\t0") },
		"more groups":            func(m map[string]string) { edit(m, "proc/self/status", "Groups:\t100", "Groups:\t100 101") },
		"capabilities":           func(m map[string]string) { edit(m, "proc/self/status", "CapEff:\t0", "CapEff:\t1ff") },
		"permitted":              func(m map[string]string) { edit(m, "proc/self/status", "CapPrm:\t0", "CapPrm:\t1ff") },
		"inheritable":            func(m map[string]string) { edit(m, "proc/self/status", "CapInh:\t0", "CapInh:\t1ff") },
		"ambient":                func(m map[string]string) { edit(m, "proc/self/status", "CapAmb:\t0", "CapAmb:\t1ff") },
		"bounding set":           func(m map[string]string) { edit(m, "proc/self/status", "CapBnd:\t1ff", "CapBnd:\t0") },
		"no_new_privs":           func(m map[string]string) { edit(m, "proc/self/status", "NoNewPrivs:\t0", "NoNewPrivs:\t1") },
		"no seccomp":             func(m map[string]string) { edit(m, "proc/self/status", "Seccomp:\t0\n", "") },
		"limit of namespaces":    func(m map[string]string) { m["proc/sys/user/max_user_namespaces"] = "0\n" },
		"new limit":              func(m map[string]string) { m["proc/sys/user/max_mnt_namespaces"] = "0\n" },
		"no limits":              func(m map[string]string) { delete(m, "proc/sys/user/max_user_namespaces") },
		"mount over /proc":       func(m map[string]string) { m["proc/self/mountinfo"] += "24 21 0:7 / /proc/sys ro - proc proc rw\n" },
		"mount in /sys":          func(m map[string]string) { m["proc/self/mountinfo"] += "24 21 0:7 / /sys/fs/x ro - tmpfs x rw\n" },
		"other root":             func(m map[string]string) { edit(m, "proc/self/mountinfo", "8:1 / / rw", "8:3 / / rw") },
		"read-only groups":       func(m map[string]string) { edit(m, "proc/self/mountinfo", "/run/groups rw", "/run/groups ro") },
		"fewer controllers":      func(m map[string]string) { edit(m, "run/groups/scope/cgroup.controllers", "memory ", "") },
		"limit of groups":        func(m map[string]string) { edit(m, "run/groups/scope/cgroup.max.descendants", "max", "0") },
		"limit of nested groups": func(m map[string]string) { m["run/groups/scope/cgroup.max.depth"] = "0\n" },
		"no control group": func(m map[string]string) {
			for name := range m {
				if strings.HasPrefix(name, "run/groups/") {
					delete(m, name)
				}
			}
		},
		"other first process":    func(m map[string]string) { edit(m, "proc/1/stat", " 77 ", " 78 ") },
		"new security module":    func(m map[string]string) { m["sys/kernel/security/lsm"] = "capability,apparmor" },
		"an empty security file": func(m map[string]string) { m["sys/fs/selinux/enforce"] = "" },
	}
	for _, name := range append(requiredFiles, optionalFiles[:4]...) {
		changes[name] = func(m map[string]string) { m[name] += "!" }
	}
	for _, name := range optionalFiles[:4] {
		changes["no "+name] = func(m map[string]string) { delete(m, name) }
	}
	for _, name := range requiredLinks {
		changes[name] = func(m map[string]string) { m[name] += "!" }
	}
	seen := map[string]string{want: "none"}
	for name, change := range changes {
		m := machineFiles()
		change(m)
		got, err := machineKey(t, m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if seen[got] != "" {
			t.Errorf("change %q has the key of change %q", name, seen[got])
		}
		seen[got] = name
	}
}

func edit(m map[string]string, name, old, replacement string) {
	if !strings.Contains(m[name], old) {
		panic(name + " does not contain " + old)
	}
	m[name] = strings.Replace(m[name], old, replacement, 1)
}

// Changes that occur all the time, and have no effect, do not alter the key.
func TestKeyOfSameMachine(t *testing.T) {
	want, err := machineKey(t, machineFiles())
	if err != nil {
		t.Fatal(err)
	}
	m := machineFiles()
	edit(m, "proc/self/status", "VmRSS:\t1 kB", "VmRSS:\t2 kB")
	edit(m, "proc/self/mountinfo", "/home rw", "/home ro")
	edit(m, "proc/1/stat", " S 0", " R 0")
	m["proc/self/mountinfo"] += "30 20 0:9 / /var/lib/x rw - overlay overlay rw\n"
	m["proc/sys/user/max_inotify_watches"] = "6\n"
	m["run/groups/scope/cgroup.subtree_control"] = "memory\n" // written by this program
	if got, err := machineKey(t, m); err != nil || got != want {
		t.Errorf("the key changed; %v", err)
	}
}

// There is no key if a part cannot be read or compared.
func TestNoKey(t *testing.T) {
	changes := map[string]func(map[string]string){
		"seccomp filter":   func(m map[string]string) { edit(m, "proc/self/status", "Seccomp:\t0", "Seccomp:\t2") },
		"no status":        func(m map[string]string) { delete(m, "proc/self/status") },
		"short status":     func(m map[string]string) { m["proc/self/status"] = "Uid:\t0\n" },
		"no mounts":        func(m map[string]string) { delete(m, "proc/self/mountinfo") },
		"damaged mounts":   func(m map[string]string) { m["proc/self/mountinfo"] += "30 20\n" },
		"no first process": func(m map[string]string) { delete(m, "proc/1/stat") },
		"no start":         func(m map[string]string) { m["proc/1/stat"] = "1 (x) S 0" },
		"large":            func(m map[string]string) { m["proc/self/cgroup"] = strings.Repeat("x", 2<<20) },
		"unreadable":       func(m map[string]string) { m["sys/kernel/security/lsm/x"] = "" }, // a directory
	}
	for _, name := range append(requiredFiles, requiredLinks...) {
		changes["no "+name] = func(m map[string]string) { delete(m, name) }
	}
	for name, change := range changes {
		m := machineFiles()
		change(m)
		if _, err := machineKey(t, m); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

type namedBackend struct {
	sandbox.Backend
	name string
}

func (b namedBackend) Name() string { return b.name }

// The key of this machine is stable, and depends on the backend, its options,
// its programs and the environment.
func TestKey(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	programs := []string{"", program}
	key := func(name string, options ...any) string {
		t.Helper()
		k, err := Key(namedBackend{name: name}, programs, options...)
		if err != nil {
			if b, _ := os.ReadFile("/proc/self/status"); !strings.Contains(string(b), "Seccomp:\t0") {
				t.Skip(err)
			}
			t.Fatal(err)
		}
		return k
	}
	first := key("a", "x", 1)
	if key("a", "x", 1) != first {
		t.Error("the key changes by itself")
	}
	all := map[string]string{"": first, "name": key("b", "x", 1), "option": key("a", "x", 2), "fewer options": key("a", "x")}
	write("two")
	all["content"] = key("a", "x", 1)
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(program, time.Time{}, info.ModTime().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	all["time"] = key("a", "x", 1)
	programs = programs[:1]
	all["fewer programs"] = key("a", "x", 1)
	t.Setenv("HOME", "/elsewhere")
	all["home"] = key("a", "x", 1)
	seen := map[string]string{}
	for name, k := range all {
		if other, ok := seen[k]; ok {
			t.Errorf("%q has the key of %q", name, other)
		}
		seen[k] = name
	}
	if _, err := Key(namedBackend{name: "a"}, []string{program + ".none"}); err == nil {
		t.Error("a missing program has a key")
	}
}
