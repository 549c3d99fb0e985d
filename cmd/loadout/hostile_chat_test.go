package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/untrusted/untrustedtest"
)

// asksForAll is an answer of a model with a call of a tool for each of the arguments.
func asksForAll(tool string, arguments ...map[string]any) string {
	var calls []any
	for i, a := range arguments {
		calls = append(calls, map[string]any{"index": i, "id": fmt.Sprintf("%s-%d", tool, i), "function": map[string]any{"name": tool, "arguments": jsonOf(a)}})
	}
	return jsonOf(map[string]any{"tool_calls": calls})
}

// received calls check with each text that the model got, except the user's messages
// and its own.
func (v *vendor) received(check func(what, text string)) {
	var walk func(what string, value any)
	walk = func(what string, value any) {
		switch value := value.(type) {
		case string:
			check(what, value)
			var inner any
			if json.Unmarshal([]byte(value), &inner) == nil { // escaped text in a result
				walk(what, inner)
			}
		case []any:
			for _, e := range value {
				walk(what, e)
			}
		case map[string]any:
			for k, e := range value {
				check(what, k)
				walk(what, e)
			}
		}
	}
	last := v.requests[len(v.requests)-1]
	walk("tools", last["tools"])
	for _, m := range last["messages"].([]any) {
		if m := m.(map[string]any); m["role"] != "assistant" && m["role"] != "user" {
			walk(fmt.Sprint(m["role"], " ", m["tool_call_id"]), m["content"])
		}
	}
}

// Neither the terminal nor the model gets hidden characters or delimiters of skills, of
// the model's arguments, or of its answer.
func TestHostileFieldsAreCleanedInChat(t *testing.T) {
	all := untrustedtest.Hostile()
	const batch = 30
	for start := 0; start < len(all); start += batch {
		dir := t.TempDir()
		var named, hostile, scripts []map[string]any
		var answer []string
		for i, text := range all[start:min(start+batch, len(all))] {
			name := "skill-" + strconv.Itoa(i)
			writeSkill(t, dir, name, text)
			text = strings.ToValidUTF8(text, "\ufffd")
			named, hostile = append(named, map[string]any{"name": name}), append(hostile, map[string]any{"name": text})
			scripts = append(scripts, map[string]any{"skill": name, "script": text})
			answer = append(answer, text)
		}
		v := newVendor(t, asksForAll("search_skills", map[string]any{"query": "charts", "limit": 50}), asksForAll("load_skill", named...), asksForAll("load_skill", hostile...),
			asksForAll("run_skill_script", scripts...), asksForAll("call_tool", hostile...), asksForAll("read_skill_file", scripts...), jsonOf(map[string]string{"content": strings.Join(answer, "\n\n")}))
		check := func(what, got string) {
			t.Helper()
			if leak := untrusted.Inspect(got); !leak.Clean() {
				t.Errorf("from %d: %s: %s in %.300q", start, what, leak, got)
			}
		}
		got := chats(t.Context(), t, "", "-p", "Go.", "--model", "openai:x", "--base-url", v.URL+"/v1", "--skills", dir)
		if got.code != 0 || len(v.answers) > 0 {
			t.Fatalf("from %d: %+v", start, got)
		}
		check("standard output", got.stdout)
		check("standard error", got.stderr)
		v.received(func(what, text string) {
			check(what, text)
			if forged := untrustedtest.Forged(text); forged != "" {
				t.Errorf("from %d: %s: forged %s", start, what, forged)
			}
		})
		// The built-in demo repeats the message, and searches for it.
		for _, format := range [][]string{nil, {"--json"}} {
			got = chats(t.Context(), t, strings.Join(answer, "\n"), append(format, "--model", "demo", "--skills", dir)...)
			check("standard output of the demo", got.stdout)
			check("standard error of the demo", got.stderr)
		}
	}
}

// A model of a chat gets a body with hidden characters after a warning if it is the
// user's own, and from a project or a given directory not at all.
func TestHostileBodiesAreRefusedOrMarkedInChat(t *testing.T) {
	hidden := map[string]string{}
	for i, text := range untrustedtest.Hostile() {
		text = strings.ToValidUTF8(text, "\u202e")
		if untrustedtest.Hidden(strings.ReplaceAll(text, "\r", "")) != "" && !strings.ContainsRune(text, 0) { // not only a delimiter
			hidden["skill-"+strconv.Itoa(i)] = text
		}
	}
	for _, of := range []string{"user", "project", "given"} {
		t.Run(of, func(t *testing.T) {
			home := t.TempDir()
			dir := filepath.Join(home, ".agents", "skills")
			var loads, reads []map[string]any
			for name, text := range hidden {
				for file, data := range map[string]string{"SKILL.md": "---\nname: " + name + "\ndescription: A skill.\n---\nBefore " + text + " after.\n", "data.txt": "Text: " + text} {
					if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(dir, name, file), []byte(data), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				loads, reads = append(loads, map[string]any{"name": name}), append(reads, map[string]any{"skill": name, "path": "data.txt"})
			}
			v := newVendor(t, asksForAll("load_skill", loads...), asksForAll("read_skill_file", reads...), `{"content":"done"}`)
			args := []string{"-p", "Go.", "--model", "openai:x", "--base-url", v.URL + "/v1"}
			own := of == "user"
			switch of {
			case "project":
				t.Chdir(home)
				home = t.TempDir()
			case "given":
				args = append(args, "--skills", dir)
				home = t.TempDir()
			}
			if got := chatsAt(t.Context(), t, home, "", args...); got.code != 0 || !untrusted.Inspect(got.stdout+got.stderr).Clean() {
				t.Fatalf("%+v", got)
			}
			results := map[string]string{}
			for _, m := range v.requests[len(v.requests)-1]["messages"].([]any) {
				if m := m.(map[string]any); m["role"] == "tool" {
					results[fmt.Sprint(m["tool_call_id"])] = fmt.Sprint(m["content"])
				}
			}
			for i := range loads {
				text := hidden[loads[i]["name"].(string)]
				for _, call := range []string{"load_skill", "read_skill_file"} {
					got := results[fmt.Sprintf("%s-%d", call, i)]
					switch warning, at := strings.Index(got, "Warning: "), strings.Index(got, text); {
					case own && (warning < 0 || at < warning):
						t.Errorf("%s: %+q: no warning before it: %.400q", call, text, got)
					case !own && (untrustedtest.Hidden(got) != "" || !strings.Contains(got, "needs approval")):
						t.Errorf("%s: %+q: not refused: %.400q", call, text, got)
					}
				}
			}
		})
	}
}

// The slash commands print no hidden characters, neither of skills nor of their
// arguments.
func TestHostileFieldsAreCleanedInSlashCommands(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	for i, text := range untrustedtest.Hostile() {
		name := "skill-" + strconv.Itoa(i)
		skill := writeSkill(t, dir, name, text)
		text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\ufffd"), func(r rune) bool { return r == '\n' || r == '\r' || r == 0 }), " ")
		lines := []string{"/load " + text}
		if untrustedtest.Selected(i, 1) {
			lines = append(lines, "/help "+name)
		}
		if untrustedtest.All() || i%8 == 0 { // the others print their arguments in the same way
			lines = append(lines, "/skills", "/load "+name, "/help "+text, "/unload "+text, "/model "+text, "/resume "+text, "/"+text)
		}
		for _, line := range lines {
			got := chatsAt(t.Context(), t, home, "", "-p", line, "--model", "demo", "--skills", skill)
			for what, printed := range map[string]string{"standard output": got.stdout, "standard error": got.stderr} {
				if leak := untrusted.Inspect(printed); !leak.Clean() {
					t.Errorf("%+q: %s: %s in %.300q", line, what, leak, printed)
				}
			}
			if got.stdout+got.stderr == "" {
				t.Errorf("%+q prints nothing", line)
			}
		}
	}
}
