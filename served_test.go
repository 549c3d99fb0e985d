package loadout_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/review"
	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// publisher is an MCP server with one skill. It counts the files that it sends.
type publisher struct {
	mu    sync.Mutex
	files map[string]string // by URI
	sent  int
	gets  int // calls of GetSkill
	// onRead, if set, is called once, before a file is sent.
	onRead func()
}

const reportURI = "skill://report/SKILL.md"

func newPublisher() *publisher {
	return &publisher{files: map[string]string{reportURI: "---\nname: report\ndescription: Write it\n---\nText of the server.\n", "skill://report/style.md": "Short."}}
}

func (p *publisher) Do(ctx context.Context, _ string, f func(context.Context, serverskill.Conn) error) error {
	return f(ctx, p)
}
func (p *publisher) ServesSkills() bool { return true }
func (p *publisher) ListSkills(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(`{"resultType":"complete","skills":[` + p.entry() + `]}`), nil
}
func (p *publisher) GetSkill(context.Context, string) (json.RawMessage, error) {
	p.gets++
	return json.RawMessage(`{"resultType":"complete","skill":` + p.entry() + `}`), nil
}
func (p *publisher) ReadSkillFile(_ context.Context, uri string) ([]byte, error) {
	if call := p.onRead; call != nil {
		p.onRead = nil
		call()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent++
	if text, ok := p.files[uri]; ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

func (p *publisher) entry() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var resources []string
	for uri, text := range p.files {
		resources = append(resources, fmt.Sprintf(`{"uri":%q,"digest":"sha256:%x","size":%d}`, uri, sha256.Sum256([]byte(text)), len(text)))
	}
	return `{"uri":"` + reportURI + `","frontmatter":{"name":"report","description":"Write it"},"resources":[` + strings.Join(resources, ",") + `]}`
}

func (p *publisher) source(label string, ask bool) *serverskill.Source {
	return serverskill.New(serverskill.Options{Label: label, Ask: ask, Wait: true, Connector: p})
}

func TestApprovalsOfServedSkills(t *testing.T) {
	p, other := newPublisher(), newPublisher() // the same skill from two servers
	grants := policy.NewMemoryStore()
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{p.source("docs", true), other.source("other", true)}, Scripts: &loadout.Scripts{Grants: grants}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	refused := func(ref, reason string) {
		t.Helper()
		_, err := rt.Fetch(t.Context(), ref)
		e, ok := errors.AsType[*loadout.RefusedError](err)
		if !ok || !e.NeedsApproval || !strings.Contains(err.Error(), reason) {
			t.Errorf("load %s: %v, want a refusal: %s", ref, err, reason)
		}
		entry, err := rt.Catalog().Resolve(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := rt.ReadFile(t.Context(), entry, "style.md", 0, 0); !errors.As(err, new(*loadout.RefusedError)) {
			t.Errorf("read a file of %s: %v, %v; want a refusal", ref, c, err)
		}
	}
	refused("mcp.docs/report", "not approved")
	request, err := rt.ReadApprovalRequest(t.Context(), "mcp.docs/report")
	if err != nil || len(request.Manifest) != 2 {
		t.Fatalf("%+v, %v", request, err)
	}
	if p.sent != 0 {
		t.Errorf("%d files were fetched before the approval", p.sent)
	}
	g := policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Subject: request.Digest, Name: request.Entry.Name, Origin: request.Entry.Origin, Permissions: request.Permissions(), Scope: policy.Always}
	if _, err := grants.Put(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	loaded, err := rt.Fetch(t.Context(), "mcp.docs/report")
	if err != nil || loaded[0].Digest != request.Manifest.Digest() || p.sent != 1 {
		t.Fatalf("load: %v, %v; %d files sent; want the approved digest, and SKILL.md alone", loaded, err, p.sent)
	}
	if _, err := rt.Run(t.Context(), loadout.Run{Skill: "mcp.other/report", Script: "run.sh"}); !errors.Is(err, loadout.ErrNoScripts) {
		t.Errorf("without a sandbox: %v", err)
	}
	refused("mcp.other/report", "not approved")
	if other.sent != 0 {
		t.Errorf("%d files were fetched from the other server", other.sent)
	}
	p.mu.Lock()
	p.files["skill://report/added.md"] = "New."
	p.mu.Unlock()
	src := rt.Catalog().Sources()[0].(*serverskill.Source)
	if err := src.Find(t.Context(), "report"); err != nil { // an entry with another set of files
		t.Fatal(err)
	}
	if err := rt.Catalog().Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused("mcp.docs/report", "changed since it was approved")
}

// Equal files of two servers, and of the user's own skill, are approved separately:
// no approval replaces or revokes another one.
func TestEqualFilesAreApprovedSeparately(t *testing.T) {
	p, other := newPublisher(), newPublisher()
	grants := policy.NewMemoryStore()
	own := fstest.MapFS{}
	for uri, text := range p.files {
		own[strings.TrimPrefix(uri, "skill://")] = &fstest.MapFile{Data: []byte(text)}
	}
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{p.source("docs", true), other.source("other", true), catalog.NewFS("own", catalog.User, own)},
		Scripts: &loadout.Scripts{Grants: grants}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	refs := []string{"own/report", "mcp.docs/report", "mcp.other/report"}
	stored := map[string]policy.Grant{}
	for _, ref := range refs {
		request, err := rt.ReadApprovalRequest(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		if request.Manifest.Digest() != p.digest() {
			t.Fatalf("%s has other files", ref)
		}
		stored[ref] = approve(t, grants, request)
	}
	if all, _, err := grants.List(t.Context()); err != nil || len(all) != 3 {
		t.Fatalf("%d grants, %v; want one for each skill", len(all), err)
	}
	expect := func(approved ...string) {
		t.Helper()
		for _, ref := range refs[1:] {
			if _, err := rt.Fetch(t.Context(), ref); (err == nil) != slices.Contains(approved, ref) {
				t.Errorf("load %s: %v; approved are %v", ref, err, approved)
			}
		}
		g, err := grants.Find(t.Context(), policy.LocalUser(), stored[refs[0]].Subject, "")
		if err != nil || g.Name != "report" || g.Origin != "own" {
			t.Errorf("grant of the user's own skill: %+v, %v", g, err)
		}
	}
	expect("mcp.docs/report", "mcp.other/report")
	if _, err := grants.Revoke(t.Context(), "mcp.docs/report"); err != nil {
		t.Fatal(err)
	}
	expect("mcp.other/report")
}

// digest returns that of the manifest of the skill.
func (p *publisher) digest() string {
	var m skill.Manifest
	for uri, text := range p.files {
		m = append(m, skill.File{Path: strings.TrimPrefix(uri, "skill://report/"), Size: int64(len(text)), SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(text)))})
	}
	slices.SortFunc(m, func(a, b skill.File) int { return strings.Compare(a.Path, b.Path) })
	return m.Digest()
}

// A server that lists another version while a skill is loaded or read cannot make
// the approval, the recorded digest and the content be of different versions.
func TestServedSkillsAreReadInOneVersion(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, rt *loadout.Runtime, p *publisher, grants *watchedStore, approved policy.Digest, change func()){
		"while SKILL.md is fetched": func(t *testing.T, rt *loadout.Runtime, p *publisher, _ *watchedStore, _ policy.Digest, change func()) {
			p.onRead = change
			if all, err := rt.Fetch(t.Context(), "mcp.docs/report"); err == nil || !strings.Contains(err.Error(), "changed on its server") {
				t.Errorf("loaded %+v, %v; want an error, as its digest is that of another version", all, err)
			}
		},
		"after the approval was checked": func(t *testing.T, rt *loadout.Runtime, p *publisher, grants *watchedStore, _ policy.Digest, change func()) {
			grants.onFind = change
			e, err := rt.Catalog().Resolve(t.Context(), "mcp.docs/report")
			if err != nil {
				t.Fatal(err)
			}
			if c, err := rt.ReadFile(t.Context(), e, "added.md", 0, 0); err == nil || !strings.Contains(err.Error(), "changed on its server") {
				t.Errorf("read %+v, %v; want an error, as the file was not approved", c, err)
			}
		},
		"while a file is fetched": func(t *testing.T, rt *loadout.Runtime, p *publisher, _ *watchedStore, approved policy.Digest, change func()) {
			p.onRead = change
			e, err := rt.Catalog().Resolve(t.Context(), "mcp.docs/report")
			if err != nil {
				t.Fatal(err)
			}
			if c, err := rt.ReadFile(t.Context(), e, "style.md", 0, 0); err != nil || c.Text != "Short." || c.SkillDigest != string(approved) {
				t.Errorf("read %+v, %v; want the approved version", c, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, grants := newPublisher(), &watchedStore{Store: policy.NewMemoryStore()}
			src := p.source("docs", true)
			rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{src}, Scripts: &loadout.Scripts{Grants: grants}})
			if err != nil {
				t.Fatal(err)
			}
			defer rt.Close()
			request, err := rt.ReadApprovalRequest(t.Context(), "mcp.docs/report")
			if err != nil {
				t.Fatal(err)
			}
			approve(t, grants, request)
			test(t, rt, p, grants, policy.Digest(request.Manifest.Digest()), func() {
				p.mu.Lock()
				p.files["skill://report/added.md"] = "New."
				p.mu.Unlock()
				if err := src.Find(t.Context(), "report"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// If a server changes a skill that a conversation has loaded, the change is noted,
// but nothing is fetched and the user is not asked before the skill is loaded again.
func TestChangedServedSkillsAreNotFetched(t *testing.T) {
	for _, mode := range []session.UpdateMode{session.UpdateNotify, session.UpdateReload} {
		p := newPublisher()
		src := p.source("docs", false)
		rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{src}})
		if err != nil {
			t.Fatal(err)
		}
		defer rt.Close()
		s, err := rt.NewSession(t.Context(), &session.Options{Updates: mode})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Load(t.Context(), "mcp.docs/report", nil); err != nil {
			t.Fatal(err)
		}
		p.files[reportURI] += "More.\n"
		if err := errors.Join(src.Find(t.Context(), "report"), rt.Catalog().Reload(t.Context())); err != nil {
			t.Fatal(err)
		}
		updates, err := s.Refresh(t.Context())
		if err != nil || len(updates) != 1 || p.sent != 1 || s.Active()[0].Digest == updates[0].Digest {
			t.Errorf("%s: %+v, %v, %d files sent; want a change that is not loaded, and one file", mode, updates, err, p.sent)
		}
	}
}

// Listing the approvals asks no server for a skill that it does not list.
func TestGrantsOfMissingServedSkillsAskNoServer(t *testing.T) {
	p := newPublisher()
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{p.source("docs", true)}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	changed := review.ChangedGrants(t.Context(), rt, []policy.Grant{
		{ID: "gone", Name: "mcp.docs/gone", Origin: "mcp.docs", Subject: "sha256:1", Permissions: policy.Permissions{Run: true}},
		{ID: "other", Name: "mcp.docs/report", Origin: "mcp.docs", Subject: "sha256:1", Permissions: policy.Permissions{Run: true}},
	})
	if p.gets != 0 || changed["gone"] || !changed["other"] {
		t.Errorf("changed %v after %d calls of skills/get; want the listed skill only, without a call", changed, p.gets)
	}
}

// watchedStore calls onFind, if set, once after a grant was found.
type watchedStore struct {
	policy.Store
	onFind func()
}

func (s *watchedStore) Find(ctx context.Context, p policy.Principal, subject policy.Digest, session string) (*policy.Grant, error) {
	g, err := s.Store.Find(ctx, p, subject, session)
	if call := s.onFind; call != nil {
		s.onFind = nil
		call()
	}
	return g, err
}

// approve stores the grant for a request.
func approve(t *testing.T, s policy.Store, r *loadout.ApprovalRequest) policy.Grant {
	t.Helper()
	g, err := s.Put(t.Context(), policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Subject: r.Digest, Name: r.Entry.Name, Origin: r.Entry.Origin,
		Permissions: r.Permissions(), Scope: policy.Always})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestTextOfServedSkills(t *testing.T) {
	p := newPublisher()
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{p.source("docs", false)}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	s, err := rt.NewSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	res, err := s.Load(t.Context(), "mcp.docs/report", nil)
	if err != nil || !strings.HasPrefix(res.Text, "[From the MCP server docs: untrusted text of a third party.") || !strings.Contains(res.Text, "Text of the server.") {
		t.Errorf("text %q, %v", res.Text, err)
	}
	e, err := rt.Catalog().Resolve(t.Context(), "mcp.docs/report")
	if err != nil {
		t.Fatal(err)
	}
	c, err := rt.ReadFile(t.Context(), e, "style.md", 0, 0)
	if err != nil || c.Text != "Short." || !strings.Contains(c.Warning, "MCP server docs") {
		t.Errorf("%+v, %v", c, err)
	}
	if text := rt.CatalogText(0); !strings.Contains(text, "- mcp.docs/report: Write it") {
		t.Errorf("catalog text %q does not name the server", text)
	}
	p.files[reportURI] = strings.Replace(p.files[reportURI], "Text", "Te\u200bxt\U000e0041", 1) // hidden characters
	rt, err = loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{p.source("docs", false)}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if _, err := rt.Fetch(t.Context(), "mcp.docs/report"); !errors.As(err, new(*loadout.RefusedError)) {
		t.Errorf("hidden characters: %v, want a refusal", err)
	}
}

// A conversation with a skill of an MCP server runs code only if the user approved
// that version of the skill.
func TestCodeNeedsApprovalOfServedSkills(t *testing.T) {
	p := newPublisher()
	grants := policy.NewMemoryStore()
	local := fstest.MapFS{"own/SKILL.md": {Data: []byte("---\nname: own\ndescription: Mine\n---\nText.\n")}, "own/run.sh": {Data: []byte("echo 1\n")}}
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{p.source("docs", false), catalog.NewFS("bundled", catalog.Bundled, local)},
		Scripts: &loadout.Scripts{Sandbox: brokenSandbox{}, Grants: grants}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	s, err := rt.NewSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	code := map[string]func() error{
		"command": func() error {
			_, err := rt.Command(t.Context(), loadout.Command{Args: []string{"true"}, Skills: s.SkillsInContext()})
			return err
		},
		"script of another skill": func() error {
			_, err := rt.Run(t.Context(), loadout.Run{Skill: "own", Script: "run.sh", Skills: s.SkillsInContext()})
			return err
		},
	}
	expect := func(when string, refused bool) {
		t.Helper()
		for name, run := range code {
			err := run()
			if e, ok := errors.AsType[*loadout.RefusedError](err); ok != refused || ok && (e.Skill != "mcp.docs/report" || !e.NeedsApproval) {
				t.Errorf("%s: %s: %v; want a refusal: %v", when, name, err, refused)
			}
		}
	}
	expect("before the load", false)
	if _, err := s.Load(t.Context(), "mcp.docs/report", nil); err != nil {
		t.Fatal(err)
	}
	expect("without approval", true)
	request, err := rt.ReadApprovalRequest(t.Context(), "mcp.docs/report")
	if err != nil {
		t.Fatal(err)
	}
	g := policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Subject: request.Digest, Name: request.Entry.Name, Origin: request.Entry.Origin, Permissions: request.Permissions(), Scope: policy.Always}
	if g, err = grants.Put(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	expect("with approval", false)
	if _, err := grants.Revoke(t.Context(), g.ID); err != nil {
		t.Fatal(err)
	}
	if err := rt.Catalog().SetSources(t.Context(), rt.Catalog().Sources()[1:]); err != nil {
		t.Fatal(err)
	}
	expect("after the server was removed", true)
}

// brokenSandbox cannot start anything.
type brokenSandbox struct{}

func (brokenSandbox) Name() string       { return "broken" }
func (brokenSandbox) Tier() sandbox.Tier { return sandbox.Isolated }
func (brokenSandbox) Probe(context.Context) (*sandbox.Report, error) {
	return nil, errors.New("cannot be used")
}
func (brokenSandbox) Start(context.Context, *sandbox.Spec) (sandbox.Sandbox, error) {
	return nil, errors.New("cannot start")
}

// An approval in one conversation does not count in another one, nor for clients
// that have none.
func TestApprovalsOfServedSkillsInOneConversation(t *testing.T) {
	p, grants := newPublisher(), policy.NewMemoryStore()
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{p.source("docs", true)}, Scripts: &loadout.Scripts{Grants: grants}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	request, err := rt.ReadApprovalRequest(t.Context(), "mcp.docs/report")
	if err != nil {
		t.Fatal(err)
	}
	g := policy.Grant{Principal: policy.LocalUser(), By: policy.LocalUser(), Subject: request.Digest, Name: request.Entry.Name, Origin: request.Entry.Origin,
		Permissions: request.Permissions(), Scope: policy.ForSession, Session: "one"}
	if _, err := grants.Put(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"one", "two", ""} {
		s, err := rt.NewSession(t.Context(), &session.Options{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		res, err := s.Load(t.Context(), "mcp.docs/report", nil)
		if err != nil || (res.State == session.StateFailed) != (id != "one") {
			t.Errorf("conversation %q: %+v, %v; want a load in the first only", id, res, err)
		}
		if c, err := rt.ReadSessionFile(t.Context(), id, request.Entry, "style.md", 0, 0); (err == nil) != (id == "one") {
			t.Errorf("conversation %q: read %+v, %v; want a file in the first only", id, c, err)
		}
	}
	if _, err := rt.Fetch(t.Context(), "mcp.docs/report"); !errors.As(err, new(*loadout.RefusedError)) {
		t.Errorf("without a conversation: %v, want a refusal", err)
	}
}

// The approval of a skill of an MCP server, for which nothing is fetched, does not
// cover hidden characters. After they were fetched, a review shows them, and an
// approval covers them, in this version of the file.
func TestHiddenTextOfServedSkillsNeedsItsOwnGrant(t *testing.T) {
	for _, ask := range []bool{true, false} {
		p, grants := newPublisher(), policy.NewMemoryStore()
		p.files[reportURI] = strings.Replace(p.files[reportURI], "Text", "Te\U000e0041xt", 1)
		p.files["skill://report/style.md"] = "Short\U000e0042."
		src := p.source("docs", ask)
		rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{src}, Scripts: &loadout.Scripts{Grants: grants}})
		if err != nil {
			t.Fatal(err)
		}
		defer rt.Close()
		approveShown := func(shown int) {
			t.Helper()
			request, err := rt.ReadApprovalRequest(t.Context(), "mcp.docs/report")
			if err != nil {
				t.Fatal(err)
			}
			r, sent := review.New(request, review.Options{}), p.sent
			if err := r.ReadHidden(t.Context(), rt); err != nil || p.sent != sent {
				t.Fatalf("%v; %d files fetched for a review", err, p.sent-sent)
			}
			more := r.ServedGrants(false)
			if len(more) != shown {
				t.Fatalf("grants %+v for hidden characters, want %d", more, shown)
			}
			for _, g := range append(more, r.Grant()) {
				if _, err := grants.Put(t.Context(), g); err != nil {
					t.Fatal(err)
				}
			}
		}
		expect := func(when string, refused bool) {
			t.Helper()
			all, err := rt.Fetch(t.Context(), "mcp.docs/report")
			if _, ok := errors.AsType[*loadout.RefusedError](err); ok != refused || !ok && (err != nil || !strings.Contains(all[0].Warning, "hidden")) {
				t.Errorf("ask %v, %s: %v, %v; want a refusal: %v", ask, when, all, err, refused)
			}
		}
		approveShown(0)
		expect("before it was fetched", true)
		approveShown(1)
		expect("after it was shown", false)
		e, err := rt.Catalog().Resolve(t.Context(), "mcp.docs/report")
		if err != nil {
			t.Fatal(err)
		}
		if c, err := rt.ReadFile(t.Context(), e, "style.md", 0, 0); !errors.As(err, new(*loadout.RefusedError)) {
			t.Errorf("another file: %+v, %v; want a refusal", c, err)
		}
		approveShown(2)
		if c, err := rt.ReadFile(t.Context(), e, "style.md", 0, 0); err != nil || !strings.Contains(c.Warning, "hidden") {
			t.Errorf("another file, after it was shown: %+v, %v", c, err)
		}
		p.files[reportURI] += "Mo\U000e0043re.\n"
		if err := errors.Join(src.Find(t.Context(), "report"), rt.Catalog().Reload(t.Context())); err != nil {
			t.Fatal(err)
		}
		approveShown(1) // of the file that did not change
		expect("another version", true)
	}
}

// The files of a skill of an MCP server are in the sandbox at a path that names the
// server and the skill.
func TestSandboxPathsOfServedSkillsNameTheServer(t *testing.T) {
	paths := map[string]string{}
	for _, label := range []string{"docs", "other"} {
		p, grants, box := newPublisher(), policy.NewMemoryStore(), &watchedSandbox{}
		p.files["skill://report/run.sh"] = "echo 1\n"
		rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{p.source(label, true)}, Scripts: &loadout.Scripts{Sandbox: box, Grants: grants}})
		if err != nil {
			t.Fatal(err)
		}
		defer rt.Close()
		ref := "mcp." + label + "/report"
		request, err := rt.ReadApprovalRequest(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		approve(t, grants, request)
		if _, err := rt.Run(t.Context(), loadout.Run{Skill: ref, Script: "run.sh"}); err == nil || len(box.trees) != 1 {
			t.Fatalf("run: %v, trees %v", err, box.trees)
		}
		paths[label] = box.trees[0]
		if box.skill != box.trees[0] {
			t.Errorf("LOADOUT_SKILL is %q, want %q", box.skill, box.trees[0])
		}
	}
	if want := map[string]string{"docs": "/needs/mcp.docs%2Freport", "other": "/needs/mcp.other%2Freport"}; !maps.Equal(paths, want) {
		t.Errorf("paths %v, want %v", paths, want)
	}
}

// watchedSandbox records the read-only trees of a program, and does not start it.
type watchedSandbox struct {
	brokenSandbox
	trees []string
	skill string
}

func (*watchedSandbox) Probe(context.Context) (*sandbox.Report, error) {
	return &sandbox.Report{Backend: "watched", Tier: sandbox.Isolated}, nil
}

func (b *watchedSandbox) Start(_ context.Context, s *sandbox.Spec) (sandbox.Sandbox, error) {
	for _, tree := range s.Trees {
		b.trees = append(b.trees, tree.Path)
	}
	b.skill = s.Env["LOADOUT_SKILL"]
	return nil, errors.New("cannot start")
}
