package layout

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

func tmpfs(s *stage.Setup, path string) stage.Tmpfs {
	for _, t := range s.Tmpfs {
		if t.Path == path {
			return t
		}
	}
	return stage.Tmpfs{}
}

func bind(s *stage.Setup, path string) (stage.Bind, bool) {
	for _, b := range s.Binds {
		if b.Path == path {
			return b, true
		}
	}
	return stage.Bind{}, false
}

func TestView(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := prepare.DefaultLimits()
	s := View(&sandbox.Spec{
		Mounts:  []sandbox.Mount{{Host: dir, Path: "/data", Writable: true}, {Host: file, Path: "/one"}, {Host: dir + "/none", Path: "/none"}},
		Secrets: []sandbox.Secret{sandbox.NewSecret("KEY", "v3ry-s3cret")},
	}, l)
	if !s.Root || !s.Proc || !s.Loopback || s.Hostname != "loadout" {
		t.Errorf("view %+v", s)
	}
	for path, want := range map[string]stage.Bind{"/data": {Host: dir, Path: "/data", Writable: true}, "/one": {Host: file, Path: "/one", File: true}, "/none": {Host: dir + "/none", Path: "/none"}} {
		if got, _ := bind(&s, path); got != want {
			t.Errorf("%s: %+v", path, got)
		}
	}
	for path, want := range map[string]stage.Tmpfs{
		mountpoint.Work: {Path: mountpoint.Work, Size: l.Work, Inodes: l.Inodes, Mode: 0o755}, mountpoint.Tmp: {Path: mountpoint.Tmp, Size: l.Tmp, Inodes: l.Inodes, Mode: 0o1777},
		"/dev/shm": {Path: "/dev/shm", Size: l.Shm, Inodes: l.Inodes, Mode: 0o1777},
	} {
		if got := tmpfs(&s, path); got != want {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if i := slices.IndexFunc(s.Files, func(f stage.Text) bool { return f.Path == mountpoint.Secrets+"/KEY" }); i < 0 || s.Files[i].Data != "v3ry-s3cret" || s.Files[i].Mode != 0o400 || tmpfs(&s, mountpoint.Secrets).Path == "" {
		t.Errorf("files %+v", s.Files)
	}
	// Resolvers and secrets of the host stay outside.
	for _, path := range []string{"/etc/resolv.conf", "/etc/hosts", "/etc/shadow", "/etc/passwd", "/home", "/root"} {
		if b, ok := bind(&s, path); ok {
			t.Errorf("%s is mounted: %+v", path, b)
		}
	}
	for _, b := range s.Binds {
		if b.Writable && b.Path != "/data" || b.Host != b.Path && !slices.Contains([]string{"/data", "/one", "/none"}, b.Path) {
			t.Errorf("mounted: %+v", b)
		}
	}
	readOnly := ReadOnly(&s)
	if !slices.Equal(readOnly, []string{"/dev", mountpoint.Secrets, "/"}) {
		t.Errorf("read-only: %q", readOnly)
	}
	rules := Rules(&s)
	if !slices.Contains(rules.Write, "/data") || slices.Contains(rules.Write, "/one") || rules.Least != LandlockMinABI || slices.Contains(rules.Files, ReadDevice) || !slices.Contains(rules.Files, os.DevNull) {
		t.Errorf("rules %+v", rules)
	}
	s.Overlay = &stage.Overlay{Path: "/over"}
	if !slices.Contains(Rules(&s).Write, "/over") {
		t.Error("the overlay cannot be written")
	}
}

func TestViewWithHostNetwork(t *testing.T) {
	s := View(&sandbox.Spec{Network: sandbox.Network{Host: true}}, prepare.DefaultLimits())
	if s.Loopback {
		t.Error("the loopback interface is that of the host")
	}
	if _, err := os.Stat("/etc/hosts"); err == nil {
		if b, ok := bind(&s, "/etc/hosts"); !ok || b.Writable || !b.NoExec || !b.File {
			t.Errorf("hosts: %+v", b)
		}
	}
	for _, f := range s.Files {
		if f.Path == "/etc/hosts" || f.Path == "/etc/resolv.conf" {
			t.Errorf("wrote %s", f.Path)
		}
	}
	if tmpfs(&s, mountpoint.Secrets).Path != "" {
		t.Error("a directory for secrets without secrets")
	}
}

// The size of files that a sandbox starts with is added to what it may write.
func TestWorkSize(t *testing.T) {
	l := prepare.DefaultLimits()
	tree := func(path string, size int64) sandbox.Tree {
		return sandbox.Tree{Path: path, Files: []sandbox.File{{Path: "x", Size: size}}}
	}
	size := func(trees ...sandbox.Tree) int64 {
		s := View(&sandbox.Spec{Trees: trees}, l)
		return tmpfs(&s, mountpoint.Work).Size
	}
	if got := size(tree(mountpoint.Skill, 1<<30)); got != l.Work {
		t.Errorf("with a read-only tree: %d, want %d", got, l.Work)
	}
	if got := size(tree(mountpoint.Work, 1)); got != l.Work {
		t.Errorf("with a small working directory: %d, want %d", got, l.Work)
	}
	if got := size(tree(mountpoint.Work, l.Work+1<<20)); got < l.Work+1<<20 {
		t.Errorf("with a large working directory: %d", got)
	}
}

func TestReadable(t *testing.T) {
	all := Readable()
	if len(all) == 0 || slices.ContainsFunc(all, func(p string) bool { return filepath.Dir(p) == "/dev" }) {
		t.Errorf("readable: %q", all)
	}
	for _, p := range all {
		if _, err := os.Stat(p); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	if slices.Contains(WriteDevices(), ReadDevice) || len(WriteDevices()) != len(devices)-1 {
		t.Errorf("devices %q", WriteDevices())
	}
}
