package serverstate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/internal/serverstate"
)

// childVariable contains the directory in which the test binary publishes.
const childVariable = "LOADOUT_TEST_RUNNING"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		child(dir)
	}
	goleak.VerifyTestMain(m)
}

// child publishes until its input ends.
func child(dir string) {
	looked := make(chan struct{}, 1)
	p := serverstate.Publish(dir, serverstate.Options{MaxInterval: time.Hour, Snapshot: func() (string, []serverstate.Server) { // tests replace the file
		select {
		case looked <- struct{}{}:
		default:
		}
		return "child", []serverstate.Server{{Name: "notes", State: "READY", Tools: 2}}
	}})
	<-looked
	for _, err := os.Stat(fileOf(dir, os.Getpid())); err != nil; _, err = os.Stat(fileOf(dir, os.Getpid())) {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("published")
	io.Copy(io.Discard, os.Stdin)
	p.Close()
	os.Exit(0)
}

func fileOf(dir string, pid int) string { return filepath.Join(dir, strconv.Itoa(pid)+".json") }

// begin starts a child that has published when it returns.
func begin(t *testing.T, dir string) (*exec.Cmd, io.WriteCloser) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childVariable+"="+dir)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	if _, err := io.ReadFull(out, make([]byte, len("published"))); err != nil {
		t.Fatal(err)
	}
	return c, in
}

func list(t *testing.T, dir string) []serverstate.Process {
	t.Helper()
	all, err := serverstate.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func pids(all []serverstate.Process) []int {
	var out []int
	for _, p := range all {
		out = append(out, p.PID)
	}
	return out
}

// Each process has a file, which it removes at its end. Readers remove the files of
// killed processes.
func TestProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "running")
	if all := list(t, dir); len(all) > 0 {
		t.Errorf("without a directory there are %v", all)
	}
	one, in := begin(t, dir)
	two, _ := begin(t, dir)
	all := list(t, dir)
	if got, want := pids(all), []int{one.Process.Pid, two.Process.Pid}; !slices.Equal(got, want) {
		t.Fatalf("there are %v, want %v", got, want)
	}
	if diff := cmp.Diff([]serverstate.Server{{Name: "notes", State: "READY", Tools: 2}}, all[0].Servers); diff != "" || all[0].Client != "child" || all[0].Since.IsZero() {
		t.Errorf("%+v %s", all[0], diff)
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]os.FileMode{dir: 0o700, fileOf(dir, one.Process.Pid): 0o600} {
			if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != want {
				t.Errorf("%s has the mode %v, want %v", path, fi.Mode(), want)
			}
		}
	}
	in.Close()
	if err := one.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(fileOf(dir, one.Process.Pid)); err == nil {
		t.Error("the file of a process that ended is there")
	}
	two.Process.Kill()
	two.Wait()
	if _, err := os.Stat(fileOf(dir, two.Process.Pid)); err != nil {
		t.Error("a process that was killed has removed its file")
	}
	if all := list(t, dir); len(all) > 0 {
		t.Errorf("of those that are gone there are %v", pids(all))
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// A process that reuses the PID did not write the file, and an incomplete file is
// ignored.
func TestOrphanedFiles(t *testing.T) {
	dir := t.TempDir()
	c, _ := begin(t, dir)
	path := fileOf(dir, c.Process.Pid)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := func(change func(m map[string]any)) []byte {
		var m map[string]any
		if err := json.Unmarshal(good, &m); err != nil {
			t.Fatal(err)
		}
		change(m)
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	old := time.Now().Add(-48 * time.Hour)
	for name, tt := range map[string]struct {
		data          []byte
		old           bool
		listed, stays bool
	}{
		"as it was":                 {good, false, true, true},
		"reused number":             {edited(func(m map[string]any) { m["started"] = "1" }), false, false, runtime.GOOS == "freebsd"},
		"another machine":           {edited(func(m map[string]any) { m["machine"] = "other" }), false, false, true},
		"another machine, old":      {edited(func(m map[string]any) { m["machine"] = "other" }), true, false, false},
		"number of another":         {edited(func(m map[string]any) { m["pid"] = os.Getpid() }), false, false, true},
		"torn":                      {good[:len(good)/2], false, false, true},
		"empty":                     {nil, false, false, true},
		"of a version to come":      {edited(func(m map[string]any) { m["version"] = 2 }), false, false, true},
		"not an object":             {[]byte("[]"), false, false, true},
		"longer than a file may be": {append(slices.Clone(good), make([]byte, 5<<20)...), false, false, true},
	} {
		if err := os.WriteFile(path, tt.data, 0o600); err != nil {
			t.Fatal(err)
		}
		if tt.old {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
		if all := list(t, dir); len(all) > 0 != tt.listed {
			t.Errorf("%s: there are %v", name, pids(all))
		}
		if _, err := os.Stat(path); (err == nil) != tt.stays {
			t.Errorf("%s: the file: %v", name, err)
		}
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil { // the table ends with any of its cases
		t.Fatal(err)
	}
	for _, name := range []string{"notes.txt", "0.json", "-1.json", "1.json.json", "x.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(fileOf(dir, 1), 0o700); err != nil {
		t.Fatal(err)
	}
	if all := list(t, dir); len(all) > 0 {
		t.Errorf("of foreign files there are %v", pids(all))
	}
	for _, name := range []string{"notes.txt", "x.json", "1.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// What another user may have written says nothing.
func TestForeignFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are of Unix")
	}
	dir := filepath.Join(t.TempDir(), "running")
	c, _ := begin(t, dir)
	path := fileOf(dir, c.Process.Pid)
	chmod := func(path string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, mode := range []os.FileMode{0o666, 0o620, 0o604} {
		chmod(path, mode)
		if all := list(t, dir); len(all) > 0 {
			t.Errorf("of a file of mode %o there are %v", mode, pids(all))
		}
	}
	chmod(path, 0o600)
	if os.Geteuid() == 0 {
		const nobody = 65534
		if err := os.Chown(path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		if all := list(t, dir); len(all) > 0 {
			t.Errorf("of a file of another user there are %v", pids(all))
		}
		if err := os.Chown(path, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	chmod(dir, 0o777)
	all, err := serverstate.List(dir)
	if unsafe, ok := errors.AsType[*privatefile.UnsafeError](err); !ok || unsafe.Path != dir || len(all) > 0 {
		t.Errorf("of a directory that others can write there are %v, %v", pids(all), err)
	}
	chmod(dir, 0o700)
	if all := list(t, dir); len(all) != 1 {
		t.Errorf("of the user's own there are %v", pids(all))
	}
}

// A number that no server has is not shown as it stands.
func TestNumberLimits(t *testing.T) {
	dir := t.TempDir()
	c, _ := begin(t, dir)
	path := fileOf(dir, c.Process.Pid)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]serverstate.Server{
		`{"tools": 3, "latency_ms": 1.5}`:               {Tools: 3, LatencyMS: 1.5},
		`{"tools": 9000000000000, "latency_ms": 1e308}`: {Tools: 1_000_000, LatencyMS: 86_400_000},
		`{"tools": -1, "latency_ms": -1e308}`:           {},
	} {
		var m map[string]any
		if err := json.Unmarshal(good, &m); err != nil {
			t.Fatal(err)
		}
		m["servers"] = []any{json.RawMessage(in)}
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		all := list(t, dir)
		if len(all) != 1 || len(all[0].Servers) != 1 || all[0].Servers[0] != want {
			t.Errorf("%s is %+v", in, all)
		}
	}
}

// states is the input of a publisher.
type states struct {
	mu    sync.Mutex
	state string
	looks int
}

func (s *states) set(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
}

func (s *states) look() (string, []serverstate.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	return "", []serverstate.Server{{Name: "a", State: s.state}}
}

// Changes are written at most once per interval. A change without notification is
// written at the next interval, and a removed file is written again.
func TestPublishInterval(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "running")
	synctest.Test(t, func(t *testing.T) {
		s := &states{state: "INIT"}
		p := serverstate.Publish(dir, serverstate.Options{Snapshot: s.look})
		defer p.Close()
		state := func() string {
			t.Helper()
			all := list(t, dir)
			if len(all) != 1 {
				t.Fatalf("there are %d processes", len(all))
			}
			return all[0].Servers[0].State
		}
		synctest.Wait()
		if got := state(); got != "INIT" {
			t.Errorf("at first it is %s", got)
		}
		for range 1000 {
			s.set("READY")
			p.Update()
		}
		synctest.Wait()
		if got := state(); got != "INIT" {
			t.Errorf("within the pace it is %s", got)
		}
		time.Sleep(serverstate.DefaultMinInterval)
		synctest.Wait()
		if got := state(); got != "READY" || s.looks != 2 {
			t.Errorf("at the pace it is %s, after %d looks", got, s.looks)
		}
		s.set("DEAD")
		time.Sleep(serverstate.DefaultMaxInterval)
		synctest.Wait()
		if got := state(); got != "DEAD" {
			t.Errorf("at the next look it is %s", got)
		}
		if err := os.Remove(fileOf(dir, os.Getpid())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(serverstate.DefaultMaxInterval)
		synctest.Wait()
		if got := state(); got != "DEAD" {
			t.Errorf("after it was removed it is %s", got)
		}
		p.Close()
		if all := list(t, dir); len(all) > 0 {
			t.Errorf("after the end there are %v", pids(all))
		}
	})
}

// An unwritable directory is harmless, and publishing continues once it is writable.
func TestNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "running")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := serverstate.Publish(file, serverstate.Options{Snapshot: (&states{}).look})
		defer p.Close()
		synctest.Wait()
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * serverstate.DefaultMaxInterval)
		synctest.Wait()
		if all := list(t, file); len(all) != 1 {
			t.Errorf("there are %v", pids(all))
		}
	})
}
