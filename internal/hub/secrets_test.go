package hub_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
)

// The value of a secret is in nothing that a hub says or keeps: no answer, no error, no
// log, no record, and no file.
func TestSecretsAreNeverReturned(t *testing.T) {
	const value = "correct-horse-battery-staple"
	web := guarded(t, "another")
	data := t.TempDir()
	n, root, ada := rootAndAda(t, hub.Options{Data: data, Private: loopback})
	var stderr strings.Builder
	ask := func(c caller, method, path string, body any) reply {
		t.Helper()
		r := c.send(t, method, path, body)
		stderr.WriteString(r.body + "\n")
		return r
	}
	ask(ada, "POST", "/api/v1/apply", typed{"text/yaml", "kind: MCPServer\nmetadata: {name: s}\nspec: {url: \"" + web.URL + "\", headers: {Authorization: \"Bearer ${{secrets.KEY}}\"}}\n---\n" +
		"kind: Model\nmetadata: {name: m}\nspec: {vendor: openai, model: m-1, apiKey: \"${{secrets.KEY}}\"}\n---\nkind: Ghost\nmetadata: {name: g}\n---\nkind: Bot\nmetadata: {name: b}\nspec: {ghostRef: g, modelRef: m}\n"}).want(t, 200)
	ask(ada, "PUT", "/api/v1/secrets/KEY", map[string]string{"value": value}).want(t, 204)
	ask(ada, "PUT", "/api/v1/secrets/KEY", map[string]string{"value": value + strings.Repeat("x", 70_000)}).wantProblem(t, 422, "invalid")
	ask(ada, "PUT", "/api/v1/secrets/not%20a%20name", map[string]string{"value": value}).wantProblem(t, 422, "invalid")
	ask(ada, "PUT", "/api/v1/secrets/KEY?owner=nobody", map[string]string{"value": value}).wantProblem(t, 404, "not_found")
	ask(ada, "PUT", "/api/v1/secrets/KEY?owner=server:none", map[string]string{"value": value}).wantProblem(t, 404, "not_found")
	ask(ada, "PUT", "/api/v1/secrets/KEY", map[string]any{"value": []string{value}}).wantProblem(t, 422, "invalid")

	digest := func(path string) string {
		var out struct {
			Items  []struct{ Digest string }
			Status struct{ Digest string }
		}
		ask(ada, "GET", path, nil).want(t, 200).into(t, &out)
		if len(out.Items) > 0 {
			return out.Items[0].Digest
		}
		return out.Status.Digest
	}
	grant := func(kind, name, digest string) reply {
		return ask(ada, "POST", "/api/v1/secrets/KEY/grants", map[string]string{"kind": kind, "name": name, "digest": digest})
	}
	server, model := digest("/api/v1/servers/MCPServer/default/s"), digest("/api/v1/kinds/Model/default/m")
	grant("MCPServer", "s", model).wantProblem(t, 409, "changed")
	grant("MCPServer", "s", server).want(t, 204)
	grant("Model", "m", model).want(t, 204)
	if p := ada.profile(t, "Bot/default/b"); p.Model.Key != "granted" {
		t.Errorf("%+v", p.Model)
	}
	// The server repeats the secret in its error.
	r := ask(ada, "POST", "/api/v1/servers/test", map[string]string{"kind": "MCPServer", "name": "s"}).want(t, 200)
	if strings.Contains(r.body, `"success":true`) {
		t.Error(r.body)
	}
	for _, path := range []string{"secrets", "secrets/KEY/grants", "servers", "servers/MCPServer/default/s", "kinds/MCPServer", "kinds/Model/default/m", "kinds/Bot/default/b/profile", "audit?actor=me"} {
		ask(ada, "GET", "/api/v1/"+path, nil).want(t, 200)
	}
	ask(root, "GET", "/api/v1/audit?limit=500", nil).want(t, 200)
	ask(ada, "DELETE", "/api/v1/secrets/KEY/grants?digest="+server, nil).want(t, 204)
	if r := ask(ada, "GET", "/api/v1/secrets/KEY/grants", nil); strings.Count(r.body, `"digest"`) != 1 {
		t.Error(r.body)
	}
	for what, text := range map[string]string{"an answer": stderr.String(), "the log": n.log.String(), "a file": contents(t, data)} {
		if strings.Contains(text, value) {
			t.Errorf("the value is in %s", what)
		}
	}
	ask(ada, "DELETE", "/api/v1/secrets/KEY", nil).want(t, 204)
	ask(ada, "DELETE", "/api/v1/secrets/KEY", nil).wantProblem(t, 404, "not_found")
}

// contents are all files of a directory.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		all.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
