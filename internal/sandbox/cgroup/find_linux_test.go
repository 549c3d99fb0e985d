package cgroup

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The groups of a process are below the mounts of their hierarchies, whichever part of
// a hierarchy is mounted.
func TestFindGroups(t *testing.T) {
	const unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
	for name, tt := range map[string]struct {
		mounts, cgroup string
		want           map[string]string
	}{
		"version 2":             {unified, "0::/user.slice/a.scope\n", map[string]string{"": "/sys/fs/cgroup/user.slice/a.scope"}},
		"in a container":        {"30 23 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/docker/1/x\n", map[string]string{"": "/sys/fs/cgroup/x"}},
		"version 1":             {"31 23 0:27 / /cg/memory rw - cgroup cgroup rw,memory\n32 23 0:28 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n", "5:memory:/m\n4:cpu,cpuacct:/c\n1:name=systemd:/s\n", map[string]string{"memory": "/cg/memory/m", "cpu": "/cg/cpu/c"}},
		"both":                  {unified + "31 23 0:27 / /cg/pids rw - cgroup cgroup rw,pids\n", "0::/u\n3:pids:/p\n", map[string]string{"": "/sys/fs/cgroup/u", "pids": "/cg/pids/p"}},
		"not a member":          {"31 23 0:27 / /cg/memory rw - cgroup cgroup rw,memory\n", "4:cpu:/c\n", map[string]string{}},
		"another file system":   {"33 23 0:29 / /tmp rw - tmpfs tmpfs rw\n", "0::/u\n", map[string]string{}},
		"a controller not used": {"31 23 0:27 / /cg/devices rw - cgroup cgroup rw,devices\n", "4:devices:/d\n", map[string]string{}},
		"damaged lines":         {"30 23 0:26 / - cgroup2 cgroup2 rw\n30 23 0:26 / /x rw - cgroup2 cgroup2\n30 23 0:26 / /x rw cgroup2\n" + unified, "x\n0:\n0::/u\n", map[string]string{"": "/sys/fs/cgroup/u"}},
		"a path with a colon":   {unified, "0::/a:b\n", map[string]string{"": "/sys/fs/cgroup/a:b"}},
	} {
		dir := t.TempDir()
		mounts, cgroup := filepath.Join(dir, "mountinfo"), filepath.Join(dir, "cgroup")
		for p, text := range map[string]string{mounts: tt.mounts, cgroup: tt.cgroup} {
			if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := findGroups(mounts, cgroup); !maps.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	dir := t.TempDir()
	mounts, cgroup := filepath.Join(dir, "mountinfo"), filepath.Join(dir, "cgroup")
	for p, text := range map[string]string{mounts: unified + "31 23 0:27 / /cg/m rw - cgroup cgroup rw,memory,pids\n", cgroup: "0::/a/" + leafName + "\n3:memory,pids:/p\n"} {
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := Parents(mounts, cgroup), []string{"/sys/fs/cgroup/a", "/cg/m/p"}; !slices.Equal(got, want) {
		t.Errorf("groups are created in %v, want %v", got, want)
	}
	if got := findGroups("/no/such/file", "/no/such/file"); len(got) > 0 {
		t.Errorf("without files: %v", got)
	}
}
