package policy_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/audit"
	"github.com/loadout-dev/loadout/loadouttest"
	"github.com/loadout-dev/loadout/policy"
)

func TestFiles(t *testing.T) {
	loadouttest.PolicyStore(t, func(t *testing.T) policy.Store { return policy.NewFileStore(filepath.Join(t.TempDir(), "a", "grants")) })
}

func TestMemory(t *testing.T) {
	loadouttest.PolicyStore(t, func(*testing.T) policy.Store { return policy.NewMemoryStore() })
}

// kept returns a store with a grant for the digest a, its directory, and the
// file of the grant.
func kept(t *testing.T) (s policy.Store, dir, file string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "grants")
	s = policy.NewFileStore(dir)
	g, err := s.Put(t.Context(), newGrant(digestOf("a")))
	if err != nil {
		t.Fatal(err)
	}
	return s, dir, filepath.Join(dir, g.ID+".json")
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestReopenedStoreFindsGrants(t *testing.T) {
	_, dir, _ := kept(t)
	if _, err := policy.NewFileStore(dir).Find(t.Context(), robot, digestOf("a"), ""); err != nil {
		t.Error(err)
	}
}

func TestDamagedGrantGrantsNothing(t *testing.T) {
	for name, spoil := range map[string]func(text string) string{
		"empty":             func(string) string { return "" },
		"half":              func(s string) string { return s[:len(s)/2] },
		"not JSON":          func(s string) string { return "grant: yes" },
		"another subject":   func(s string) string { return strings.ReplaceAll(s, "aaaa", "bbbb") },
		"another principal": func(s string) string { return strings.Replace(s, "robot", "mule", 1) },
		"a newer version":   func(s string) string { return strings.Replace(s, `"version": 1`, `"version": 4`, 1) },
		"another version":   func(s string) string { return strings.Replace(s, `"version": 1`, `"version": 2`, 1) },
		"a field of version 2": func(s string) string {
			return strings.Replace(s, `"version": 1,`, `"version": 1, "presence": "terminal",`, 1)
		},
		"no version": func(s string) string { return strings.Replace(s, `"version": 1,`, "", 1) },
		"an unknown field": func(s string) string {
			return strings.Replace(s, `"version": 1,`, `"version": 1, "only_on": "monday",`, 1)
		},
		"a field twice":         func(s string) string { return strings.Replace(s, `"version": 1,`, `"version": 1, "name": "x",`, 1) },
		"a field in capitals":   func(s string) string { return strings.Replace(s, `"name"`, `"NAME"`, 1) },
		"two documents":         func(s string) string { return s + s },
		"a host that is none":   func(s string) string { return strings.Replace(s, `"run": true`, `"run": true, "network": ["a/b"]`, 1) },
		"a host spelled anew":   func(s string) string { return strings.Replace(s, `"run": true`, `"run": true, "network": ["A.B"]`, 1) },
		"by an agent":           func(s string) string { return strings.Replace(s, `"kind": "person"`, `"kind": "agent"`, 1) },
		"an array":              func(s string) string { return "[" + s + "]" },
		"null":                  func(string) string { return "null" },
		"as large as can be":    func(s string) string { return s + strings.Repeat(" ", policy.MaxGrantBytes) },
		"deeper than can be":    func(string) string { return strings.Repeat("[", 20_000) },
		"with an empty network": func(s string) string { return strings.Replace(s, `"run": true`, `"run": true, "network": []`, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			s, _, file := kept(t)
			other, err := s.Put(t.Context(), newGrant(digestOf("c")))
			try(t, err)
			text, err := os.ReadFile(file)
			try(t, err)
			bad := spoil(string(text))
			if bad == string(text) {
				t.Fatal("the file was not spoiled")
			}
			try(t, os.WriteFile(file, []byte(bad), 0o600))
			for _, subject := range []string{"a", "b"} {
				if g, err := s.Find(t.Context(), robot, digestOf(subject), ""); err == nil {
					t.Errorf("it grants %+v", g)
				}
			}
			if _, err := s.Find(t.Context(), robot, other.Subject, ""); err != nil {
				t.Errorf("the other grant: %v", err)
			}
			grants, problems, err := s.List(t.Context())
			if err != nil || len(grants) != 1 || grants[0].ID != other.ID || len(problems) != 1 || problems[0].Where != file {
				t.Errorf("listed %v, %v, %v; want the other, and one problem of %s", grants, problems, err, file)
			}
			id := strings.TrimSuffix(filepath.Base(file), ".json")
			if revoked, err := s.Revoke(t.Context(), id); err != nil || len(revoked) != 1 || revoked[0].ID != id {
				t.Errorf("revoked %v, %v; want the damaged one", revoked, err)
			}
			if _, problems, _ := s.List(t.Context()); len(problems) > 0 {
				t.Errorf("after it was revoked: %v", problems)
			}
		})
	}
}

func TestWhitespaceIsNoDamage(t *testing.T) {
	s, _, file := kept(t)
	text, err := os.ReadFile(file)
	try(t, err)
	try(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "\n", "\r\n\t")), 0o600))
	if _, err := s.Find(t.Context(), robot, digestOf("a"), ""); err != nil {
		t.Error(err)
	}
}

func TestGrantUnderWrongFileNameIsIgnored(t *testing.T) {
	s, dir, file := kept(t)
	other, err := s.Put(t.Context(), newGrant(digestOf("b")))
	try(t, err)
	try(t, os.Rename(file, filepath.Join(dir, other.ID+".json")))
	if g, err := s.Find(t.Context(), robot, other.Subject, ""); err == nil || errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("found %v, %v; want an error that says what is wrong", g, err)
	}
}

func TestLeftoversOfKilledProcessAreRemoved(t *testing.T) {
	s, dir, _ := kept(t)
	left := filepath.Join(dir, ".new-LEFT")
	try(t, os.WriteFile(left, []byte("{"), 0o600))
	if grants, problems, err := s.List(t.Context()); err != nil || len(grants) != 1 || len(problems) > 0 {
		t.Errorf("listed %v, %v, %v; want the grant alone", grants, problems, err)
	}
	_, err := s.Put(t.Context(), newGrant(digestOf("b")))
	try(t, err)
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

func TestMissingDirectoryHasNoGrants(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	s := policy.NewFileStore(dir)
	if grants, problems, err := s.List(t.Context()); err != nil || len(grants)+len(problems) > 0 {
		t.Errorf("listed %v, %v, %v", grants, problems, err)
	}
	if _, err := s.Find(t.Context(), robot, digestOf("a"), ""); !errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("found: %v", err)
	}
	if _, err := s.Revoke(t.Context(), "x"); !errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("revoked: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("looking made the directory: %v", err)
	}
}

func TestEndedContextReadsAndChangesNothing(t *testing.T) {
	s, _, _ := kept(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Find(ctx, robot, digestOf("a"), ""); !errors.Is(err, context.Canceled) {
		t.Errorf("find: %v", err)
	}
	if _, _, err := s.List(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("list: %v", err)
	}
}

// Each of several processes puts its own grants and a shared one and deletes some of its
// own, while this one reads.
func TestSeveralProcesses(t *testing.T) {
	const processes, each = 3, 30
	dir := filepath.Join(t.TempDir(), "grants")
	s := policy.NewFileStore(dir)
	log := filepath.Join(dir, "audit.jsonl")
	var done []<-chan error
	for i := range processes {
		done = append(done, start(t, fmt.Sprintf("%s\n%d\n%d\n", dir, i, each)))
	}
	for running := slices.Clone(done); len(running) > 0; {
		if _, problems, err := s.List(t.Context()); err != nil || len(problems) > 0 {
			t.Errorf("while others write: %v %v", problems, err)
		}
		running = slices.DeleteFunc(running, func(c <-chan error) bool {
			select {
			case err := <-c:
				if err != nil {
					t.Error(err)
				}
				return true
			default:
				return false
			}
		})
	}
	grants, problems, err := s.List(t.Context())
	if want := processes*each/2 + 1; err != nil || len(problems) > 0 || len(grants) != want {
		t.Errorf("%d grants are left (%v, %v), want %d", len(grants), problems, err, want)
	}
	records, problems, err := audit.New(log).Read(t.Context(), 10_000)
	if err != nil || len(problems) > 0 || len(records) != processes*each {
		t.Errorf("%d records (%v, %v), want %d", len(records), problems, err, processes*each)
	}
	next := map[string]int{}
	for i, r := range records {
		if i > 0 && r.Time.Before(records[i-1].Time) {
			t.Errorf("record %d is older than the one before", i)
		}
		if want := fmt.Sprint(next[r.Name]); r.Reason != want {
			t.Fatalf("process %s has the record %s, want %s", r.Name, r.Reason, want)
		}
		next[r.Name]++
	}
}

const workVariable = "LOADOUT_POLICY_TEST"

// start runs this program again with a part of the work.
func start(t *testing.T, work string) <-chan error {
	t.Helper()
	exe, err := os.Executable()
	try(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), workVariable+"=1")
	cmd.Stdin = strings.NewReader(work)
	done := make(chan error, 1)
	go func() {
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("a process: %w\n%s", err, out)
		}
		done <- err
	}()
	return done
}

// child does the work of a child process and returns its exit code.
func child(string) int {
	in := bufio.NewScanner(os.Stdin)
	var lines []string
	for in.Scan() {
		lines = append(lines, in.Text())
	}
	var me, each int
	fmt.Sscan(lines[1]+" "+lines[2], &me, &each)
	if err := hammer(context.Background(), lines[0], me, each); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func hammer(ctx context.Context, dir string, me, each int) error {
	s, log := policy.NewFileStore(dir), audit.New(filepath.Join(dir, "audit.jsonl"))
	for i := range each {
		g, err := s.Put(ctx, newGrant(digestOf(fmt.Sprintf("%04d", 1000*(me+1)+i))))
		if err != nil {
			return err
		}
		if _, err := s.Put(ctx, newGrant(digestOf("f"))); err != nil {
			return err
		}
		if _, err := s.Find(ctx, g.Principal, digestOf("f"), ""); err != nil {
			return fmt.Errorf("the grant that all give: %w", err)
		}
		if i%2 == 1 {
			if _, err := s.Revoke(ctx, g.ID); err != nil {
				return err
			}
		}
		err = log.Append(ctx, policy.Record{Principal: g.Principal, Action: "run", Name: fmt.Sprint(me), Decision: policy.Allow, Reason: fmt.Sprint(i)})
		if err != nil {
			return err
		}
	}
	return nil
}

// Programs that do not know of calls ignore grants of them, and read the others as
// they were.
func TestOnlyCallGrantsHaveACall(t *testing.T) {
	dir := t.TempDir()
	s := policy.NewFileStore(dir)
	callGrant := newGrant(digestOf("b"))
	callGrant.Permissions = policy.Permissions{Call: true}
	for _, tt := range []struct {
		grant policy.Grant
		want  bool
	}{{newGrant(digestOf("a")), false}, {callGrant, true}} {
		g, err := s.Put(t.Context(), tt.grant)
		try(t, err)
		text, err := os.ReadFile(filepath.Join(dir, g.ID+".json"))
		try(t, err)
		if got := bytes.Contains(text, []byte(`"call"`)); got != tt.want {
			t.Errorf("it says call: %t\n%s", got, text)
		}
	}
	call, run := policy.Permissions{Call: true}, policy.Permissions{Run: true}
	if call.Covers(run) || run.Covers(call) || call.Intersect(run).Call {
		t.Error("running and calling are one")
	}
}
