package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/remote/remotetest"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// thisMachine allows these tests to import from loopback addresses.
var thisMachine = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// importer is a hub that imports from this machine.
func importer(t testing.TB) *node {
	t.Helper()
	return start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Private: thisMachine})
}

// importers runs a test with such a hub on each database.
func importers(t *testing.T, test func(t *testing.T, n *node)) {
	for name, address := range map[string]func(testing.TB) string{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			test(t, start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Private: thisMachine, Database: address(t), Keys: []encryption.Key{encryption.NewKey()}}))
		})
	}
}

// change is what became of a skill.
type change struct{ ID, Name, Dir, Reason string }

type outcome struct{ Created, Updated, Skipped []change }

// texts returns the results of skills with their reasons.
func (o outcome) texts() map[string][]string {
	out := map[string][]string{}
	for kind, all := range map[string][]change{"created": o.Created, "updated": o.Updated, "skipped": o.Skipped} {
		for _, c := range all {
			out[kind] = append(out[kind], strings.TrimSuffix(c.Name+": "+c.Reason, ": "))
		}
	}
	return out
}

func importResult(t testing.TB, c caller, path string, body any) outcome {
	t.Helper()
	var out outcome
	c.send(t, "POST", path, body).want(t, 200).into(t, &out)
	return out
}

type offer struct {
	Source, Ref, Commit string
	Skills              []struct {
		Dir, Name string
		Here      *struct{ ID string }
		Same      bool
		Problem   string
	}
}

// W29: list, choose, overwrite, and the result of each. Then one skill and all are
// updated from their source, and their maintainers are notified of the changes.
func TestW29ImportFromGit(t *testing.T) {
	importers(t, func(t *testing.T, n *node) {
		root := n.signIn(t, "root", secret)
		_, ada := n.newUser(t, root, "ada")
		g := remotetest.NewGit(t)
		first := g.Commit(map[string]string{
			"skills/pdf/SKILL.md": skillText("pdf", "One."), "skills/docx/SKILL.md": skillText("docx", "One."), "skills/xlsx/SKILL.md": skillText("xlsx", "One."),
		})
		ada.send(t, "POST", "/api/v1/skills", zipped(t, "pdf", "Mine.")).want(t, 201)

		var o offer
		ada.send(t, "POST", "/api/v1/skills/import/look", map[string]string{"source": g.URL}).want(t, 200).into(t, &o)
		var seen []string
		for _, s := range o.Skills {
			seen = append(seen, fmt.Sprintf("%s %t %t%s", s.Dir, s.Here != nil, s.Same, s.Problem))
		}
		wantEqual(t, seen, []string{"skills/docx false false", "skills/pdf true false", "skills/xlsx false false"})
		if o.Commit != first || o.Ref != "refs/heads/main" {
			t.Errorf("the offer is %+v", o)
		}

		both := map[string]any{"source": o.Source, "commit": o.Commit, "dirs": []string{"skills/pdf", "skills/docx"}}
		wantEqual(t, importResult(t, ada, "/api/v1/skills/import", both).texts(),
			map[string][]string{"created": {"docx"}, "skipped": {"pdf: a skill with this name exists; select it to overwrite it"}})
		both["overwrite"] = []string{"pdf", "docx"}
		done := importResult(t, ada, "/api/v1/skills/import", both)
		wantEqual(t, done.texts(), map[string][]string{"updated": {"pdf"}, "skipped": {"docx: already up to date"}})
		pdf := done.Updated[0].ID

		wantEqual(t, importResult(t, ada, "/api/v1/skills/update", map[string]string{}).texts(),
			map[string][]string{"skipped": {"docx: already up to date", "pdf: already up to date"}})
		second := g.Push(remotetest.Change{Files: map[string]string{"skills/pdf/SKILL.md": skillText("pdf", "Two.")}, Remove: []string{"skills/docx"}})
		var upgrade struct {
			Commit string
			Diff   struct{ Instructions string }
		}
		ada.send(t, "GET", "/api/v1/skills/"+pdf+"/upgrade", nil).want(t, 200).into(t, &upgrade)
		if upgrade.Commit != second || !strings.Contains(upgrade.Diff.Instructions, "-One.\n+Two.") {
			t.Errorf("the upgrade is %+v", upgrade)
		}
		ada.send(t, "GET", "/api/v1/skills/"+done.Skipped[0].ID+"/upgrade", nil).wantProblem(t, 422, "source_not_found")
		wantEqual(t, importResult(t, ada, "/api/v1/skills/update", map[string]any{"ids": []string{pdf}}).texts(), map[string][]string{"updated": {"pdf"}})
		wantEqual(t, importResult(t, ada, "/api/v1/skills/update", map[string]string{}).texts(),
			map[string][]string{"skipped": {"docx: not found at its source", "pdf: already up to date"}})

		var records struct {
			Items []struct{ Action, Decision, Subject string }
		}
		root.send(t, "GET", "/api/v1/audit?subject="+pdf, nil).want(t, 200).into(t, &records)
		var did []string
		for _, r := range records.Items {
			did = append(did, r.Action+" "+r.Decision)
		}
		wantEqual(t, did, []string{"skill.change allowed", "skill.change allowed", "skill.change allowed", "skill.upload allowed"})
	})
}

// B11: a repository, one of its directories, a branch in the source or separate, an
// archive, and the index of a site. Each skill has its origin.
func TestB11Sources(t *testing.T) {
	n := importer(t)
	root := n.signIn(t, "root", secret)
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"a/one/SKILL.md": skillText("one", "Main."), "b/two/SKILL.md": skillText("two", "Main.")})
	g.Push(remotetest.Change{Branch: "dev", Files: map[string]string{"c/three/SKILL.md": skillText("three", "Dev.")}})
	x := remotetest.NewIndex(t, fstest.MapFS{"four/SKILL.md": {Data: []byte(skillText("four", "Site."))}, "four/a.txt": {Data: []byte("a")}})
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, zipOf(t, "five", skillFiles("five", "Archive.")))
	}))
	t.Cleanup(files.Close)
	for _, tt := range []struct {
		source, ref string
		names       []string
		kind        string
	}{
		{g.URL, "", []string{"one", "two"}, "git"},
		{g.URL + "//a", "", []string{"one"}, "git"},
		{g.URL + "//c@dev", "", []string{"three"}, "git"},
		{g.URL + "//c", "dev", []string{"three"}, "git"},
		{g.URL + "//c@main", "refs/heads/dev", []string{"three"}, "git"},
		{x.URL, "", []string{"four"}, "index"},
		{files.URL + "/five.zip", "", []string{"five"}, "archive"},
	} {
		request := map[string]any{"source": tt.source, "ref": tt.ref}
		var o offer
		root.send(t, "POST", "/api/v1/skills/import/look", request).want(t, 200).into(t, &o)
		var names []string
		for _, s := range o.Skills {
			names = append(names, s.Name)
		}
		wantEqual(t, names, tt.names)
		for _, c := range importResult(t, root, "/api/v1/skills/import", map[string]string{"source": o.Source, "commit": o.Commit}).Created {
			var s struct {
				Source struct{ Kind, URL, Commit string }
			}
			root.send(t, "GET", "/api/v1/skills/"+c.ID, nil).want(t, 200).into(t, &s)
			if s.Source.Kind != tt.kind || s.Source.Commit != o.Commit {
				t.Errorf("%s is from %+v", c.Name, s.Source)
			}
		}
	}
	root.send(t, "POST", "/api/v1/skills/import/look", map[string]string{"source": x.URL, "ref": "main"}).wantProblem(t, 422, "invalid")
}

// B12, W29: private sources are visible only to users with a credential for the host.
// The credential is shown nowhere.
func TestB12PrivateRepository(t *testing.T) {
	importers(t, func(t *testing.T, n *node) {
		const token = "tok-3n-of-the-host"
		root := n.signIn(t, "root", secret)
		_, ada := n.newUser(t, root, "ada")
		_, bob := n.newUser(t, root, "bob")
		g := remotetest.NewGit(t)
		g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "One.")})
		g.Private(token)
		name := "git_127_0_0_1___" + g.Host()[strings.Index(g.Host(), ":")+1:]
		request := map[string]string{"source": g.URL}
		answers := []reply{ada.send(t, "POST", "/api/v1/skills/import/look", request)}
		answers[0].wantProblem(t, 422, "source_not_found") // the answer for strangers
		if !strings.Contains(answers[0].body, "PUT /api/v1/secrets/"+name) {
			t.Errorf("what to do is missing: %s", answers[0].body)
		}
		for _, value := range []string{"wrong-3n", "ada:wrong-3n", token, "ada:" + token} {
			ada.send(t, "PUT", "/api/v1/secrets/"+name, map[string]string{"value": value}).want(t, 204)
			r := ada.send(t, "POST", "/api/v1/skills/import/look", request)
			if right := strings.HasSuffix(value, token); right {
				r.want(t, 200)
			} else {
				r.wantProblem(t, 422, "source_denied")
			}
			answers = append(answers, r)
		}
		bob.send(t, "POST", "/api/v1/skills/import/look", request).wantProblem(t, 422, "source_not_found")
		done := ada.send(t, "POST", "/api/v1/skills/import", request).want(t, 200)
		again := ada.send(t, "POST", "/api/v1/skills/import", request).want(t, 200)
		if !strings.Contains(again.body, "already up to date") {
			t.Errorf("a second import is %s", again.body)
		}
		answers = append(answers, done, again, root.send(t, "GET", "/api/v1/audit", nil).want(t, 200), ada.send(t, "GET", "/api/v1/skills", nil).want(t, 200))
		for _, r := range answers {
			if strings.Contains(r.body, "-3n") {
				t.Errorf("the credential is in %s", r.body)
			}
		}
		if strings.Contains(n.log.String(), "-3n") {
			t.Errorf("the credential is in the log:\n%s", n.log)
		}
	})
}

// A failed import has a code and advice.
func TestFailingSources(t *testing.T) {
	n := importer(t)
	root := n.signIn(t, "root", secret)
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "One.")})
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }))
	t.Cleanup(failing.Close)
	empty := remotetest.NewIndex(t, fstest.MapFS{})
	for _, tt := range []struct {
		name, source string
		status       int
		code         string
	}{
		{"a folder of the hub", "./skills", 422, "source_invalid"},
		{"a file of the hub", "file:///etc", 422, "source_invalid"},
		{"an option of git", "--upload-pack=x", 422, "source_invalid"},
		{"by ssh", "git@example.com:a/b", 422, "source_invalid"},
		{"with a password", "https://me:hunter2@example.com/a/b", 422, "source_invalid"},
		{"of the network of the hub", "https://10.0.0.1/a/b.git", 422, "source_address"},
		{"where clouds keep secrets", "https://169.254.169.254/a/b.git", 422, "source_address"},
		{"no such repository", g.Path("/other.git"), 422, "source_not_found"},
		{"no such branch", g.URL + "//pdf@nothing", 422, "source_not_found"},
		{"no such directory", g.URL + "//nothing", 422, "source_not_found"},
		{"nobody listens", gone.URL + "/x.zip", 502, "source_failed"},
		{"a site that fails", failing.URL, 502, "source_failed"},
		{"not among what is published", empty.URL + "/.well-known/agent-skills/pdf", 422, "source_not_found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, path := range []string{"/api/v1/skills/import/look", "/api/v1/skills/import"} {
				r := root.send(t, "POST", path, map[string]string{"source": tt.source})
				r.wantProblem(t, tt.status, tt.code)
				if r.text(t, "next") == "" || strings.Contains(r.body, "hunter2") {
					t.Errorf("the answer is %s", r.body)
				}
			}
		})
	}
}

// A client that accepts an event stream learns how far an import is, and then gets the
// response. The code of each reason says why a skill was skipped.
func TestImportReportsProgress(t *testing.T) {
	n := importer(t)
	token := must(n.newToken(t))(t)
	root := n.signIn(t, "root", secret)
	root.send(t, "POST", "/api/v1/skills", zipped(t, "taken", "Mine.")).want(t, 201)
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{
		"a/SKILL.md": "\n" + skillText("a", "One."), "b/SKILL.md": skillText("b", "One."), "taken/SKILL.md": skillText("taken", "One."),
		"broken/SKILL.md": "---\nname: broken\n---\n",
	})
	stream := func(path, body, key string) (kind string, events []string) {
		t.Helper()
		req := must(http.NewRequestWithContext(t.Context(), "POST", n.URL+path, strings.NewReader(body)))(t)
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "Authorization": {"Bearer " + token}}
		if key != "" {
			req.Header.Set("Idempotency-Key", key)
		}
		resp := must(n.Client().Do(req))(t)
		defer resp.Body.Close()
		text := string(must(io.ReadAll(resp.Body))(t))
		for _, e := range strings.Split(strings.TrimSpace(text), "\n\n") {
			if !strings.Contains(e, `"fetch"`) { // how often depends on git
				events = append(events, e)
			}
		}
		return resp.Header.Get("Content-Type"), events
	}
	progress := func(phase string, total int) []string {
		events := []string{}
		for i := range total {
			events = append(events, fmt.Sprintf("event: progress\ndata: {\"phase\":%q,\"done\":%d,\"total\":%d}", phase, i, total))
		}
		return events
	}
	source := `{"source": "` + g.URL + `"}`
	kind, events := stream("/api/v1/skills/import/look", source, "")
	last := len(events) - 1
	wantEqual(t, events[:last], progress("compare", 3))
	var offer struct {
		Broken []struct{ Path, Severity, Code string }
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(events[last], "event: result\ndata: ")), &offer); kind != "text/event-stream" || err != nil {
		t.Fatalf("the response is %s: %s: %v", kind, events[last], err)
	}
	var broken []string
	for _, b := range offer.Broken {
		broken = append(broken, fmt.Sprintf("%s: %s: %s", b.Path, b.Severity, b.Code))
	}
	wantEqual(t, broken, []string{"a: warning: leading-blank-lines", "broken: error: description-missing"})
	for _, tt := range []struct {
		key      string
		imported int
		want     []string
	}{
		{"first", 3, []string{"+a", "+b", "taken: exists"}},
		{"", 3, []string{"a: unchanged", "b: unchanged", "taken: exists"}},
		{"first", 0, []string{"+a", "+b", "taken: exists"}}, // the recorded result
	} {
		_, events = stream("/api/v1/skills/import", source, tt.key)
		last = len(events) - 1
		wantEqual(t, events[:last], progress("import", tt.imported))
		var out struct {
			Created []struct{ Name string }
			Skipped []struct {
				Name string
				Code string `json:"reason_code"`
			}
		}
		data, ok := strings.CutPrefix(events[last], "event: result\ndata: ")
		if err := json.Unmarshal([]byte(data), &out); err != nil || !ok {
			t.Fatalf("%s: %v", events[last], err)
		}
		var got []string
		for _, c := range out.Created {
			got = append(got, "+"+c.Name)
		}
		for _, c := range out.Skipped {
			got = append(got, c.Name+": "+c.Code)
		}
		wantEqual(t, got, tt.want)
	}
	if kind, events = stream("/api/v1/skills/import", `{"source": "file:///etc"}`, ""); kind != "application/problem+json" {
		t.Errorf("a refused source is answered by %s: %q", kind, events)
	}
}

// Who goes away takes the import along.
func TestImportEndsWithItsRequest(t *testing.T) {
	n := importer(t)
	token := must(n.newToken(t))(t)
	asked, ended := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(ended)
	}))
	t.Cleanup(slow.Close)
	ctx, leave := context.WithCancel(t.Context())
	req := must(http.NewRequestWithContext(ctx, "POST", n.URL+"/api/v1/skills/import", strings.NewReader(`{"source": "`+slow.URL+`"}`)))(t)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	go func() {
		<-asked
		leave()
	}()
	if resp, err := n.Client().Do(req); err == nil {
		resp.Body.Close()
		t.Errorf("the answer is %s", resp.Status)
	}
	<-ended
}

// newToken is a token of the administrator.
func (n *node) newToken(t testing.TB) (string, error) {
	r := n.signIn(t, "root", secret).send(t, "POST", "/api/v1/tokens", map[string]any{"name": "ci", "scopes": []string{"read", "write"}}).want(t, 201)
	return r.text(t, "token"), nil
}

// skillText is a SKILL.md.
func skillText(name, text string) string { return string(skillFiles(name, text)["SKILL.md"].Data) }
