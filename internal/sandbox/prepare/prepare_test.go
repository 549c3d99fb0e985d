package prepare_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/sandbox"
)

func TestSpecReportsAllFaultsAtOnce(t *testing.T) {
	sum := strings.Repeat("a", 64)
	s := &sandbox.Spec{
		Trees: []sandbox.Tree{
			{Path: "/etc"}, {Path: "/needs/a/b"}, {Path: "/skill/../x"},
			{Path: "/skill", Files: []sandbox.File{{Path: "../x", SHA256: sum}, {Path: "b", SHA256: "short"}, {Path: "a", SHA256: sum}}},
			{Path: "/work/in", Files: []sandbox.File{{Path: "x", Size: -1}}}, {Path: "/work/in"},
		},
		Mounts:  []sandbox.Mount{{Host: "/x", Path: "/"}, {Path: "/a"}, {Host: "/x", Path: "rel"}},
		Env:     map[string]string{"A=B": "x", "N": "a\x00b"},
		Secrets: []sandbox.Secret{sandbox.NewSecret("../x", "v")},
		Network: sandbox.Network{Host: true, Allow: []string{"example.com"}},
	}
	err := prepare.Check(s)
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, want := range []string{`"/etc"`, `"/needs/a/b"`, `"/skill/../x"`, `invalid path "../x"`, "b has no SHA-256", "a is out of order", "x has a negative size",
		"two trees for /work/in", `at "/"`, `mount of "" at "/a"`, `at "rel"`, `"A=B"`, `"N"`, `invalid secret name "../x"`, "both the host's network and allowed hosts"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	good := &sandbox.Spec{Trees: []sandbox.Tree{{Path: "/skill", Files: []sandbox.File{{Path: "a", SHA256: sum}}}, {Path: "/needs/x"}, {Path: "/work"}, {Path: "/work/in"}, {Path: "/deps"}},
		Mounts: []sandbox.Mount{{Host: "/opt/x", Path: "/opt/x"}}, Env: map[string]string{"A": "=\n"}}
	if err := prepare.Check(good); err != nil {
		t.Error(err)
	}
}

func TestLayoutPaths(t *testing.T) {
	at := func(p string) string { return "/run/x" + p }
	cmd := &sandbox.Cmd{Args: []string{"python3", "/skill/a.py", "/skillful", "--out=/work/out/x", "/work", "a=b=/tmp", "/needs/pdf", "/skill:ro", "x/skill/a"}}
	want := []string{"python3", "/run/x/skill/a.py", "/skillful", "--out=/run/x/work/out/x", "/run/x/work", "a=b=/tmp", "/run/x/needs/pdf", "/run/x/skill:ro", "x/skill/a"}
	if diff := cmp.Diff(want, prepare.Arguments(cmd, at)); diff != "" {
		t.Error(diff)
	}
	spec := &sandbox.Spec{Trees: []sandbox.Tree{{Path: "/skill"}, {Path: "/needs/pdf-tools"}}, Env: map[string]string{"A": "/work/a", "HOME": "/work/home"}, Mounts: []sandbox.Mount{{Path: "/workspace"}}}
	got := prepare.Environment(spec, &sandbox.Cmd{Env: map[string]string{"A": "b"}}, at)
	for _, want := range []string{"LOADOUT_SKILL=/run/x/skill", "LOADOUT_WORK=/run/x/work", "LOADOUT_OUT=/run/x/work/out", "LOADOUT_IN=/run/x/work/in",
		"LOADOUT_SKILL_PDF_TOOLS=/run/x/needs/pdf-tools", "LOADOUT_WORKSPACE=/run/x/workspace", "A=b", "HOME=/run/x/work/home"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not in %q", want, got)
		}
	}
	if slices.ContainsFunc(got, func(kv string) bool { return strings.HasPrefix(kv, "LOADOUT_SECRETS") }) {
		t.Error("no secrets")
	}
	if got := prepare.Environment(&sandbox.Spec{Trees: []sandbox.Tree{{Path: "/deps"}}}, &sandbox.Cmd{}, nil); slices.ContainsFunc(got, func(kv string) bool { return strings.HasPrefix(kv, "LOADOUT_SKILL") }) {
		t.Errorf("without a skill it is %q", got)
	}
}

// Each limit that is not set gets its default, and one that is set stays.
func TestWithDefaults(t *testing.T) {
	if got, want := prepare.Limits(&sandbox.Spec{}), prepare.DefaultLimits(); got != want {
		t.Errorf("defaults %+v, want %+v", got, want)
	}
	set := sandbox.Limits{Memory: 1, Processes: 2, CPU: 3 * time.Second, Cores: 4, Wall: 5 * time.Second, FileSize: 6, OpenFiles: 7, Work: 8, Tmp: 9, Shm: 10, Inodes: 11, Output: 12}
	if got := prepare.Limits(&sandbox.Spec{Limits: set}); got != set {
		t.Errorf("limits %+v became %+v", set, got)
	}
}

func TestWritableTrees(t *testing.T) {
	for path, want := range map[string]bool{"/work": true, "/work/in": true, "/workspace": false, "/skill": false, "/needs/work": false} {
		if got := prepare.IsWritable(path); got != want {
			t.Errorf("%s is writable: %t", path, got)
		}
	}
}

func TestSpecCheck(t *testing.T) {
	hash := strings.Repeat("0", 64)
	tree := func(files ...sandbox.File) *sandbox.Spec {
		return &sandbox.Spec{Trees: []sandbox.Tree{{Path: "/skill", Files: files}}}
	}
	file := func(path string) sandbox.File { return sandbox.File{Path: path, SHA256: hash} }
	mounts := func(m ...sandbox.Mount) *sandbox.Spec { return &sandbox.Spec{Mounts: m} }
	for name, tt := range map[string]struct {
		spec *sandbox.Spec
		want string // in the error; "" for none
	}{
		"empty":               {&sandbox.Spec{}, ""},
		"in order":            {tree(file("a"), file("b")), ""},
		"a file twice":        {tree(file("a"), file("a")), "a is out of order"},
		"out of order":        {tree(file("b"), file("a")), "a is out of order"},
		"no hash":             {tree(sandbox.File{Path: "a"}), "has no SHA-256"},
		"a short hash":        {tree(sandbox.File{Path: "a", SHA256: hash[1:]}), "has no SHA-256"},
		"an empty file":       {tree(sandbox.File{Path: "a", SHA256: hash, Size: 0}), ""},
		"a negative size":     {tree(sandbox.File{Path: "a", SHA256: hash, Size: -1}), "negative size"},
		"a path out of it":    {tree(file("../a")), "invalid path"},
		"the directory":       {tree(file(".")), "invalid path"},
		"NUL":                 {tree(file("a\x00")), "invalid path"},
		"an overlay":          {mounts(sandbox.Mount{Host: "/h", Path: "/workspace", Overlay: true}), ""},
		"a writable overlay":  {mounts(sandbox.Mount{Host: "/h", Path: "/workspace", Overlay: true, Writable: true}), "invalid overlay"},
		"two overlays":        {mounts(sandbox.Mount{Host: "/h", Path: "/workspace", Overlay: true}, sandbox.Mount{Host: "/h", Path: "/other", Overlay: true}), "invalid overlay"},
		"an overlay of two":   {mounts(sandbox.Mount{Host: "/h", Path: "/workspace", Overlay: true}, sandbox.Mount{Host: "/h", Path: "/other", Writable: true}), ""},
		"a mount at the root": {mounts(sandbox.Mount{Host: "/h", Path: "/"}), "invalid mount"},
		"a relative mount":    {mounts(sandbox.Mount{Host: "/h", Path: "w"}), "invalid mount"},
		"an unclean mount":    {mounts(sandbox.Mount{Host: "/h", Path: "/a/../b"}), "invalid mount"},
		"a mount of nothing":  {mounts(sandbox.Mount{Path: "/a"}), "invalid mount"},
	} {
		err := prepare.Check(tt.spec)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// Dependencies whose names differ only in punctuation have variables of their own. Other
// directories have none.
func TestEnvironmentOfDependencies(t *testing.T) {
	s := &sandbox.Spec{Trees: []sandbox.Tree{{Path: "/skill"}, {Path: "/needs/az-AZ.09"}, {Path: "/needs/az_az_09"}, {Path: "/needs/{[:@/"}, {Path: "/needs/.python"}},
		Mounts: []sandbox.Mount{{Host: "/h", Path: "/workspace"}}, Secrets: []sandbox.Secret{{Name: "KEY"}}}
	got := prepare.Environment(s, &sandbox.Cmd{Env: map[string]string{"X": "1"}}, func(p string) string { return "/at" + p })
	for _, want := range []string{"LOADOUT_SKILL=/at/skill", "LOADOUT_SKILL_AZ_AZ_09=/at/needs/az-AZ.09", "LOADOUT_SKILL_AZ_AZ_09_2=/at/needs/az_az_09",
		"LOADOUT_SKILL______=/at/needs/{[:@/", "LOADOUT_WORKSPACE=/at/workspace", "LOADOUT_SECRETS=/at/run/secrets", "X=1"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
	if slices.ContainsFunc(got, func(kv string) bool { return strings.Contains(kv, "/.python") }) {
		t.Errorf("a variable for a directory that is not a skill: %q", got)
	}
	for _, e := range prepare.Environment(&sandbox.Spec{}, &sandbox.Cmd{}, nil) {
		if name, _, _ := strings.Cut(e, "="); name == "LOADOUT_SKILL" || name == "LOADOUT_WORKSPACE" || name == "LOADOUT_SECRETS" {
			t.Errorf("%s without what it names", e)
		}
	}
}
