package chat

import (
	"encoding/base64"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// track returns the values that a share of a branch must not contain.
func track(secrets []StoredSecret, path []step) *secretTracker {
	t := newSecretTracker(secrets)
	for _, s := range path {
		t.observe(&s)
	}
	return t
}

// What happens in a turn.
func says(text string) step {
	return turn(session.Event{Message: &session.Message{Role: llm.User, Text: text}})
}
func answers(text string) step {
	return turn(session.Event{Message: &session.Message{Role: llm.Assistant, Text: text}})
}
func calls(tool, arguments string) step {
	return turn(session.Event{Message: &session.Message{Role: llm.Assistant, Calls: []llm.Call{{ID: "1", Name: tool, Arguments: arguments}}}})
}
func results(text string) step {
	return turn(session.Event{Result: &session.CallResult{Call: "1", Text: text}})
}
func loads(skill string, tools ...string) step {
	return turn(session.Event{Loaded: &session.SkillLoad{Skill: session.ID{Name: skill}, Tools: tools}})
}
func turn(e session.Event) step { return step{Event: e, Turn: 1} }

func imported(steps ...step) []step {
	for i := range steps {
		steps[i].Turn = 0
	}
	return steps
}

// A secret of a group is replaced wherever it may have come from a skill, a server, a
// member of a team or a file. That the user wrote it is no reason: the preview would say
// whether a guess is right.
func TestSecretsOfGroups(t *testing.T) {
	const value = "the-group's-secret"
	secrets := []StoredSecret{{Owner: "group:support", Name: "KEY", Value: value, Skills: []string{"tides"}, Servers: []string{"wiki"}}}
	encoded := base64.StdEncoding.EncodeToString([]byte("x:" + value))
	for name, path := range map[string][]step{
		"in a message":             {says("is it " + value + "?")},
		"the model repeats it":     {says("is it " + value + "?"), answers("is it " + value + "?"), calls("wiki__search", `{"query":"`+value+`"}`), results("none")},
		"in an imported message":   imported(says("is it "+value+"?"), answers("is it "+value+"?")),
		"of another secret":        {calls("wiki__search", `{}`), results("another-secret")},
		"other text of the member": {calls("hand_task", `{"member":"clerk"}`), results("clerk answers: done")},
	} {
		if got := track(secrets, path).values(); len(got) > 0 {
			t.Errorf("%s: %q is replaced", name, got)
		}
	}
	for name, path := range map[string][]step{
		"of a server":                   {calls("wiki__search", `{}`), results("it is " + value), answers(value)},
		"encoded":                       {calls("call_tool", `{"name":"wiki__search"}`), results(encoded)},
		"encoded in lines":              {calls("call_tool", `{"name":"wiki__search"}`), results(wrap(value, "\n"))},
		"of a script":                   {calls("run_skill_script", `{"skill":"tides"}`), results(value)},
		"of a tool of a skill":          {loads("tides", "gauge__read"), calls("gauge__read", `{}`), results(value)},
		"of a member of the team":       {calls("hand_task", `{"member":"clerk"}`), results("clerk answers: " + value)},
		"of a file that a script wrote": {calls("run_skill_script", `{"skill":"tides"}`), results("done"), calls("read_file", `{"path":"key.txt"}`), results(value)},
		"of a command":                  {calls("run_command", `{"command":"cat key.txt"}`), results(value)},
		"of a skill without a grant":    {calls("run_skill_script", `{"skill":"ships"}`), results(value)},
		"imported":                      imported(calls("wiki__search", `{}`), results(value)),
		"written before":                {says(value), calls("wiki__search", `{}`), results(value)},
		"in the arguments before":       {calls("wiki__search", `{"query":"`+value+`"}`), results("nothing found for " + value)},
		"in instructions":               {turn(session.Event{Loaded: &session.SkillLoad{Text: "use " + value}})},
		"the model knows it":            {says("what is it?"), answers(value), says(value)},
		"in a call of the model":        {says("sign in"), calls("fetch", `{"password":"`+value+`"}`)},
		"in thinking":                   {turn(session.Event{Message: &session.Message{Role: llm.Assistant, Thinking: []llm.Thinking{{Text: value}}}})},
	} {
		if got := track(secrets, path).values(); !slices.Equal(got, []string{value}) {
			t.Errorf("%s: %q is replaced", name, got)
		}
	}
	tracker := track(secrets, []step{says("write it to the file")})
	tracker.observeFiles([]SharedFile{{Path: "key.txt", text: "KEY=" + value}})
	if got := tracker.values(); !slices.Equal(got, []string{value}) {
		t.Errorf("in a shared file: %q is replaced", got)
	}
	own := []StoredSecret{{Owner: "user:ada", Name: "KEY", Value: "my-own-secret", Own: true}}
	if got := track(own, nil).values(); !slices.Equal(got, []string{"my-own-secret"}) {
		t.Errorf("own: %q", got)
	}
}

// A secret that cannot be decrypted prevents a share only if the conversation used it.
func TestUncheckedSecrets(t *testing.T) {
	secrets := []StoredSecret{{Owner: "user:ada", Name: "MINE", Own: true}, {Owner: "user:ada", Name: "WIKI", Own: true, Servers: []string{"wiki"}},
		{Owner: "group:support", Name: "TIDES", Skills: []string{"tides"}}, {Owner: "group:support", Name: "SHIPS", Skills: []string{"ships"}}}
	unused := []UncheckedSecret{{Owner: "user:ada", Name: "MINE"}, {Owner: "user:ada", Name: "WIKI"}}
	got := track(secrets, []step{says("hello"), calls("ships__list", `{}`), results("none")}).unchecked()
	if diff := cmp.Diff(unused, got); diff != "" || checkUnchecked(got) != nil {
		t.Errorf("error %v, got + and want -:\n%s", checkUnchecked(got), diff)
	}
	got = track(secrets, []step{calls("hand_task", `{"member":"clerk"}`), results("done")}).unchecked()
	if len(got) != 4 || checkUnchecked(got) == nil { // the member may have used them
		t.Errorf("error %v, got %+v", checkUnchecked(got), got)
	}
	used := []UncheckedSecret{{Owner: "user:ada", Name: "MINE"}, {Owner: "user:ada", Name: "WIKI", Used: true}, {Owner: "group:support", Used: true}}
	got = track(secrets, []step{calls("wiki__search", `{}`), results("x"), calls("run_skill_script", `{"skill":"tides"}`), results("x")}).unchecked()
	if diff := cmp.Diff(used, got); diff != "" || checkUnchecked(got) == nil {
		t.Errorf("error %v, got + and want -:\n%s", checkUnchecked(got), diff)
	}
}
