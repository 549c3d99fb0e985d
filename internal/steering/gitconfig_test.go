package steering_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/steering"
)

const cloned = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = false
	logallrefupdates = true
[remote "origin"]
	url = https://example.com/a/b.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
	remote = origin
	merge = refs/heads/main
`

var steeringConfigs = []string{
	"[core]\n\tfsmonitor = ./x\n", "[core] fsmonitor = ./x\n", "[core]\n\thooksPath = x\n", "[core]\n\tbare = false \\\nfsmonitor = x\n", "[include]\n\tpath = ../x\n", "[includeIf \"gitdir:/\"]\n\tpath = x\n",
	"[alias]\n\tst = !x\n", "[remote \"origin\"]\n\turl = ext::sh -c x\n", "[remote \"origin\"]\n\turl = -x\n", "[remote \"origin\"]\n\tuploadpack = x\n", "[remote \"a\"] uploadpack = \"x\"]\n", "fsmonitor = x\n",
	"[core]\n\tworktree = /\n", "[filter \"x\"]\n\tclean = x\n", "[diff]\n\texternal = x\n", "[core]\n\tbare = false\r\tfsmonitor = x\n", "[core.x]\n\tbare = x\n", "[Core \"x\"]\n\tbare = x\n", "[core]\n\tbare\n", "x",
}

func TestIsPlainGitConfig(t *testing.T) {
	if !steering.IsPlainGitConfig([]byte(cloned)) {
		t.Error("the configuration of a clone")
	}
	for _, s := range steeringConfigs {
		if steering.IsPlainGitConfig([]byte(s)) || steering.IsPlainGitConfig([]byte(cloned+s)) && !strings.HasPrefix(s, "fs") {
			t.Errorf("accepted: %q", s)
		}
	}
	for n, want := range map[int]bool{0: true, steering.MaxGitConfig: true, steering.MaxGitConfig + 1: false} {
		if got := steering.IsPlainGitConfig([]byte(strings.Repeat("\n", n))); got != want {
			t.Errorf("a configuration of %d bytes: %t", n, got)
		}
	}
}

// Git reads from an accepted configuration only keys of the sections core,
// remote, branch, extensions and user that name no program.
func FuzzIsPlainGitConfig(f *testing.F) {
	git, err := exec.LookPath("git")
	if err != nil {
		f.Skip("git is not installed")
	}
	f.Add([]byte(cloned))
	for _, s := range steeringConfigs {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !steering.IsPlainGitConfig(data) {
			return
		}
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(git, "config", "--file", file, "--name-only", "--list").Output()
		if err != nil {
			return // Git refuses it
		}
		for key := range strings.Lines(string(out)) {
			key = strings.ToLower(strings.TrimSpace(key))
			section, _, _ := strings.Cut(key, ".")
			last := key[strings.LastIndexByte(key, '.')+1:]
			switch section + " " + last {
			case "core repositoryformatversion", "core filemode", "core bare", "core logallrefupdates", "core ignorecase", "core precomposeunicode", "core symlinks",
				"remote url", "remote fetch", "remote tagopt", "branch remote", "branch merge", "branch rebase", "extensions objectformat", "extensions refstorage", "user name", "user email":
			default:
				t.Errorf("Git reads %s from %q", key, data)
			}
		}
	})
}

func TestGitConfigPaths(t *testing.T) {
	files, includes := steering.GitConfigPaths([]byte("[core] hooksPath = \"a b\" # x\n\tfsmonitor = ./f.sh -v \\\n g/h\r\n[filter \"x\"]\nclean = python3 t/c.py %f\n[remote \"o\"]\nurl = https://x/y\n[alias]\ns = status\n[Include]\npath = i\n[core]\n;hooksPath = z\nhooksPath=c\\\\d;e"))
	if got, want := strings.Join(files, "|")+"||"+strings.Join(includes, "|"), "a b|./f.sh|g/h|t/c.py|c\\d||i"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestGitConfigPathsFollowsSyntax(t *testing.T) {
	for config, want := range map[string]string{
		"[core]\nhooksPath = z":                     "z||",
		"[Core]\nHOOKSPATH = z":                     "z||",
		"[core]hooksPath=z":                         "z||",
		"[core]\n\thooksPath = \"a # b\" ; c\n":     "a # b||",
		"[core]\n#hooksPath = y\nhooksPath = z":     "z||",
		"[core]\nhooksPath y\nAttributesFile = z":   "z||",
		"[core]\nhooksPath":                         "||",
		"[core]\nbare\nhooksPath = z":               "z||",
		"[include \"a]b\"]\npath = z":               "||z",
		"[includeIf \"gitdir:\\\"]x\"]\npath = z":   "||z",
		"[include.x]\npath = z":                     "||z",
		"[core]\nhooksPath = y\n[include\npath = z": "y||z",
		"[core]\nhooksPath = y\n[include":           "y||",
		"[core]\nfsmonitor = \"./a b\" c/d # ./e":   "./a|c/d||",
	} {
		files, includes := steering.GitConfigPaths([]byte(config))
		if got := strings.Join(files, "|") + "||" + strings.Join(includes, "|"); got != want {
			t.Errorf("%q: got %s, want %s", config, got, want)
		}
	}
}

// Whatever directory of hooks Git reads from a configuration, GitConfigPaths
// finds.
func FuzzGitConfigPaths(f *testing.F) {
	git, err := exec.LookPath("git")
	if err != nil {
		f.Skip("git is not installed")
	}
	for _, s := range steeringConfigs {
		f.Add([]byte(s))
	}
	f.Add([]byte("[core] hooksPath = \"a b\" # x\n"))
	f.Add([]byte("[Core]hooksPAth=00\x00"))
	f.Add([]byte("[Core]hooksPAth=00\\"))
	f.Add([]byte("[core]\nhooksPath = a\\\nb ; c\n"))
	f.Add([]byte("[x \"]\"] y = z\n[core] hooksPath=a\\tb\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(git, "config", "--file", file, "--null", "--get-all", "core.hooksPath").Output()
		if err != nil {
			return // Git refuses it, or there is none
		}
		files, _ := steering.GitConfigPaths(data)
		for want := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			if want != "" && !slices.Contains(files, want) {
				t.Errorf("Git reads %q from %q; found %q", want, data, files)
			}
		}
	})
}
