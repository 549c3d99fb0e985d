package hub_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/usage"
)

// A user may choose the hub's models and those visible to the user. Only their known
// properties are shown.
func TestModels(t *testing.T) {
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true,
		Price: func(model string) (usage.Price, bool) {
			return usage.Price{Input: 3, Output: 15}, model == "anthropic:big"
		}})
	root := n.signIn(t, "root", secret)
	_, ada := n.newUser(t, root, "ada")
	_, bob := n.newUser(t, root, "bob")
	for name, spec := range map[string]map[string]string{
		"big":  {"vendor": "anthropic", "model": "big", "apiKey": "${{secrets.KEY}}"},
		"near": {"vendor": "openai", "model": "small", "baseUrl": "https://models.example.com/v1"},
	} {
		ada.send(t, "PUT", "/api/v1/kinds/Model/default/"+name, map[string]any{"kind": "Model", "metadata": map[string]string{"name": name}, "spec": spec}).want(t, 200)
	}
	digest := "" // of big
	list := func(c caller) []string {
		t.Helper()
		var out struct {
			Items []struct {
				Own               bool
				Name, Vendor, Key string
				Model, Namespace  string
				Digest            string
				Window            int
				Price             *struct{ Input, Output float64 }
			}
		}
		c.send(t, "GET", "/api/v1/models", nil).want(t, 200).into(t, &out)
		var all []string
		for _, m := range out.Items {
			text := strings.Join([]string{m.Namespace, m.Name, m.Vendor, m.Model, m.Key}, " ")
			if m.Name == "big" {
				digest = m.Digest
			}
			if m.Own {
				text = "own" + text
			}
			if m.Price != nil {
				text += " priced"
			}
			all = append(all, text)
		}
		return all
	}
	const own = "own  demo rules operator"
	if got, want := list(ada), []string{own, "default big anthropic big missing priced", "default near openai small none"}; !slices.Equal(got, want) {
		t.Errorf("ada may choose %q, want %q", got, want)
	}
	var page struct {
		Items []struct {
			Default, Images bool
			Name            string
		}
	}
	ada.send(t, "PUT", "/api/v1/kinds/Ghost/default/g", map[string]any{"kind": "Ghost", "metadata": map[string]string{"name": "g"}, "spec": map[string]any{}}).want(t, 200)
	ada.send(t, "PUT", "/api/v1/kinds/Bot/default/b", map[string]any{"kind": "Bot", "metadata": map[string]string{"name": "b"}, "spec": map[string]string{"ghostRef": "g", "modelRef": "near"}}).want(t, 200)
	ada.send(t, "GET", "/api/v1/models?agent=Bot/default/b", nil).want(t, 200).into(t, &page)
	if first := page.Items[0]; first.Name != "near" || !first.Default || first.Images || len(page.Items) != 3 {
		t.Errorf("for the agent, she may choose %+v", page.Items)
	}
	ada.send(t, "PUT", "/api/v1/kinds/Model/default/near", map[string]any{"kind": "Model", "metadata": map[string]string{"name": "near"}, "spec": map[string]any{"vendor": "openai", "model": "small", "baseUrl": "https://models.example.com/v1", "images": true}}).want(t, 200)
	page.Items = nil
	ada.send(t, "GET", "/api/v1/models?agent=Ghost/default/g", nil).want(t, 200).into(t, &page)
	if first := page.Items[0]; first.Name != "" || !first.Default || !page.Items[2].Images {
		t.Errorf("for an agent without a model, she may choose %+v", page.Items)
	}
	bob.send(t, "GET", "/api/v1/models?agent=Bot/default/b", nil).wantProblem(t, 404, "not_found")
	ada.send(t, "GET", "/api/v1/models?agent=b", nil).wantProblem(t, 422, "invalid")
	if got := list(bob); !slices.Equal(got, []string{own}) {
		t.Errorf("bob may choose %q", got)
	}
	ada.send(t, "PUT", "/api/v1/secrets/KEY", map[string]string{"value": "correct-horse"}).want(t, 204)
	ada.send(t, "POST", "/api/v1/secrets/KEY/grants", map[string]string{"kind": "Model", "name": "big", "digest": digest}).want(t, 204)
	if got := list(ada)[1]; got != "default big anthropic big granted priced" {
		t.Errorf("with a key it is %q", got)
	}
}

// The hub describes itself and the permissions of the user.
func TestAboutAndPermissions(t *testing.T) {
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Public: "https://hub.example.com"})
	root := n.signIn(t, "root", secret)
	adaID, ada := n.newUser(t, root, "ada")
	var about struct {
		Version, Mode, URL, MCP string
		Sandbox                 bool
		Limits                  map[string]int
	}
	ada.send(t, "GET", "/api/v1/about", nil).want(t, 200).into(t, &about)
	if about.Version != "test" || about.Mode != "accounts" || about.URL != "https://hub.example.com" || about.MCP != about.URL+"/mcp" || about.Sandbox {
		t.Errorf("it is %+v", about)
	}
	if l := about.Limits; l["package"] != 10<<20 || l["package_files"] != 512 || l["package_unpacked"] != 16<<20 || l["message"] != 256<<10 || l["session_file"] != 8<<20 || l["body"] != 32<<20 || l["migration"] != 96<<20 {
		t.Errorf("its limits are %v", l)
	}
	group := must(n.DB().Groups.Create(t.Context(), store.Group{Name: "crew"}))(t)
	can := func(c caller) string {
		t.Helper()
		var me struct{ Can json.RawMessage }
		c.send(t, "GET", "/api/v1/me", nil).want(t, 200).into(t, &me)
		return strings.ReplaceAll(string(me.Can), group.ID, "GROUP")
	}
	wantEqual(t, can(ada), `{"admin":false,"chat":true,"upload":["default"],"review":[],"servers":["default"],"members":[],"new_groups":false,"invite":[],"share":true}`)
	for role, want := range map[account.Role]string{
		account.Developer:  `{"admin":false,"chat":true,"upload":["default","GROUP"],"review":[],"servers":["default"],"members":[],"new_groups":false,"invite":[],"share":true}`,
		account.Maintainer: `{"admin":false,"chat":true,"upload":["default","GROUP"],"review":["GROUP"],"servers":["default","GROUP"],"members":["GROUP"],"new_groups":false,"invite":[],"share":true}`,
	} {
		if err := n.DB().Groups.SetMember(t.Context(), store.Member{GroupID: group.ID, UserID: adaID, Role: store.Role(role.String())}); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, can(ada), want)
	}
	wantEqual(t, can(root), `{"admin":true,"chat":true,"upload":["default","public"],"review":["public","*"],"servers":["default","public"],"members":["*"],"new_groups":true,"invite":["*"],"share":true}`)
}
