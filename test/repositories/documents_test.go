//go:build linux

package repositories_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
)

// checkDocuments applies a file of documents to a new hub. All must be created,
// and be unchanged when the file is applied again.
func (u *user) checkDocuments(file string) {
	u.t.Helper()
	hub := u.serve()
	for _, want := range []string{"created", "unchanged"} {
		stdout, stderr, err := u.loadout("", "apply", "-f", file, "--hub", hub, "--json")
		var out struct {
			Changes []struct{ Kind, Name, Outcome string }
		}
		if jsonErr := json.Unmarshal([]byte(stdout), &out); err != nil || jsonErr != nil || len(out.Changes) == 0 {
			u.t.Fatalf("apply %s: %v, %v\n%s%s", file, err, jsonErr, stdout, stderr)
		}
		for _, c := range out.Changes {
			if c.Outcome != want {
				u.t.Errorf("%s: %s %s: %s, want %s", filepath.Base(file), c.Kind, c.Name, c.Outcome, want)
			}
		}
		u.t.Logf("%s: %d documents %s", filepath.Base(file), len(out.Changes), want)
	}
}

// serve starts a hub until the test ends, and returns its URL.
func (u *user) serve() string {
	u.t.Helper()
	cmd := exec.Command(u.exe, "serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(u.home, "hub"), "--json")
	cmd.Dir, cmd.Env, cmd.Stderr = u.home, u.env, os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	ctx, cancel := context.WithTimeout(u.t.Context(), limit)
	defer cancel()
	defer context.AfterFunc(ctx, func() { stdout.Close() })()
	var started struct{ URL string }
	if err := json.NewDecoder(stdout).Decode(&started); err != nil {
		u.t.Fatalf("start the hub: %v", err)
	}
	return started.URL
}
