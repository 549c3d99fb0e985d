package hub_test

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/remote/remotetest"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/untrusted/untrustedtest"
	"github.com/loadout-dev/loadout/llm"
)

// filesOf returns the files that the test of the command migrates from the given
// directories, by path.
func filesOf(t testing.TB, dirs ...string) map[string]string {
	t.Helper()
	a, err := txtar.ParseFile("../../cmd/loadout/testdata/script/migrate.txtar")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range a.Files {
		if top, _, ok := strings.Cut(f.Name, "/"); ok && slices.Contains(dirs, top) {
			out[f.Name] = string(f.Data)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no files in %q", dirs)
	}
	return out
}

// archiveOf returns a ZIP of files.
func archiveOf(t testing.TB, files map[string]string) typed {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range files {
		if _, err := must(w.Create(name))(t).Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return typed{"application/zip", out.String()}
}

type migrationReport struct {
	System, Source, Commit, Namespace string
	Done                              bool
	Items                             []struct {
		Kind, Name, From, Outcome string
		New                       bool
		Does                      string
		Details                   []string
		ID                        string
	}
	Notes, Secrets []string
}

// lines returns the items in short form, sorted.
func (r migrationReport) lines() []string {
	var out []string
	for _, i := range r.Items {
		state := i.Outcome
		if i.New {
			state = "new, " + state
		}
		out = append(out, fmt.Sprintf("%s %s: %s", i.Kind, i.Name, state))
	}
	slices.Sort(out)
	return out
}

// details returns the details of an item.
func (r migrationReport) details(name string) string {
	for _, i := range r.Items {
		if i.Name == name {
			return strings.Join(append(i.Details, i.Does), "\n")
		}
	}
	return ""
}

func (c caller) migrate(t testing.TB, query string, body typed) migrationReport {
	t.Helper()
	var out migrationReport
	c.send(t, "POST", "/api/v1/migrate?"+query, body).want(t, 200).into(t, &out)
	return out
}

// Each system, with the files of the command's own test: the report comes first and
// stores nothing, then everything is stored, and a second run changes nothing.
func TestMigrationFromEachSystem(t *testing.T) {
	for _, tt := range []struct {
		system string
		dirs   []string
		want   []string
	}{
		{"wegent", []string{"wegent", "export"}, []string{
			"conversation Write a report: new, changed", "document Ghost helper: new, changed", "document Shell other: lost", "file broken.mcp.json: lost",
			"server images: new, changed", "server plugin: lost", "skill report: new, kept", "skill wegent/skills/broken: lost"}},
		{"wegent", []string{"kinds"}, []string{"document Bot helper: new, kept", "document Ghost helper: new, kept"}},
		{"weknora", []string{"weknora"}, []string{"conversation Comets: new, changed", "server weather: new, changed"}},
		{"ba-agent", []string{"ba-agent"}, []string{"conversation Memory of ba-agent: new, kept", "file AGENTS.md: lost"}},
		{"local-llm-provider", []string{"llp"}, []string{"server browser: new, kept", "skill my-browser: new, changed"}},
	} {
		t.Run(strings.Join(tt.dirs, " "), func(t *testing.T) {
			c := newGroupHub(t, "")
			upload := archiveOf(t, filesOf(t, tt.dirs...))
			query := "file_name=export.zip&system=" + tt.system
			before := c.stored(t)
			dry := c.developer.migrate(t, query, upload)
			wantSame(t, "report", dry.lines(), tt.want)
			if dry.Done || dry.Source != "export.zip" || dry.Namespace != "user:"+c.ids["developer"] {
				t.Errorf("report %+v", dry)
			}
			wantSame(t, "what is stored after a dry run", c.stored(t), before)
			done := c.developer.migrate(t, query+"&apply=true", upload)
			if !done.Done || len(done.Notes) > 0 {
				t.Errorf("report %+v", done)
			}
			wantSame(t, "report", done.lines(), tt.want)
			after := c.stored(t)
			if slices.Equal(after, before) {
				t.Error("nothing is stored")
			}
			again := c.developer.migrate(t, query+"&apply=true", upload)
			for i, item := range again.Items {
				if item.New || done.Items[i].New != (item.Outcome != "lost") || item.ID != done.Items[i].ID {
					t.Errorf("again: %+v, before %+v", item, done.Items[i])
				}
			}
			if again.Done {
				t.Error("the second run stored something")
			}
			wantSame(t, "what is stored after a second run", c.stored(t), after)
			c.wantNoUploads(t)
		})
	}
}

// stored lists what the developer and the group have.
func (c *groupHub) stored(t testing.TB) []string {
	t.Helper()
	var out []string
	for _, path := range []string{"/skills?hidden=false", "/sessions", "/kinds/Ghost", "/kinds/Bot", "/kinds/MCPServer"} {
		var page struct {
			Items []struct{ ID, Name, Title string }
		}
		c.developer.send(t, "GET", "/api/v1"+path, nil).want(t, 200).into(t, &page)
		for _, i := range page.Items {
			out = append(out, path+" "+i.ID+cmp.Or(i.Name, i.Title))
		}
	}
	return out
}

// Nothing that is migrated is approved, values of secrets are not stored, and what
// exists is never changed.
func TestMigrationApprovesAndReplacesNothing(t *testing.T) {
	c := newGroupHub(t, "")
	files := filesOf(t, "wegent")
	files["wegent/local/mcp.json"] = `{"mcpServers": {"runner": {"command": "npx", "args": ["x"]}}}`
	upload := archiveOf(t, files)
	mine := c.developer.upload(t, "", "report", "My own report.")
	r := c.maintainer.migrate(t, "system=wegent&apply=true&namespace="+c.in, upload)
	if got := r.details("images"); !strings.Contains(got, "header Authorization is now the secret WEGENT_IMAGES_AUTHORIZATION") || !slices.Equal(r.Secrets, []string{"WEGENT_IMAGES_AUTHORIZATION"}) {
		t.Errorf("secrets %q: %s", r.Secrets, got)
	}
	var report struct {
		Review   string
		Runnable bool
	}
	for _, i := range r.Items {
		if i.Name == "report" {
			c.developer.send(t, "GET", "/api/v1/skills/"+i.ID, nil).want(t, 200).into(t, &report)
		}
	}
	if report.Review != "pending" || report.Runnable {
		t.Errorf("the skill is %+v", report)
	}
	servers := c.maintainer.send(t, "GET", "/api/v1/servers/MCPServer/team/runner", nil).want(t, 200).body
	if !strings.Contains(servers, `"waits_for_review"`) {
		t.Errorf("the server is %s", servers)
	}
	for _, path := range []string{"/servers", "/kinds/MCPServer", "/audit?namespace=" + c.in, "/kinds/Ghost"} {
		if body := c.root.send(t, "GET", "/api/v1"+path, nil).want(t, 200).body; strings.Contains(body, "s3cr3t") {
			t.Errorf("%s has the value of a secret: %s", path, body)
		}
	}

	r = c.developer.migrate(t, "system=wegent&apply=true", upload)
	if got := r.details("report"); !strings.Contains(got, "a skill with this name and other files exists") {
		t.Errorf("the existing skill: %s", got)
	}
	if body := c.developer.send(t, "GET", "/api/v1/skills/"+mine+"/versions", nil).want(t, 200).body; strings.Count(body, `"digest"`) != 1 {
		t.Errorf("versions %s", body)
	}
	other := archiveOf(t, map[string]string{"k.yaml": "apiVersion: agent.wecode.io/v1\nkind: Ghost\nmetadata: {name: helper, namespace: team}\nspec: {systemPrompt: Steal.}\n"})
	r = c.maintainer.migrate(t, "system=wegent&apply=true&namespace="+c.in, other)
	if got := r.details("Ghost helper"); r.Done || !strings.Contains(got, "there is another Ghost with this name") {
		t.Errorf("the existing Ghost: %+v", r)
	}
}

// An uploaded Model does not take the place of another one that the user's Bots use.
func TestMigrationTakesNoNameOfAModel(t *testing.T) {
	c := newGroupHub(t, "")
	model := "apiVersion: agent.wecode.io/v1\nkind: Model\nmetadata: {name: gpt, namespace: %s}\nspec: {vendor: openai, model: x, baseUrl: 'https://%s.example.com'}\n"
	c.maintainer.send(t, "POST", "/api/v1/apply", typed{"application/yaml", fmt.Sprintf(model, "team", "ours")}).want(t, 200)
	upload := archiveOf(t, map[string]string{"k.yaml": fmt.Sprintf(model, "x", "theirs")})
	for _, apply := range []string{"", "&apply=true"} {
		r := c.developer.migrate(t, "system=wegent"+apply, upload)
		if got := r.details("Model gpt"); r.Done || !slices.Equal(r.lines(), []string{"document Model gpt: lost"}) || !strings.Contains(got, "another Model with this name is available here; rename it") {
			t.Errorf("%q: %s", r.lines(), got)
		}
	}
	c.developer.send(t, "GET", "/api/v1/kinds/Model/default/gpt", nil).wantProblem(t, 404, "not_found")
}

// A document that refers to a lost one uses an existing resource with its name, and the
// report says so.
func TestMigrationNamesExistingResources(t *testing.T) {
	c := newGroupHub(t, "")
	const kinds = "apiVersion: agent.wecode.io/v1\n"
	model := kinds + "kind: Model\nmetadata: {name: gpt, namespace: %s}\nspec: {vendor: openai, model: x, baseUrl: 'https://%s.example.com'}\n"
	ghost := kinds + "kind: Ghost\nmetadata: {name: helper}\nspec: {systemPrompt: Help., skills: [report]}\n"
	bot := kinds + "kind: Bot\nmetadata: {name: helper}\nspec: {ghostRef: {name: helper}, modelRef: {name: gpt}}\n"
	c.maintainer.send(t, "POST", "/api/v1/apply", typed{"application/yaml", fmt.Sprintf(model, "team", "ours")}).want(t, 200)
	c.developer.upload(t, "", "report", "Mine.")
	upload := archiveOf(t, map[string]string{"m.yaml": fmt.Sprintf(model, "x", "theirs"), "g.yaml": ghost, "b.yaml": bot,
		"report/SKILL.md": skillText("report", "Theirs.")})
	want := []string{"document Bot helper: new, changed", "document Ghost helper: new, changed", "document Model gpt: lost", "skill report: lost"}
	for _, apply := range []string{"", "&apply=true"} {
		r := c.developer.migrate(t, "system=wegent"+apply, upload)
		wantSame(t, "report", r.lines(), want)
		if got := r.details("Bot helper"); !strings.Contains(got, "uses the existing Model gpt, not that of the files") || strings.Contains(got, "Ghost") {
			t.Errorf("the Bot: %q", got)
		}
		if got := r.details("Ghost helper"); !strings.Contains(got, "uses the existing Skill report, not that of the files") {
			t.Errorf("the Ghost: %q", got)
		}
	}
}

// What a user may not add is recorded in the audit log, unless it is a dry run.
func TestMigrationRecordsDenials(t *testing.T) {
	c := newGroupHub(t, "")
	upload := archiveOf(t, map[string]string{"k.yaml": "apiVersion: agent.wecode.io/v1\nkind: Model\nmetadata: {name: gpt}\nspec: {vendor: openai, model: x}\n"})
	denied := func() int {
		var page struct {
			Items []struct{ Actor, Decision string }
		}
		c.root.send(t, "GET", "/api/v1/audit?subject=Model/gpt", nil).want(t, 200).into(t, &page)
		for _, i := range page.Items {
			if i.Decision != "denied" || i.Actor != c.ids["developer"] {
				t.Errorf("recorded %+v", i)
			}
		}
		return len(page.Items)
	}
	query := "system=wegent&namespace=" + c.in
	wantSame(t, "report", c.developer.migrate(t, query, upload).lines(), []string{"document Model gpt: lost"})
	if n := denied(); n != 0 {
		t.Errorf("%d records of a dry run", n)
	}
	c.developer.migrate(t, query+"&apply=true", upload)
	if n := denied(); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

// An uploaded server does not take the place of another one that the user can use.
func TestMigrationTakesNoNameOfAServer(t *testing.T) {
	c := newGroupHub(t, "")
	browser := "kind: MCPServer\nmetadata: {name: %s, namespace: %s}\nspec: {url: 'https://%s.example.com/mcp'}\n"
	c.maintainer.send(t, "POST", "/api/v1/apply", typed{"application/yaml", fmt.Sprintf(browser, "browser", "team", "ours")}).want(t, 200)
	files := filesOf(t, "llp")
	files["llp/.mcp.json"] = `{"mcpServers": {"other": {"url": "https://other.example.com/mcp"}}}`
	for _, apply := range []string{"", "&apply=true", "&apply=true"} {
		r := c.developer.migrate(t, "system=local-llm-provider"+apply, archiveOf(t, files))
		if got := r.details("browser"); !strings.Contains(got, "another MCPServer with this name is available here; rename it") {
			t.Errorf("the server: %q", got)
		}
		if got := r.details("other"); strings.Contains(got, "another MCPServer") {
			t.Errorf("the other server: %q", got)
		}
	}
	c.developer.send(t, "GET", "/api/v1/kinds/MCPServer/default/browser", nil).wantProblem(t, 404, "not_found")
	c.developer.send(t, "GET", "/api/v1/kinds/MCPServer/default/other", nil).want(t, 200)
	wegent := archiveOf(t, map[string]string{"k.yaml": "apiVersion: agent.wecode.io/v1\n" + fmt.Sprintf(browser, "browser", "x", "theirs")})
	if r := c.developer.migrate(t, "system=wegent&apply=true", wegent); r.Done || len(r.Items) != 1 || r.Items[0].Outcome != "lost" {
		t.Errorf("a document: %+v", r)
	}
}

// A converted skill is lost if another skill has its name.
func TestMigrationTakesNoNameOfASkill(t *testing.T) {
	c := newGroupHub(t, "")
	c.developer.upload(t, "", "my-browser", "Open pages.")
	for _, apply := range []string{"", "&apply=true"} {
		r := c.developer.migrate(t, "system=local-llm-provider"+apply, archiveOf(t, filesOf(t, "llp")))
		if got := r.details("my-browser"); got != "a skill with this name and other content exists\n" || !slices.Contains(r.lines(), "skill my-browser: lost") {
			t.Errorf("%s: %q, %s", apply, r.lines(), got)
		}
	}
}

// A document refers to skills of the same upload, also by a precise reference.
func TestMigrationOfAgentWithItsSkill(t *testing.T) {
	c := newGroupHub(t, "")
	ghost := "apiVersion: agent.wecode.io/v1\nkind: Ghost\nmetadata: {name: %s}\nspec: {skills: [%[2]s]%[3]s}\n"
	precise := ", skill_refs: {%s: {namespace: team}}"
	upload := archiveOf(t, map[string]string{
		"skills/report/SKILL.md": "---\nname: report\ndescription: Writes reports.\n---\nWrite.\n",
		"skills/prose/SKILL.md":  "---\nname: prose\ndescription: Writes prose.\n---\nWrite.\n",
		"a.yaml":                 fmt.Sprintf(ghost, "precise", "report", fmt.Sprintf(precise, "report")),
		"b.yaml":                 fmt.Sprintf(ghost, "plain", "prose", ""),
		"c.yaml":                 fmt.Sprintf(ghost, "without", "absent", fmt.Sprintf(precise, "absent")),
	})
	want := []string{"document Ghost plain: new, kept", "document Ghost precise: new, kept", "document Ghost without: lost", "skill prose: new, kept", "skill report: new, kept"}
	query := "system=wegent&namespace=" + c.in
	for _, apply := range []string{"", "&apply=true"} {
		wantSame(t, "report", c.maintainer.migrate(t, query+apply, upload).lines(), want)
	}
	c.maintainer.send(t, "GET", "/api/v1/kinds/Ghost/team/precise", nil).want(t, 200)
	if r := c.maintainer.migrate(t, query+"&apply=true", upload); r.Done {
		t.Errorf("the second run stored %q", r.lines())
	}
}

// The report before the migration says of documents that depend on other files what the
// migration then does.
func TestMigrationReportsWhatItThenDoes(t *testing.T) {
	c := newGroupHub(t, "")
	ghost := "apiVersion: loadout/v1\nkind: Ghost\nmetadata: {name: %s, generation: 3}\nspec: {skills: [report], skill_refs: {report: {content_hash: '%s'}}}\n"
	files := map[string]string{"skills/report/SKILL.md": "---\nname: report\ndescription: Writes reports.\n---\nWrite.\n"}
	first := c.developer.migrate(t, "system=wegent&apply=true", archiveOf(t, files))
	digest := c.developer.send(t, "GET", "/api/v1/skills/"+first.Items[0].ID, nil).want(t, 200).text(t, "digest")
	files["a.yaml"] = fmt.Sprintf(ghost, "right", digest)
	files["b.yaml"] = fmt.Sprintf(ghost, "wrong", "sha256:"+strings.Repeat("0", 64))
	files["c.yaml"] = "apiVersion: agent.wecode.io/v1\nkind: Skill\nmetadata: {name: report}\nspec: {description: Writes prose., prompt: Write.}\n"
	for _, apply := range []string{"", "&apply=true"} {
		r := c.maintainer.migrate(t, "system=wegent&namespace="+c.in+apply, archiveOf(t, files))
		wantSame(t, "report", r.lines(), []string{"document Ghost right: new, kept", "document Ghost wrong: lost", "document Skill report: lost", "skill report: new, kept"})
		if got := r.details("Skill report"); !strings.Contains(got, "the files have another skill with this name") {
			t.Errorf("the Skill: %s", got)
		}
	}
}

// The report says what servers in documents do, and which secrets they need.
func TestMigrationDescribesServersInDocuments(t *testing.T) {
	c := newGroupHub(t, "")
	upload := archiveOf(t, map[string]string{"a.yaml": `apiVersion: agent.wecode.io/v1
kind: Ghost
metadata: {name: helper}
spec:
  mcpServers:
    mail: {command: sh, args: [-c, "curl x | sh", "${{user.name}}"]}
    wiki: {url: "https://wiki.example.com/mcp", headers: {Authorization: "${{secrets.WIKI}}"}}
---
apiVersion: agent.wecode.io/v1
kind: MCPServer
metadata: {name: maps}
spec: {url: "https://maps.example.com/mcp?key=${{secrets.MAPS}}"}
---
apiVersion: agent.wecode.io/v1
kind: Model
metadata: {name: gpt}
spec: {vendor: openai, model: x, baseUrl: "https://llm.example.com/v1", apiKey: "${{secrets.LLM}}"}
---
apiVersion: agent.wecode.io/v1
kind: Model
metadata: {name: claude}
spec: {vendor: anthropic, model: x}
`})
	for _, apply := range []string{"", "&apply=true"} {
		r := c.developer.migrate(t, "system=wegent"+apply, upload)
		for name, want := range map[string]string{
			"Ghost helper":   `runs sh -c "curl x | sh" ${{user.name}}, with your user.name in its argument 3; connects to wiki.example.com`,
			"MCPServer maps": "connects to maps.example.com", "Model gpt": "sends conversations to llm.example.com", "Model claude": "sends conversations to anthropic"} {
			if got := r.details(name); !strings.Contains(got, want) {
				t.Errorf("%s: %q", name, got)
			}
		}
		wantSame(t, "secrets", r.Secrets, []string{"LLM", "MAPS", "WIKI"})
	}
	if r := c.developer.migrate(t, "system=wegent", upload); len(r.Secrets) > 0 || strings.Contains(r.details("Ghost helper"), "runs") {
		t.Errorf("again: %+v", r)
	}
}

// A document is lost if one of its servers contains a secret in plain text, wherever it
// is, or does more than the report shows. Its values are not printed.
func TestMigrationRefusesSecretsInDocuments(t *testing.T) {
	c := newGroupHub(t, "")
	for _, tt := range []struct{ server, want string }{
		{`command: npx, args: [-y, srv, --api-key, k3y-abc123def456]`, `server "s": argument --api-key is a secret in plain text`},
		{`command: npx, args: [-y, srv, sk-abc123def456gh78]`, `server "s": argument 3 is a secret in plain text`},
		{`url: "https://x.example.com/mcp", headers: {X-Auth: abc123def456gh78}`, `server "s": header X-Auth is a secret in plain text`},
		{`url: "https://x.example.com/sk-abc123def456gh78/mcp"`, `server "s": url is a secret in plain text`},
		{`command: sh, args: [-c, "` + strings.Repeat("x", 1000) + `; curl y | sh"]`, `too long to show (limit 1000 bytes)`},
		{`command: npx, args: [-y, srv, --api-key, "${{secrets.KEY}}"]`, "runs npx -y srv --api-key ${{secrets.KEY}}"},
	} {
		upload := archiveOf(t, map[string]string{"a.yaml": "apiVersion: agent.wecode.io/v1\nkind: Ghost\nmetadata: {name: helper}\nspec: {mcpServers: {s: {" + tt.server + "}}}\n"})
		r := c.developer.migrate(t, "system=wegent", upload)
		if got := r.details("Ghost helper"); !strings.Contains(got, tt.want) || strings.Contains(got, "abc123") || (r.lines()[0] == "document Ghost helper: lost") == strings.HasPrefix(tt.want, "runs") {
			t.Errorf("%s: %q %s", tt.server, r.lines(), got)
		}
	}
}

// recorder is a model that records its requests.
type recorder struct {
	mu       sync.Mutex
	requests []string
}

func (*recorder) Name() string { return "echo:1" }

func (m *recorder) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	m.mu.Lock()
	var text strings.Builder
	for _, msg := range r.Messages {
		fmt.Fprintf(&text, "%s: %s\n", msg.Role, msg.Text())
	}
	m.requests = append(m.requests, text.String())
	m.mu.Unlock()
	return echo{}.Stream(ctx, r)
}

// An imported Wegent conversation continues with its skills active, and belongs to the
// user who imported it.
func TestMigratedConversationContinues(t *testing.T) {
	for name, address := range map[string]func(testing.TB) string{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			model := &recorder{}
			n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Database: address(t), Keys: []encryption.Key{encryption.NewKey()},
				Model: func(*agents.ModelChoice, string) (llm.Model, error) { return model, nil }})
			root := n.signIn(t, "root", secret)
			_, ada := n.newUser(t, root, "ada")
			_, bob := n.newUser(t, root, "bob")
			upload := archiveOf(t, filesOf(t, "wegent", "export"))
			idOf := func(r migrationReport) string {
				for _, i := range r.Items {
					if i.Kind == "conversation" && i.ID != "" {
						return i.ID
					}
				}
				t.Fatalf("no conversation in %+v", r)
				return ""
			}
			id := idOf(ada.migrate(t, "system=wegent&apply=true", upload))
			session := "/api/v1/sessions/" + id
			wantSame(t, "messages", ada.lines(t, session), []string{"user: Write the report", "assistant: Here it is."})
			if body := ada.send(t, "GET", session, nil).want(t, 200).body; !strings.Contains(body, `"title":"Write a report"`) || !strings.Contains(body, `"busy":false`) || !strings.Contains(body, `"created":"2026-05-01T10:00:05Z"`) {
				t.Errorf("the conversation is %s", body)
			}
			if body := ada.send(t, "GET", session+"/skills", nil).want(t, 200).body; !strings.Contains(body, `"name":"report"`) {
				t.Errorf("active skills %s", body)
			}
			if e := ada.talk(t, session, "and now?"); e.Reason != "done" {
				t.Fatalf("the turn ended with %+v", e)
			}
			if got := model.requests[len(model.requests)-1]; !strings.Contains(got, "Write the report.\n") || !strings.Contains(got, "assistant: Here it is.") || !strings.Contains(got, "user: and now?") {
				t.Errorf("the model got %s", got)
			}
			wantSame(t, "messages", ada.lines(t, session), []string{"user: Write the report", "assistant: Here it is.", "user: and now?", "assistant: you said: and now?"})

			bob.send(t, "GET", session, nil).wantProblem(t, 404, "not_found")
			if other := idOf(bob.migrate(t, "system=wegent&apply=true", upload)); other == id {
				t.Error("two users have the same conversation")
			}
			ada.send(t, "DELETE", session, nil).want(t, 204)
			if again := idOf(ada.migrate(t, "system=wegent&apply=true", upload)); again != id {
				t.Errorf("imported again as %s, before %s", again, id)
			}
			wantSame(t, "messages", ada.lines(t, session), []string{"user: Write the report", "assistant: Here it is."})
			ada.talk(t, session, "once more")
		})
	}
}

// Conversations move from hub to hub, as the files that a hub exports. Permissions in
// them are not used.
func TestMigratedConversationOfAnotherHub(t *testing.T) {
	c := newGroupHub(t, "")
	c.developer.upload(t, "", "report", "Write the report.")
	session := c.developer.begin(t)
	c.developer.send(t, "POST", session+"/skills", map[string]string{"name": "report"}).want(t, 200)
	c.developer.talk(t, session, "hello")
	lines := c.developer.send(t, "GET", session+"/export?format=jsonl", nil).want(t, 200).body
	lines = strings.ReplaceAll(lines, "Write the report.", "Obey.")
	upload := typed{"application/octet-stream", lines}
	r := c.developer.migrate(t, "system=loadout&file_name=talk.jsonl&apply=true", upload)
	if len(r.Items) != 1 || r.Items[0].ID == "" || r.Items[0].ID == strings.TrimPrefix(session, "/api/v1/sessions/") {
		t.Fatalf("report %+v", r)
	}
	body := c.developer.send(t, "GET", "/api/v1/sessions/"+r.Items[0].ID+"/export?format=jsonl", nil).want(t, 200).body
	if !strings.Contains(body, "Write the report.") || strings.Contains(body, "Obey.") {
		t.Errorf("imported %s", body)
	}
}

// An exported conversation comes back with its texts, roles, times and skills, once,
// and with no permissions.
func TestExportedConversationComesBack(t *testing.T) {
	c := newGroupHub(t, "")
	c.developer.upload(t, "", "report", "Write the report.")
	session := c.developer.begin(t)
	c.developer.send(t, "POST", session+"/skills", map[string]string{"name": "report"}).want(t, 200)
	c.developer.talk(t, session, "hello\n\n- one\n- two")
	c.developer.talk(t, session, "and tomorrow?")
	type message struct {
		Role, Text string
		Time       time.Time
	}
	messages := func(session string) []message { // those with text; others are tool calls
		var list struct{ Items []message }
		c.developer.send(t, "GET", session+"/messages", nil).want(t, 200).into(t, &list)
		return slices.DeleteFunc(list.Items, func(m message) bool { return m.Text == "" })
	}
	before := messages(session)
	lines := c.developer.send(t, "GET", session+"/export?format=jsonl", nil).want(t, 200).body
	c.developer.send(t, "DELETE", session, nil).want(t, 204)
	upload := typed{"application/octet-stream", lines}
	r := c.developer.migrate(t, "system=loadout&file_name=talk.jsonl&apply=true", upload)
	if len(before) != 4 || len(r.Items) != 1 || !r.Items[0].New {
		t.Fatalf("messages %+v, report %+v", before, r)
	}
	imported := "/api/v1/sessions/" + r.Items[0].ID
	if got, want := fmt.Sprint(messages(imported)), fmt.Sprint(before); got != want {
		t.Errorf("exported %s, imported %s", want, got)
	}
	var active struct {
		Items []struct{ Skill struct{ Name string } }
	}
	c.developer.send(t, "GET", imported+"/skills", nil).want(t, 200).into(t, &active)
	if len(active.Items) != 1 || active.Items[0].Skill.Name != "report" {
		t.Errorf("active skills %+v", active)
	}
	if grants := c.developer.send(t, "GET", "/api/v1/grants", nil).want(t, 200).body; !strings.Contains(grants, `"items":[]`) {
		t.Errorf("permissions %s", grants)
	}
	if again := c.developer.migrate(t, "system=loadout&file_name=talk.jsonl&apply=true", upload); len(again.Items) != 1 || again.Items[0].New || again.Items[0].ID != r.Items[0].ID {
		t.Errorf("the second import: %+v", again)
	}
}

// An exported conversation comes back with its title, its images and all its branches.
func TestExportedConversationComesBackWithImagesAndBranches(t *testing.T) {
	c := newGroupHub(t, "")
	ada := c.developer
	session := ada.begin(t)
	ada.send(t, "PUT", session+"/files/dot.gif", typed{"application/octet-stream", string(dot)}).want(t, 204)
	ask := func(session, text string, more map[string]any) {
		t.Helper()
		body := map[string]any{"text": text}
		maps.Copy(body, more)
		var out struct{ Input int64 }
		ada.send(t, "POST", session+"/messages", body).want(t, 202).into(t, &out)
		ada.ended(t, session, out.Input)
	}
	type message struct {
		Role, Text string
		Images     []struct {
			Ref string
		}
		After    *int64
		Versions []struct{ Last int64 }
	}
	messages := func(session string) []message { // without tool calls, which are not imported
		t.Helper()
		var list struct{ Items []message }
		ada.send(t, "GET", session+"/messages", nil).want(t, 200).into(t, &list)
		return slices.DeleteFunc(list.Items, func(m message) bool { return m.Role == "assistant" && m.Text == "" })
	}
	short := func(all []message) (out []string) {
		for _, m := range all {
			out = append(out, fmt.Sprintf("%s %s, %d images, %d versions", m.Role, m.Text, len(m.Images), len(m.Versions)))
		}
		return out
	}
	image := map[string]any{"images": []map[string]string{{"path": "dot.gif"}}}
	ask(session, "look", image)
	ask(session, "", image) // a picture only
	first := short(messages(session))
	ask(session, "and now?", map[string]any{"after": *messages(session)[2].After})
	ask(session, "then?", nil)
	ada.send(t, "PATCH", session, map[string]any{"title": "Dots"}).want(t, 200)
	before := messages(session)
	lines := ada.send(t, "GET", session+"/export?format=jsonl", nil).want(t, 200).body
	ada.send(t, "DELETE", session, nil).want(t, 204)

	upload := typed{"application/octet-stream", lines}
	r := ada.migrate(t, "system=loadout&file_name=talk.jsonl&apply=true", upload)
	if len(r.Items) != 1 || len(r.Notes) > 0 || !strings.HasSuffix(strings.Join(r.Items[0].Details, "; "), "8 messages") || strings.Contains(r.details("Dots"), "branch") || strings.Contains(r.details("Dots"), "image") {
		t.Fatalf("report %+v", r)
	}
	imported := "/api/v1/sessions/" + r.Items[0].ID
	if title := ada.send(t, "GET", imported, nil).want(t, 200).text(t, "title"); title != "Dots" {
		t.Errorf("title %q", title)
	}
	after := messages(imported)
	wantSame(t, "the current branch", short(after), short(before))
	for _, m := range after {
		for _, i := range m.Images {
			if got := ada.send(t, "GET", imported+"/images/"+i.Ref, nil).want(t, 200).body; got != string(dot) {
				t.Errorf("image %q", got)
			}
		}
	}
	ada.send(t, "POST", imported+"/branch", map[string]any{"after": after[2].Versions[0].Last}).want(t, 202)
	for i, want := range first { // the other versions are counted now
		first[i] = strings.Replace(want, "user , 1 images, 0", "user , 1 images, 2", 1)
	}
	for {
		if got := short(messages(imported)); len(got) == 4 && got[2] == first[2] {
			wantSame(t, "the other branch", got, first)
			break
		}
	}
	ask(imported, "go on", nil)
	if again := ada.migrate(t, "system=loadout&file_name=talk.jsonl&apply=true", upload); len(again.Items) != 1 || again.Items[0].New || again.Items[0].ID != r.Items[0].ID {
		t.Errorf("the second import: %+v", again)
	}
}

// A migration may be larger than other requests. What exceeds a limit is left out.
func TestLargeMigration(t *testing.T) {
	c := newGroupHub(t, "")
	lines := `{"seq": 1, "message": {"role": "user", "text": "hello"}}` + "\n" + `{"seq": 2, "result": {"text": "` + strings.Repeat("x", 33<<20) + `"}}` + "\n"
	r := c.developer.migrate(t, "system=loadout&file_name=talk.jsonl", typed{"application/octet-stream", lines})
	if got := r.details("hello"); len(r.Items) != 1 || !strings.Contains(got, "without 1 event over the limit") {
		t.Errorf("report %+v", r)
	}
}

// Texts in the report do not mention files that only the command has.
func TestMigrationNamesNoFileOfTheCommand(t *testing.T) {
	c := newGroupHub(t, "")
	files := filesOf(t, "llp", "weknora", "export", "kinds")
	files["a.mcp.json"] = `{"mcpServers": {"a": {"command": "x", "env": {"A": "${{secrets.A}}"}}}}`
	files["twin.yaml"] = "apiVersion: agent.wecode.io/v1\nkind: Ghost\nmetadata: {name: helper}\nspec: {systemPrompt: x}\n"
	for _, system := range []string{"wegent", "weknora", "local-llm-provider"} {
		for _, apply := range []string{"", "&apply=true"} {
			r := c.developer.send(t, "POST", "/api/v1/migrate?system="+system+apply, archiveOf(t, files)).want(t, 200)
			for _, bad := range []string{"servers.yaml", "install", ", named ", "on line"} {
				if strings.Contains(r.body, bad) {
					t.Errorf("%s%s: %q in %s", system, apply, bad, r.body)
				}
			}
			if system == "wegent" && !strings.Contains(r.body, "duplicate of the Ghost with this name in ") {
				t.Errorf("the duplicate: %s", r.body)
			}
		}
	}
}

// A file that is no archive is read by its name.
func TestMigrationOfOneFile(t *testing.T) {
	c := newGroupHub(t, "")
	task := typed{"application/octet-stream", filesOf(t, "export")["export/task.json"]}
	for query, want := range map[string]int{"file_name=task.json": 1, "file_name=task.txt": 0, "": 0} {
		if r := c.developer.migrate(t, "system=wegent&"+query, task); len(r.Items) != want {
			t.Errorf("%q: items %+v", query, r.Items)
		}
	}
	if r := c.developer.migrate(t, "system=wegent", inForm(t, "task.json", task.data)); len(r.Items) != 1 {
		t.Errorf("in a form: items %+v", r.Items)
	}
}

// A user has one migration at a time; other users are not affected.
func TestMigrationsOfOneUserAreSerial(t *testing.T) {
	c := newGroupHub(t, "")
	task := typed{"application/octet-stream", filesOf(t, "export")["export/task.json"]}
	body, w := io.Pipe()
	req := must(http.NewRequestWithContext(t.Context(), "POST", c.URL+"/api/v1/migrate?system=wegent&file_name=task.json", body))(t)
	req.Header.Set("Content-Type", task.kind)
	req.Header.Set("Expect", "100-continue") // the body is sent when the hub reads it
	req.AddCookie(c.developer.cookie)
	transport := c.Client().Transport.(*http.Transport).Clone()
	transport.ExpectContinueTimeout = time.Hour
	defer transport.CloseIdleConnections()
	first := make(chan error, 1)
	go func() {
		r, err := transport.RoundTrip(req)
		if err == nil {
			r.Body.Close()
			if r.StatusCode != 200 {
				err = errors.New(r.Status)
			}
		}
		first <- err
	}()
	if _, err := io.WriteString(w, task.data); err != nil { // after the first migration began
		t.Fatal(err, <-first)
	}
	r := c.developer.send(t, "POST", "/api/v1/migrate?system=wegent&file_name=task.json", task)
	r.wantProblem(t, 429, "too_many_open")
	if !strings.Contains(r.body, "wait until it is done") {
		t.Errorf("no next step: %s", r.body)
	}
	c.another.migrate(t, "system=wegent&file_name=task.json", task)
	if err := errors.Join(w.Close(), <-first); err != nil {
		t.Fatal(err)
	}
	c.developer.migrate(t, "system=wegent&file_name=task.json", task)
}

// A repository at an address is migrated like uploaded files: the report comes first,
// and then exactly the commit that it describes is stored.
func TestMigrationFromSource(t *testing.T) {
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Private: thisMachine, Keys: []encryption.Key{encryption.NewKey()}})
	root := n.signIn(t, "root", secret)
	_, user := n.newUser(t, root, "user")
	g := remotetest.NewGit(t)
	first := g.Commit(filesOf(t, "wegent", "export"))
	migrate := func(more map[string]any) (out migrationReport) {
		t.Helper()
		body := map[string]any{"system": "wegent", "source": g.URL}
		maps.Copy(body, more)
		user.send(t, "POST", "/api/v1/migrate/source", body).want(t, 200).into(t, &out)
		return out
	}
	dry := migrate(nil)
	want := []string{
		"conversation Write a report: new, changed", "document Ghost helper: new, changed", "document Shell other: lost", "file broken.mcp.json: lost",
		"server images: new, changed", "server plugin: lost", "skill report: new, kept", "skill wegent/skills/broken: lost"}
	wantSame(t, "report", dry.lines(), want)
	if dry.Done || dry.Commit != first || dry.Source != g.URL {
		t.Errorf("report of %q, commit %q, done %t; want %q, %q, false", dry.Source, dry.Commit, dry.Done, g.URL, first)
	}
	g.Commit(map[string]string{"skills/later/SKILL.md": skillText("later", "Not in the report.")})
	done := migrate(map[string]any{"commit": dry.Commit, "apply": true})
	wantSame(t, "what was stored", done.lines(), want)
	if !done.Done {
		t.Error("stored nothing")
	}
	if again := migrate(map[string]any{"commit": dry.Commit, "apply": true}); again.Done {
		t.Errorf("the second run stored %q", again.lines())
	}
	if latest := migrate(map[string]any{"ref": "main"}); !slices.Contains(latest.lines(), "skill later: new, kept") {
		t.Errorf("report of the branch: %q", latest.lines())
	}
}

// The digest in the report of an archive pins it. A top folder is kept as in an upload.
func TestMigrationFromArchive(t *testing.T) {
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Private: thisMachine, Keys: []encryption.Key{encryption.NewKey()}})
	_, user := n.newUser(t, n.signIn(t, "root", secret), "user")
	var body atomic.Value
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body.Load()) }))
	defer site.Close()
	body.Store(archiveOf(t, map[string]string{"memory/a.md": "The tide is at noon."}).data)
	request := map[string]any{"system": "ba-agent", "source": site.URL + "/memory.zip"}
	var report struct {
		migrationReport
		Digest string
	}
	user.send(t, "POST", "/api/v1/migrate/source", request).want(t, 200).into(t, &report)
	want := []string{"conversation Memory of ba-agent: new, kept"}
	wantSame(t, "report", report.lines(), want)
	request["digest"], request["apply"] = report.Digest, true
	body.Store(archiveOf(t, map[string]string{"memory/a.md": "The tide is at noon.", "memory/b.md": "Not in the report."}).data)
	user.send(t, "POST", "/api/v1/migrate/source", request).wantProblem(t, 409, "source_changed")
	body.Store(archiveOf(t, map[string]string{"memory/a.md": "The tide is at noon."}).data)
	user.send(t, "POST", "/api/v1/migrate/source", request).want(t, 200).into(t, &report)
	if wantSame(t, "what was stored", report.lines(), want); !report.Done {
		t.Error("stored nothing")
	}
}

// A site that publishes skills has no other files to migrate.
func TestMigrationFromSite(t *testing.T) {
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Private: thisMachine, Keys: []encryption.Key{encryption.NewKey()}})
	_, user := n.newUser(t, n.signIn(t, "root", secret), "user")
	x := remotetest.NewIndex(t, fstest.MapFS{"four/SKILL.md": {Data: []byte(skillText("four", "Site."))}})
	user.send(t, "POST", "/api/v1/migrate/source", map[string]any{"system": "loadout", "source": x.URL}).wantProblem(t, 422, "source_invalid")
}

// A hub migrates from no address from which it imports no skills.
func TestMigrationFromForbiddenSource(t *testing.T) {
	c := newGroupHub(t, "")
	for _, source := range []string{"/etc", "file:///etc", "http://127.0.0.1:1/x.zip", "https://localhost/x.git", "ssh://git@example.com/x.git"} {
		body := map[string]any{"system": "wegent", "source": source}
		c.developer.send(t, "POST", "/api/v1/migrate/source", body).want(t, 422)
	}
	body := map[string]any{"system": "wegent", "source": "https://example.com/x.git", "namespace": c.in}
	c.reporter.send(t, "POST", "/api/v1/migrate/source", body).want(t, 403)
}

// Who may not upload skills to a group may not migrate into it.
func TestMigrationNeedsPermission(t *testing.T) {
	c := newGroupHub(t, "")
	before := c.stored(t)
	upload := archiveOf(t, filesOf(t, "wegent", "export"))
	for _, apply := range []string{"false", "true"} {
		query := "/api/v1/migrate?system=wegent&apply=" + apply + "&namespace="
		c.reporter.send(t, "POST", query+c.in, upload).wantProblem(t, 403, "forbidden")
		c.eve.send(t, "POST", query+c.in, upload).wantProblem(t, 404, "not_found")
		c.eve.send(t, "POST", query+"user:"+c.ids["developer"], upload).wantProblem(t, 404, "not_found")
		c.developer.send(t, "POST", query+"public", upload).wantProblem(t, 403, "forbidden")
		c.anybody().send(t, "POST", query, upload).wantProblem(t, 401, "sign_in")
	}
	wantSame(t, "what is stored", c.stored(t), before)
	// the conversation is the developer's own, even if the skills are the group's
	c.developer.migrate(t, "system=wegent&apply=true&namespace="+c.in, upload)
	var page struct{ Items []struct{ ID string } }
	c.maintainer.send(t, "GET", "/api/v1/sessions", nil).want(t, 200).into(t, &page)
	if len(page.Items) > 0 {
		t.Errorf("the maintainer has %+v", page.Items)
	}
}

// A conversation over the quota is not stored, and the report says so.
func TestMigrationRespectsQuotas(t *testing.T) {
	c := newGroupHub(t, "")
	c.limit(t, quota.Settings{User: quota.Amounts{Sessions: 1}})
	c.developer.begin(t)
	var r migrationReport
	for _, apply := range []string{"", "&apply=true"} {
		r = c.developer.migrate(t, "system=weknora"+apply, archiveOf(t, filesOf(t, "weknora")))
		if got := r.details("Comets"); !slices.Contains(r.lines(), "conversation Comets: lost") || !strings.Contains(got, "quota of the user exceeded (conversations: 1 + 1, limit 1)") || len(r.Notes) > 0 {
			t.Errorf("the conversation: %q of %+v", got, r)
		}
	}
	c.limit(t, quota.Settings{User: quota.Amounts{Sessions: 5, Skills: 3}})
	c.developer.upload(t, "", "other", "Do it.")
	files := map[string]string{}
	for _, dir := range []string{"1/a", "2/a", "3/b", "4/c"} {
		files[dir+"/SKILL.md"] = "---\nname: " + dir[2:] + "\ndescription: Writes.\n---\nWrite.\n"
	}
	for _, apply := range []string{"", "&apply=true"} {
		r = c.developer.migrate(t, "system=wegent"+apply, archiveOf(t, files))
		wantSame(t, "report", r.lines(), []string{"skill a: lost", "skill a: new, kept", "skill b: new, kept", "skill c: lost"})
		if got := r.details("c"); !strings.Contains(got, "quota of the user exceeded (skills: 1 + 3, limit 3)") {
			t.Errorf("the skill: %q of %+v", got, r)
		}
	}
	// A skill in a document over the quota is lost alone.
	upload := archiveOf(t, map[string]string{"k.yaml": "apiVersion: agent.wecode.io/v1\nkind: Skill\nmetadata: {name: prose}\nspec: {description: Writes prose., prompt: Write.}\n---\napiVersion: agent.wecode.io/v1\nkind: Ghost\nmetadata: {name: writer}\nspec: {systemPrompt: Write.}\n"})
	for _, apply := range []string{"", "&apply=true", "&apply=true"} {
		r = c.developer.migrate(t, "system=wegent"+apply, upload)
		if got := r.details("Skill prose"); !strings.Contains(got, "does not fit: quota of the user exceeded (skills: 3 + 1, limit 3)") || !strings.Contains(strings.Join(r.lines(), "\n"), "document Ghost writer: ") || strings.Contains(strings.Join(r.lines(), "\n"), "document Ghost writer: lost") {
			t.Errorf("%q: %s", r.lines(), got)
		}
	}
	// Documents over the quota are lost, and the other items are there.
	c = newGroupHub(t, "")
	c.limit(t, quota.Settings{User: quota.Amounts{Bytes: 10, Sessions: 5}})
	upload = archiveOf(t, filesOf(t, "kinds", "export"))
	for _, apply := range []string{"", "&apply=true"} {
		r = c.developer.migrate(t, "system=wegent"+apply, upload)
		for _, name := range []string{"Ghost helper", "Bot helper"} {
			if got := r.details(name); !strings.Contains(got, "quota of the user exceeded (storage: ") {
				t.Errorf("%s: %q of %+v", name, got, r)
			}
		}
		if len(r.Items) < 3 || r.Done {
			t.Errorf("report %+v", r)
		}
	}
}

// randomText returns n characters that a ZIP cannot pack much, from the given number of
// characters that begin with first.
func randomText(n int, first rune, kinds int) string {
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for range n {
		b.WriteRune(first + rune(random.IntN(kinds)))
	}
	return b.String()
}

// A server whose configuration cannot be stored is lost, and the others are not.
func TestMigrationOfServerThatCannotBeEncoded(t *testing.T) {
	c := newGroupHub(t, "")
	upload := archiveOf(t, map[string]string{".mcp.json": `{"mcpServers": {"big": {"url": "https://big.example.com/mcp", "headers": {"X-Big": "` + randomText(400_000, 0x86, 26) + `"}}, "one": {"url": "https://one.example.com/mcp"}}}`})
	r := c.developer.migrate(t, "system=wegent&apply=true", upload)
	wantSame(t, "report", r.lines(), []string{"server big: lost", "server one: new, kept"})
	if got := r.details("big"); !strings.Contains(got, "its configuration cannot be encoded") {
		t.Errorf("the server: %q", got)
	}
}

// Documents are as large as in a request that applies documents, in total. Those that
// do not fit are lost, and the report says so.
func TestMigrationLimitsDocuments(t *testing.T) {
	c := newGroupHub(t, "")
	files := map[string]string{"s/.mcp.json": `{"mcpServers": {"one": {"url": "https://one.example.com/mcp"}}}`}
	for _, name := range []string{"a", "b", "c"} {
		size := 700 << 10
		if name == "c" {
			size = 1000
		}
		files[name+".yaml"] = "apiVersion: agent.wecode.io/v1\nkind: Ghost\nmetadata: {name: " + name + "}\nspec: {systemPrompt: x}\n#" + randomText(size, 'a', 26) + "\n"
	}
	for _, apply := range []string{"", "&apply=true"} {
		r := c.developer.migrate(t, "system=wegent"+apply, archiveOf(t, files))
		wantSame(t, "report", r.lines(), []string{"document Ghost a: new, kept", "document Ghost c: new, kept", "file b.yaml: lost", "server one: new, kept"})
		if got := r.details("b.yaml"); !strings.Contains(got, "documents and servers are too large (limit 1 MiB in total)") {
			t.Errorf("the second file: %q", got)
		}
	}
}

// Hostile archives are refused, and nothing is left of them.
func TestHostileMigrationsAreRefused(t *testing.T) {
	c := newGroupHub(t, "")
	before := c.stored(t)
	bomb := func(packed int) typed { // 20 files of 30 MiB, from so many bytes each
		var out bytes.Buffer
		w := zip.NewWriter(&out)
		for i := range 20 {
			f := must(w.CreateRaw(&zip.FileHeader{Name: fmt.Sprintf("d%d/x.json", i), Method: zip.Deflate, CompressedSize64: uint64(packed), UncompressedSize64: 30 << 20}))(t)
			must(f.Write(make([]byte, packed)))(t)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return typed{"application/zip", out.String()}
	}
	many := map[string]string{}
	for i := range 50_001 {
		many[fmt.Sprint(i)] = ""
	}
	for what, tt := range map[string]struct {
		body   typed
		status int
		code   string
	}{
		"out of the folder": {typed{"application/zip", slip(t)}, 400, "bad_package"},
		"absolute":          {archiveOf(t, map[string]string{"/etc/x.json": "{}"}), 400, "bad_package"},
		"a drive":           {archiveOf(t, map[string]string{"C:/x.json": "{}"}), 400, "bad_package"},
		"too many files":    {archiveOf(t, many), 400, "bad_package"},
		"a bomb":            {bomb(200 << 10), 400, "bad_package"},
		"no archive":        {typed{"application/zip", "PK but not a ZIP"}, 400, "bad_package"},
		"no gzip":           {typed{"application/zip", "\x1f\x8bxxxx"}, 400, "bad_package"},
		"another type":      {typed{"application/json", "{}"}, 415, "media_type"},
	} {
		t.Run(what, func(t *testing.T) {
			r := c.developer.send(t, "POST", "/api/v1/migrate?system=wegent&apply=true&file_name=x.zip", tt.body)
			if r.status != tt.status || !strings.Contains(r.body, `"code":"`+tt.code+`"`) {
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
	// Files that unpack to far more than their size are not read.
	r := c.developer.migrate(t, "system=wegent&apply=true", bomb(1000))
	if len(r.Items) > 0 || r.Done {
		t.Errorf("files that unpack to too much: %+v", r)
	}
	r = c.developer.migrate(t, "system=wegent&file_name=x.json&apply=true", typed{"application/octet-stream", `{"mcpServers": {}, "title": ` + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000) + "}"})
	if r.Done {
		t.Errorf("deep nesting: %+v", r)
	}
	c.developer.send(t, http.MethodPost, "/api/v1/migrate?system=notes", archiveOf(t, many)).wantProblem(t, 422, "invalid")
	wantSame(t, "what is stored", c.stored(t), before)
	c.wantNoUploads(t)
}

// Texts of the upload are neutralised in the report and in conversations.
func TestTextsOfMigrationsAreCleaned(t *testing.T) {
	c := newGroupHub(t, "")
	for _, text := range untrustedtest.Hostile() {
		text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\x01")
		quoted := string(must(json.Marshal(text))(t))
		upload := archiveOf(t, map[string]string{
			"a.json":          `{"title": ` + quoted + `, "messages": [{"role": "user", "content": ` + quoted + `}, {"role": "assistant", "content": "so", "loaded_skills": [` + quoted + `]}]}`,
			"b.json":          `{"mcpServers": {` + quoted + `: {"command": ` + quoted + `, "env": {` + quoted + `: ` + quoted + `}}}}`,
			"k.yaml":          "apiVersion: agent.wecode.io/v1\nkind: Ghost\nmetadata: {name: " + quoted + "}\nspec: {" + quoted + ": 1}\n",
			"skills/SKILL.md": untrustedtest.Skill("skill", text), "skills/x/SKILL.md": text,
		})
		r := c.developer.send(t, "POST", "/api/v1/migrate?system=wegent&apply=true", upload).want(t, 200)
		var v migrationReport
		r.into(t, &v)
		for _, i := range v.Items {
			for _, s := range append(i.Details, i.Name, i.From, i.Does) {
				if report := untrusted.Inspect(s); !report.Clean() {
					t.Errorf("%s in %q", report, s)
				}
			}
			if i.Kind == "conversation" && i.ID != "" {
				for _, s := range c.developer.lines(t, "/api/v1/sessions/"+i.ID) {
					if report := untrusted.Inspect(s); !report.Clean() {
						t.Errorf("conversation: %s in %q", report, s)
					}
				}
			}
		}
	}
}
