package chat

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/llm"
)

// With --json the output of a command is a line of JSON.
func TestCommandOutputAsJSON(t *testing.T) {
	var out bytes.Buffer
	a := &Host{Setup: setup.Setup{Console: console.Console{Stdout: &out, Stderr: io.Discard, Getenv: func(string) string { return "" }}}}
	a.JSON = true
	a.printCommandOutput("**Commands**\n\n- `/help` what there is\n")
	if want := `{"type":"notice","text":"Commands\n\n• /help what there is"}` + "\n"; out.String() != want {
		t.Errorf("it prints %s, want %s", out.String(), want)
	}
}

func TestModelsKeepTheirServers(t *testing.T) {
	const own = "http://127.0.0.1:1/v1"
	names := map[string]config.NamedModel{"quick": {Model: "openai:small"}, "house": {Model: "anthropic:x", BaseURL: "https://models.example.com", Key: "HOUSE"}}
	flagged := setup.ModelFlags{Model: "openai:x", BaseURL: own, Key: "OWN"}
	configured := config.Models{Default: "openai:x", BaseURL: own, Key: "OWN", Names: names}
	for _, tt := range []struct {
		name   string
		models config.Models
		flags  setup.ModelFlags
		asked  []string // one after the other
		host   string
		key    string
	}{
		{"at the start", config.Models{}, flagged, nil, "127.0.0.1:1", "OWN"},
		{"another model of the vendor", config.Models{}, flagged, []string{"openai:y"}, "127.0.0.1:1", "OWN"},
		{"another vendor", config.Models{}, flagged, []string{"anthropic:y"}, "api.anthropic.com", ""},
		{"and back", config.Models{}, flagged, []string{"anthropic:y", "demo", "openai:y"}, "127.0.0.1:1", "OWN"},
		{"the configured server", configured, setup.ModelFlags{}, []string{"openai:y"}, "127.0.0.1:1", "OWN"},
		{"and back to that", configured, setup.ModelFlags{}, []string{"demo", "openai:x"}, "127.0.0.1:1", "OWN"},
		{"a name of the configuration", configured, setup.ModelFlags{}, []string{"house"}, "models.example.com", "HOUSE"},
		{"a name for the vendor's own", configured, setup.ModelFlags{}, []string{"quick"}, "api.openai.com", ""},
		{"and back from a name", configured, setup.ModelFlags{}, []string{"quick", "openai:y"}, "127.0.0.1:1", "OWN"},
		{"the configured one beside another", configured, setup.ModelFlags{Model: "openai:y"}, []string{"openai:x"}, "127.0.0.1:1", "OWN"},
		{"another address for the configured one", configured, setup.ModelFlags{BaseURL: "http://127.0.0.1:2/v1"}, []string{"demo", "openai:x"}, "127.0.0.1:2", ""},
		{"no other server", config.Models{}, setup.ModelFlags{Model: "openai:x"}, []string{"demo", "openai:y"}, "api.openai.com", ""},
		{"the demonstration", config.Models{}, flagged, []string{"demo"}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &config.Config{Models: tt.models}
			began := setup.ChooseModel(c, tt.flags)
			w := &setup.ActiveModel{Began: began, Now: began}
			for _, name := range tt.asked {
				w.Now = w.ResolveName(c, name)
			}
			if w.Now.Host() != tt.host || w.Now.Key != tt.key {
				t.Errorf("it is asked at %q with the key %q, want %q, %q", w.Now.Host(), w.Now.Key, tt.host, tt.key)
			}
			// The command that continues the conversation uses the same server.
			line := (&dialog{conversation: &conversation{id: "s"}, host: &Host{}, config: c, flags: &Flags{}, answering: w}).resumeCommand()
			words := strings.Fields(line)
			again := setup.ModelFlags{}
			for flag, value := range map[string]*string{"--model": &again.Model, "--base-url": &again.BaseURL, "--key": &again.Key} {
				if i := slices.Index(words, flag); i >= 0 {
					*value = words[i+1]
				}
			}
			if k := setup.ChooseModel(c, again); k.Server != w.Now.Server || k.Key != w.Now.Key || k.Name != w.Now.Name {
				t.Errorf("%s asks %+v, not %+v", line, k, w.Now)
			}
		})
	}
}

func TestErrorsOnAScreen(t *testing.T) {
	const another = "switch the model with /model."
	vendors := setup.ModelChoice{Name: "openai:x"}
	own := setup.ModelChoice{Name: "openai:x", Server: "http://127.0.0.1:1/v1"}
	for _, tt := range []struct {
		err  error
		at   setup.ModelChoice
		want string // of the next step
	}{
		{errors.New("there is nothing to compact"), own, ""},
		{&llm.StatusError{Code: 401}, own, "Name the secret or variable with the key for 127.0.0.1:1 with --key NAME; or " + another},
		{&llm.StatusError{Code: 401}, vendors, "Check the key in OPENAI_API_KEY; it is read from a variable, or from a secret: loadout secret set OPENAI_API_KEY; or " + another},
		{&llm.StatusError{Code: 404}, vendors, "Check the name of the model; or " + another},
		{&llm.StatusError{Code: 529}, vendors, "Try again, or " + another},
		{&llm.CutError{}, own, "Try again, or " + another},
		{fmt.Errorf("cannot be reached: %w", &url.Error{Op: "Post", Err: io.EOF}), vendors, "Check that this machine is online; or " + another},
		{agent.ErrTooManySteps, own, "Ask the agent to continue."},
		{exit.Errorf(exit.Usage, "/load NAME", "no name"), own, "/load NAME"},
	} {
		person := &dialog{conversation: &conversation{}, answering: &setup.ActiveModel{Now: tt.at}}
		_, hint, _ := strings.Cut(person.describeError(tt.err), "\n")
		if hint != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, hint, tt.want)
		}
	}
}
