package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/remote/remotetest"
)

// killedVariable has this test be the process that is killed: "URL TEMPDIR".
const killedVariable = "LOADOUT_TEST_KILLED"

func TestGitEndsWhenLoadoutIsKilled(t *testing.T) {
	if at, temp, ok := strings.Cut(os.Getenv(killedVariable), " "); ok {
		c := New(&Options{TempDir: temp, Credential: func(context.Context, string) (*Credential, error) { return nil, nil }})
		o, err := c.Open(t.Context(), Location{Kind: Git, URL: at})
		t.Fatalf("%v, %v from a server that says nothing", o, err)
	}
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"pdf/SKILL.md": minimal})
	came, left := make(chan struct{}), make(chan struct{})
	var first, last sync.Once
	l := before(t, g, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not see the other side go
		first.Do(func() { close(came) })
		<-r.Context().Done()
		last.Do(func() { close(left) })
		return true
	})
	temp := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestGitEndsWhenLoadoutIsKilled$")
	cmd.Env = append(os.Environ(), killedVariable+"="+l.URL+" "+temp)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-came
	during := processesIn(t, temp)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if len(during) < 3 { // the shell, git fetch and what speaks http
		t.Fatalf("while it fetched, there were %q", during)
	}
	gone(t, temp)
	<-left
	if dirs, err := filepath.Glob(filepath.Join(temp, dirPrefix+"*")); err != nil || len(dirs) != 1 {
		t.Fatalf("left are %v, %v", dirs, err)
	}
	o, err := resolvedIn(temp).Open(t.Context(), Location{Kind: Git, URL: g.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(temp); err != nil || len(entries) > 0 {
		t.Errorf("after the next look there is %v, %v", entries, err)
	}
}

// What a command leaves ends with it, and what watches over it.
func TestLeftoverProcessesEnd(t *testing.T) {
	for name, script := range map[string]string{
		"the command ends":    "sleep 1000 >/dev/null 2>&1 & sleep 1000 >/dev/null 2>&1 & echo",
		"the shell is killed": "sleep 1000 >/dev/null 2>&1 & echo; kill -9 $PPID; sleep 1000",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			at := filepath.Join(dir, "home")
			if err := os.Mkdir(at, 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
			cmd.Dir = at
			detach(cmd)
			p, err := startGit(cmd, gitMemory)
			if err != nil {
				t.Fatal(err)
			}
			_ = p.Wait()
			gone(t, dir)
		})
	}
}

// gone waits until no process runs in a directory. It polls, because the end of a
// process that is not a child causes no notification.
func gone(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); len(processesIn(t, dir)) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("left are %q", processesIn(t, dir))
		}
	}
}

func resolvedIn(temp string) *Client {
	return New(&Options{TempDir: temp, Credential: func(context.Context, string) (*Credential, error) { return nil, nil }})
}

// processesIn are the commands of the processes that run in a directory.
func processesIn(t *testing.T, dir string) (out []string) {
	t.Helper()
	all, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		// What has ended, and waits for its parent, is in no directory.
		at, err := os.Readlink(filepath.Join("/proc", p.Name(), "cwd"))
		if err != nil || !strings.HasPrefix(at, dir+"/") {
			continue
		}
		command, _ := os.ReadFile(filepath.Join("/proc", p.Name(), "cmdline"))
		out = append(out, fmt.Sprintf("%.40s", strings.ReplaceAll(string(command), "\x00", " ")))
	}
	return out
}
