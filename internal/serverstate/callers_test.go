package serverstate_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/serverstate"
)

// publish publishes the states of this process until the test ends, and returns
// what is in its file.
func publish(t *testing.T, dir string, o serverstate.Options) map[string]any {
	t.Helper()
	written := make(chan struct{}, 1)
	snapshot := o.Snapshot
	o.Snapshot = func() (string, []serverstate.Server) {
		select {
		case written <- struct{}{}:
		default:
		}
		if snapshot == nil {
			return "", nil
		}
		return snapshot()
	}
	p := serverstate.Publish(dir, o)
	t.Cleanup(p.Close)
	var m map[string]any
	for {
		b, err := os.ReadFile(fileOf(dir, os.Getpid()))
		if err == nil && json.Unmarshal(b, &m) == nil {
			return m
		}
		<-written // the file follows
		p.Update()
	}
}

// The callers that still run are listed. Programs before this one know only the first.
func TestCallers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "running")
	gone, in := begin(t, dir)
	in.Close()
	gone.Wait()
	m := publish(t, dir, serverstate.Options{Callers: []int{os.Getppid(), gone.Process.Pid, os.Getpid()}})
	if parent, _ := m["parent"].(float64); int(parent) != os.Getppid() || m["parent_started"] == "" {
		t.Errorf("the first caller is %v", m)
	}
	if m["servers"] == nil {
		t.Errorf("no servers are written as null: %v", m)
	}
	if all := list(t, dir); len(all) != 1 || !slices.Equal(all[0].Callers, []int{os.Getppid(), os.Getpid()}) {
		t.Errorf("callers are %+v", all)
	}
	// A file of an earlier program.
	delete(m, "callers")
	write := func() {
		t.Helper()
		b, err := json.Marshal(m)
		if err == nil {
			err = os.WriteFile(fileOf(dir, os.Getpid()), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write()
	if all := list(t, dir); len(all) != 1 || !slices.Equal(all[0].Callers, []int{os.Getppid()}) {
		t.Errorf("callers of an earlier program are %+v", all)
	}
	m["parent_started"] = "1" // the number was used again
	write()
	if all := list(t, dir); len(all) != 1 || len(all[0].Callers) > 0 {
		t.Errorf("callers that ended are %+v", all)
	}
	delete(m, "parent")
	write()
	if all := list(t, dir); len(all) != 1 || len(all[0].Callers) > 0 {
		t.Errorf("without callers there are %+v", all)
	}
}

// Processes are listed by their start, whatever their numbers are.
func TestListIsSorted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "running")
	var want []int
	for range 3 {
		c, _ := begin(t, dir)
		want = append(want, c.Process.Pid)
	}
	slices.Sort(want)
	for i, pid := range want { // the highest number is the oldest
		b, err := os.ReadFile(fileOf(dir, pid))
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		m["since"] = time.Date(2026, 1, 10-i, 0, 0, 0, 0, time.UTC)
		if b, err = json.Marshal(m); err == nil {
			err = os.WriteFile(fileOf(dir, pid), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Reverse(want)
	if got := pids(list(t, dir)); !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

// Temporary files of killed processes are removed when they are old, and replaced by a
// process with the same number.
func TestTemporaryFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "running")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, strconv.Itoa(os.Getpid())+".tmp")
	old, fresh := filepath.Join(dir, "1073741823.tmp"), filepath.Join(dir, "1073741822.tmp")
	for _, p := range []string{own, old, fresh} {
		if err := os.WriteFile(p, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	then := time.Now().Add(-48 * time.Hour)
	for _, p := range []string{own, old} {
		if err := os.Chtimes(p, then, then); err != nil {
			t.Fatal(err)
		}
	}
	list(t, dir)
	for p, stays := range map[string]bool{own: true, old: false, fresh: true} {
		if _, err := os.Stat(p); (err == nil) != stays {
			t.Errorf("%s: %v, want it to stay: %t", filepath.Base(p), err, stays)
		}
	}
	publish(t, dir, serverstate.Options{})
	if _, err := os.Stat(own); err == nil {
		t.Error("the temporary file is left")
	}
}

// A failure is logged once, and not again until a success.
func TestFailureIsLoggedOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "running")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := serverstate.List(file); err == nil {
		t.Error("a file is listed")
	}
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := serverstate.Publish(file, serverstate.Options{Snapshot: (&states{}).look, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		time.Sleep(5 * serverstate.DefaultMaxInterval)
		p.Close()
		if n := strings.Count(log.String(), "could not publish server states"); n != 1 {
			t.Errorf("logged %d times: %s", n, log.String())
		}
	})
	if fi, err := os.Stat(file); err != nil || fi.IsDir() {
		t.Errorf("the file was replaced: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "running")
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := serverstate.Publish(dir, serverstate.Options{Snapshot: (&states{}).look, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		time.Sleep(5 * serverstate.DefaultMaxInterval)
		p.Close()
		if log.Len() > 0 {
			t.Errorf("a success is logged: %s", log.String())
		}
	})
}
