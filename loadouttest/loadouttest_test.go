package loadouttest_test

import (
	"context"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/loadouttest"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

const tides = "---\nname: tides\ndescription: Reads tide tables.\ndisable-model-invocation: true\n---\nRead the table.\n"

var tree = fstest.MapFS{"tides/SKILL.md": {Data: []byte(tides)}}

func TestPolicyStore(t *testing.T) {
	loadouttest.PolicyStore(t, func(*testing.T) policy.Store { return policy.NewMemoryStore() })
}

func TestSessionLog(t *testing.T) {
	loadouttest.SessionLog(t, func(*testing.T) session.Log { return &session.MemoryLog{} })
}

func TestSource(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, tree); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "tides.zip")
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	sub, err := fs.Sub(tree, "tides")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := skill.WriteZIP(f, sub, "tides"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for name, src := range map[string]catalog.Source{
		"fs":      catalog.NewFS("mine", catalog.User, tree),
		"dir":     catalog.NewDir("mine", catalog.User, dir, nil),
		"archive": catalog.NewArchive("mine", catalog.User, archive),
		"custom":  table{},
	} {
		t.Run(name, func(t *testing.T) { loadouttest.Source(t, src) })
	}
}

func TestModel(t *testing.T) {
	loadouttest.Model(t, demo.New(nil))
}

// table is a source that makes its entries with catalog.EntryOf.
type table struct{}

func (table) Origin() string       { return "table" }
func (table) Scope() catalog.Scope { return catalog.Group }

func (s table) List(context.Context) (catalog.Listing, error) {
	parsed, _ := skill.ParseBytes([]byte(tides), skill.FileName, "tides")
	return catalog.Listing{Entries: []*catalog.Entry{catalog.EntryOf(s, parsed, "tides")}}, nil
}

func (table) Open(_ context.Context, e *catalog.Entry) (*skill.Bundle, error) {
	if e.Dir != "tides" {
		return nil, fs.ErrNotExist
	}
	return skill.NewBundle(fstest.MapFS{skill.FileName: {Data: []byte(tides)}}, e.Dir, nil), nil
}

// incomplete copies too few facts into its entries.
type incomplete struct{ table }

func (s incomplete) List(context.Context) (catalog.Listing, error) {
	return catalog.Listing{Entries: []*catalog.Entry{{Name: "tides", Description: "Reads tide tables.", Origin: s.Origin(), Scope: s.Scope(), Dir: "tides", Path: "tides"}}}, nil
}

// unlabeled has a label that no catalog accepts.
type unlabeled struct{ table }

func (unlabeled) Origin() string { return "A table" }

// forgetful returns its own slice.
type forgetful struct {
	table
	entries []*catalog.Entry
}

func (s *forgetful) List(ctx context.Context) (catalog.Listing, error) {
	if s.entries == nil {
		l, err := s.table.List(ctx)
		s.entries = l.Entries
		return l, err
	}
	return catalog.Listing{Entries: s.entries}, nil
}

// uncertain returns other errors for missing skills.
type uncertain struct{ table }

func (s uncertain) Open(ctx context.Context, e *catalog.Entry) (*skill.Bundle, error) {
	if e.Dir != "tides" {
		return nil, fs.ErrInvalid
	}
	return s.table.Open(ctx, e)
}

// scripted is a model that yields the same events for every request.
type scripted []llm.Event

func (scripted) Name() string { return "test:scripted" }

func (m scripted) Stream(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if ctx.Err() != nil {
			yield(nil, context.Cause(ctx))
			return
		}
		for _, e := range m {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// deaf ignores the end of its context.
type deaf struct{ scripted }

func (m deaf) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
	return m.scripted.Stream(context.Background(), nil)
}

func answer(text string) llm.Done {
	return llm.Done{Answer: llm.Answer{Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text(text)}}, Stop: llm.StopEnd}}
}

// lenient finds the grants of all principals and sessions.
type lenient struct{ policy.Store }

func (s lenient) Find(ctx context.Context, _ policy.Principal, subject policy.Digest, _ string) (*policy.Grant, error) {
	grants, _, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range grants {
		if g.Subject == subject {
			return &g, nil
		}
	}
	return nil, policy.ErrNotGranted
}

var faulty = map[string]struct {
	run  func(*testing.T)
	want string
}{
	"facts":    {func(t *testing.T) { loadouttest.Source(t, incomplete{}) }, "DisableModelInvocation is false"},
	"change":   {func(t *testing.T) { loadouttest.Source(t, incomplete{}) }, "changes the catalog"},
	"label":    {func(t *testing.T) { loadouttest.Source(t, unlabeled{}) }, "invalid skill source label"},
	"slice":    {func(t *testing.T) { loadouttest.Source(t, &forgetful{}) }, "a slice that it returned before"},
	"missing":  {func(t *testing.T) { loadouttest.Source(t, uncertain{}) }, "wraps fs.ErrNotExist"},
	"no end":   {func(t *testing.T) { loadouttest.Model(t, scripted{llm.TextDelta("a")}) }, "without Done"},
	"no delta": {func(t *testing.T) { loadouttest.Model(t, scripted{answer("a")}) }, "but streamed"},
	"late": {func(t *testing.T) {
		loadouttest.Model(t, scripted{llm.TextDelta("a"), answer("a"), llm.TextDelta("b")})
	}, "after Done"},
	"deaf": {func(t *testing.T) { loadouttest.Model(t, deaf{scripted{llm.TextDelta("a"), answer("a")}}) }, "after the context ended"},
	"lenient": {func(t *testing.T) {
		loadouttest.PolicyStore(t, func(*testing.T) policy.Store { return lenient{policy.NewMemoryStore()} })
	}, `in session "s2", want`},
}

const faultyVariable = "LOADOUTTEST_FAULTY"

// The kits fail for implementations that break a rule. Each runs in its
// own process, because a test cannot undo a failure.
func TestFaultyImplementations(t *testing.T) {
	if name := os.Getenv(faultyVariable); name != "" {
		faulty[name].run(t)
		return
	}
	for name, tt := range faulty {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFaultyImplementations$")
			cmd.Env = append(os.Environ(), faultyVariable+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), tt.want) {
				t.Errorf("exit %v, want a failure that mentions %q:\n%s", err, tt.want, out)
			}
		})
	}
}
