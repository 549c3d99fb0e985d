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

// A preview must not say whether a guess is a secret of a group. Only what a skill or
// server that receives the secret has told already is replaced.
func TestPreviewConfirmsNoGuesses(t *testing.T) {
	const value = "the-group's-secret"
	secrets := []StoredSecret{{Owner: "group:support", Name: "KEY", Value: value, Skills: []string{"tides"}, Servers: []string{"wiki"}}, {Owner: "group:support", Name: "UNUSED", Value: "another-secret"}}
	encoded := base64.StdEncoding.EncodeToString([]byte("x:" + value))
	for name, test := range map[string]struct {
		path []step
		want []string
	}{
		"in a message":               {[]step{says("is it " + value + "?"), answers("is it " + value + "?")}, nil},
		"the model repeats a guess":  {[]step{says("join the-group's and -secret"), answers(value)}, nil},
		"of a call to another":       {[]step{calls("run_command", `{"command":"echo the-group''s-secret"}`), results(value)}, nil},
		"echoed by the server":       {[]step{calls("wiki__search", `{"query":"`+value+`"}`), results("nothing found for " + value)}, nil},
		"written before, then echo":  {[]step{says(value), calls("wiki__search", `{}`), results(value)}, nil},
		"in an imported result":      {imported(calls("wiki__search", `{}`), results(value), answers(value)), nil},
		"imported before":            {append(imported(answers(value)), calls("wiki__search", `{}`), results(value)), nil},
		"told by the server":         {[]step{calls("wiki__search", `{}`), results("it is " + value), answers(value)}, []string{value}},
		"told, then repeated":        {[]step{calls("wiki__search", `{}`), results(value), says(value)}, []string{value}},
		"told encoded":               {[]step{calls("call_tool", `{"name":"wiki__search"}`), results(encoded)}, []string{value}},
		"told by a script":           {[]step{calls("run_skill_script", `{"skill":"tides"}`), results(value)}, []string{value}},
		"told by a script of others": {[]step{calls("run_skill_script", `{"skill":"ships"}`), results(value)}, nil},
		"told by a tool of a skill":  {[]step{loads("tides", "gauge__read"), calls("gauge__read", `{}`), results(value)}, []string{value}},
		"granted to nobody":          {[]step{calls("wiki__search", `{}`), results("another-secret")}, nil},
	} {
		if got := track(secrets, test.path).values(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
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
	used := []UncheckedSecret{{Owner: "user:ada", Name: "MINE"}, {Owner: "user:ada", Name: "WIKI", Used: true}, {Owner: "group:support", Used: true}}
	got = track(secrets, []step{calls("wiki__search", `{}`), results("x"), calls("run_skill_script", `{"skill":"tides"}`), results("x")}).unchecked()
	if diff := cmp.Diff(used, got); diff != "" || checkUnchecked(got) == nil {
		t.Errorf("error %v, got + and want -:\n%s", checkUnchecked(got), diff)
	}
}
