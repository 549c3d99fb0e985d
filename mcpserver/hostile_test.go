package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/untrusted/untrustedtest"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
)

// Each answer of the server that carries fields of skills, in each protocol.
func answers(c *wire, names []string) map[string]string {
	told := c.told()
	out := map[string]string{"instructions": told.instructions, "tools/list": told.tools,
		"prompts/list": string(c.ok("prompts/list", nil)), "resources/list": string(c.ok("resources/list", nil))}
	text, content := c.tool("search_skills", args{"query": "", "limit": 50})
	out["search_skills"], out["search_skills, structured"] = text, string(content)
	if c.version == modern {
		out["skills/list"] = string(c.ok("skills/list", nil))
	}
	for _, name := range names {
		text, content := c.tool("load_skill", args{"name": name})
		out["load_skill "+name], out["load_skill, structured "+name] = text, string(content)
		out["prompts/get "+name] = string(c.ok("prompts/get", args{"name": name}))
	}
	return out
}

func TestHostileFieldsAreCleanedInEveryAnswer(t *testing.T) {
	all := untrustedtest.Hostile()
	for start := 0; start < len(all); start += 50 {
		tree, names := files{}, []string{}
		for i, text := range all[start:min(start+50, len(all))] {
			name := "skill-" + strconv.Itoa(i)
			tree[name+"/SKILL.md"] = untrustedtest.Skill(name, text)
			names = append(names, name)
		}
		for _, how := range []way{{"stdio", legacy}, {"http", modern}} {
			t.Run(fmt.Sprintf("%s from %d", how, start), func(t *testing.T) {
				dir := t.TempDir()
				tree.write(t, dir)
				w := newWorld(t, setup{sources: []catalog.Source{catalog.NewDir("clone", catalog.Project, dir, nil)}})
				for answer, got := range answers(w.begin(t, how), names) {
					if leak := untrustedtest.Hidden(strings.ReplaceAll(decoded(t, got), "\n", " ")); leak != "" && answer != "skills/list" {
						t.Errorf("%s: hidden %s", answer, leak)
					}
					// A field of one line joins the lines of an isolate, so that it is closed.
					if found := untrusted.Inspect(decoded(t, got)); !found.Clean() {
						t.Errorf("%s: %s", answer, found)
					}
					if forged := untrustedtest.Forged(decoded(t, got)); forged != "" {
						t.Errorf("%s: forged %s", answer, forged)
					}
				}
			})
		}
	}
}

// ownTags matches the tags that an earlier system puts around its messages.
var ownTags = regexp.MustCompile(`</?command-(message|name)>`)

// The tools of earlier systems carry the description and the files too.
func TestHostileFieldsAreCleanedForEarlierSystems(t *testing.T) {
	tree, names := files{}, []string{}
	for i, text := range untrustedtest.Hostile() {
		name := "skill-" + strconv.Itoa(i)
		tree[name+"/SKILL.md"] = untrustedtest.Skill(name, text)
		names = append(names, name)
	}
	everyCompat(t, func(t *testing.T, compat, tool string) {
		w := newWorld(t, setup{tree: tree, options: mcpserver.Options{Compat: compat}})
		c := w.begin(t, way{"stdio", legacy})
		for _, name := range names {
			text, content := c.tool(tool, args{"skill_name": name})
			got := ownTags.ReplaceAllString(text+"\n"+decoded(t, string(content)), "")
			if leak := untrustedtest.Hidden(strings.ReplaceAll(got, "\n", " ")) + untrustedtest.Forged(got); leak != "" {
				t.Errorf("%s: %s", name, leak)
			}
		}
	})
}

// decoded returns the strings in a JSON document, or the text itself if it is
// not JSON.
func decoded(t *testing.T, text string) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	var out []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for k, x := range v {
				out = append(out, k)
				walk(x)
			}
		}
	}
	walk(v)
	return strings.Join(out, "\n")
}

func TestLegitimateDescriptionsAreUnchangedInEveryAnswer(t *testing.T) {
	tree := files{}
	for i, text := range untrustedtest.Legitimate() {
		name := "skill-" + strconv.Itoa(i)
		tree[name+"/SKILL.md"] = "---\nname: " + name + "\ndescription: " + untrustedtest.YAML(text) + "\n---\nDo it.\n"
	}
	w := newWorld(t, setup{tree: tree})
	c := w.begin(t, way{"stdio", modern})
	lists := decoded(t, string(c.ok("prompts/list", nil))) + decoded(t, string(c.ok("resources/list", nil)))
	for _, text := range untrustedtest.Legitimate() {
		if !strings.Contains("\n"+lists+"\n", "\n"+text+"\n") {
			t.Errorf("%+q is not in the lists", text)
		}
	}
}

// Errors repeat what a model or a file says, and are cleaned too.
func TestHostileErrorsAreCleaned(t *testing.T) {
	w := newWorld(t, setup{tree: basic()})
	c := w.begin(t, way{"stdio", modern})
	for _, text := range untrustedtest.Hostile() {
		text = strings.ToValidUTF8(text, "\ufffd")
		for tool, arguments := range map[string]args{"load_skill": {"name": text}, "read_skill_file": {"skill": "pdf", "path": text}} {
			got, content := c.tool(tool, arguments)
			if leak := untrustedtest.Hidden(got+decoded(t, string(content))) + untrustedtest.Forged(got+decoded(t, string(content))); leak != "" {
				t.Errorf("%s: %+q: %s", tool, text, leak)
			}
		}
	}
}

// bodySkill returns a SKILL.md with text in its instructions.
func bodySkill(name, text string) string {
	return "---\nname: " + name + "\ndescription: A skill.\n---\nBefore " + text + " after.\n"
}

// readAll returns the answers that contain the text of a skill or of its file.
func readAll(c *wire, name string) map[string]string {
	out := map[string]string{}
	for tool, arguments := range map[string]args{"load_skill": {"name": name}, "read_skill_file": {"skill": name, "path": "data.txt"}} {
		text, content := c.tool(tool, arguments)
		out[tool], out[tool+", structured"] = text, string(content)
	}
	for method, params := range map[string]args{"prompts/get": {"name": name}, "resources/read": {"uri": "skill://" + name + "/SKILL.md"}} {
		res := c.request(method, params)
		if out[method] = string(res.Result); res.Error != nil {
			out[method] = res.Error.Message
		}
	}
	return out
}

func TestHostileBodiesAreRefusedOrMarkedInEveryAnswer(t *testing.T) {
	tree, hidden := files{}, map[string]string{}
	for i, text := range untrustedtest.Hostile() {
		text = strings.ToValidUTF8(text, "\u202e")
		if untrustedtest.Hidden(strings.ReplaceAll(text, "\r", "")) == "" || strings.ContainsRune(text, 0) {
			continue // only a delimiter
		}
		name := "skill-" + strconv.Itoa(i)
		hidden[name], tree[name+"/SKILL.md"], tree[name+"/data.txt"] = text, bodySkill(name, text), "Text: "+text
	}
	for _, scope := range []catalog.Scope{catalog.Project, catalog.User} {
		t.Run(scope.String(), func(t *testing.T) {
			dir := t.TempDir()
			tree.write(t, dir)
			w := newWorld(t, setup{sources: []catalog.Source{catalog.NewDir("clone", scope, dir, nil)}, scripts: &loadout.Scripts{Grants: policy.NewMemoryStore()}})
			c := w.begin(t, way{"stdio", modern})
			for name, text := range hidden {
				for answer, got := range readAll(c, name) {
					got = decoded(t, got)
					switch warning := strings.Index(got, "Warning: "); {
					case scope == catalog.User && strings.HasSuffix(answer, "structured") && got == "": // the text is elsewhere
					case scope == catalog.User && (warning < 0 || !strings.Contains(got, text)):
						t.Errorf("%s: %+q: no warning, or other text: %+q", answer, text, got)
					case scope == catalog.User && answer != "resources/read" && !strings.HasSuffix(answer, "structured") && warning > strings.Index(got, text):
						t.Errorf("%s: %+q: the warning does not precede it: %+q", answer, text, got)
					case scope == catalog.Project && untrustedtest.Hidden(got) != "":
						t.Errorf("%s: %+q: delivered: %+q", answer, text, got)
					case scope == catalog.Project && !strings.HasSuffix(answer, "structured") && !strings.Contains(got, "needs approval: "):
						t.Errorf("%s: %+q: no reason: %+q", answer, text, got)
					}
				}
			}
		})
	}
}

// A client may decode a blob. A byte that is no UTF-8 must not make hidden text of a
// project pass as one.
func TestHiddenTextInBlobsIsRefused(t *testing.T) {
	const body = "---\nname: blob\ndescription: Blobs.\n---\nDo it.\n"
	dir := t.TempDir()
	files{"blob/SKILL.md": body, "blob/latin.md": "Do \U000E0041 it.\xff", "blob/nul.txt": "Do \u202e it.\x00", "blob/wide.json": "\xff\xfe{\x00}\x00",
		"blob/data.bin": "\xff\x00"}.write(t, dir)
	w := newWorld(t, setup{sources: []catalog.Source{catalog.NewDir("clone", catalog.Project, dir, nil)}, scripts: &loadout.Scripts{Grants: policy.NewMemoryStore()}})
	c := w.begin(t, way{"stdio", modern})
	for _, file := range []string{"latin.md", "nul.txt", "wide.json"} {
		if res := c.request("resources/read", args{"uri": "skill://blob/" + file}); res.Error == nil || !strings.Contains(res.Error.Message, "needs approval: ") {
			t.Errorf("%s: delivered: %s", file, res.Result)
		}
	}
	c.ok("resources/read", args{"uri": "skill://blob/data.bin"})
}

func TestLegitimateBodiesAreUnchangedInEveryAnswer(t *testing.T) {
	tree := files{}
	for i, text := range untrustedtest.Legitimate() {
		name := "skill-" + strconv.Itoa(i)
		tree[name+"/SKILL.md"], tree[name+"/data.txt"] = bodySkill(name, text), text
	}
	dir := t.TempDir()
	tree.write(t, dir)
	w := newWorld(t, setup{sources: []catalog.Source{catalog.NewDir("clone", catalog.Project, dir, nil)}, scripts: &loadout.Scripts{Grants: policy.NewMemoryStore()}})
	c := w.begin(t, way{"stdio", modern})
	for i, text := range untrustedtest.Legitimate() {
		for answer, got := range readAll(c, "skill-"+strconv.Itoa(i)) {
			if strings.Contains(answer, "prompts/get") && strings.Contains(text, "$") {
				continue // the arguments of the prompt
			}
			if got != "" && !strings.Contains(got, text) && !strings.Contains(decoded(t, got), text) || strings.Contains(got, "Warning: ") {
				t.Errorf("%s: %+q: %+q", answer, text, got)
			}
		}
	}
}
