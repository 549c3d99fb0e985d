package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/presence"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/llm"
)

// user is a user of a machine with skills, who chats without a screen.
type user struct {
	*Host
	t      *testing.T
	home   string
	stdout bytes.Buffer
	stderr bytes.Buffer
	errs   []error // reported errors
}

func newUser(t *testing.T) *user {
	t.Helper()
	u := &user{t: t, home: t.TempDir()}
	for name, text := range map[string]string{
		"tides/SKILL.md":        "---\nname: tides\ndescription: Reads tide tables. Use it for high water.\nargument-hint: HARBOUR\nallowed-tools: Read\n---\nAdd one hour in summer.\n",
		"tides/scripts/run.sh":  "#!/bin/sh\necho tide\n",
		"model-only/SKILL.md":   "---\nname: model-only\ndescription: Only the agent uses it.\nuser-invocable: false\n---\nText.\n",
		"user-only/SKILL.md":    "---\nname: user-only\ndescription: Only the user uses it.\ndisable-model-invocation: true\n---\nText.\n",
		"help/SKILL.md":         "---\nname: help\ndescription: Has the name of a command.\n---\nText.\n",
		"exit/SKILL.md":         "---\nname: exit\ndescription: Has the alias of a command.\n---\nText.\n",
		"../state/x":            "",
		"../config/config.yaml": "models:\n  names: {local: {model: \"openai:small\", base_url: \"http://127.0.0.1:1/v1\"}}\n  prices: {\"openai:gpt-*\": {input: 1, output: 2}, \"openai:big\": {input: 1, output: 2}}\n",
	} {
		p := filepath.Join(u.home, "skills", filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"HOME": u.home, "LOADOUT_STATE": filepath.Join(u.home, "state"), "LOADOUT_CONFIG": filepath.Join(u.home, "config", "config.yaml")}
	u.Host = &Host{
		Setup: setup.Setup{
			Console: console.Console{Stdin: strings.NewReader(""), Stdout: &u.stdout, Stderr: &u.stderr, Getenv: func(name string) string { return env[name] }},
			Skills:  []string{filepath.Join(u.home, "skills")}, DetectCaller: func() presence.Caller { return presence.Caller{} },
		},
		ReportError: func(err error) int {
			u.errs = append(u.errs, err)
			return 1
		},
	}
	return u
}

// open opens a conversation with the demo.
func (u *user) open(o *Flags) *dialog {
	u.t.Helper()
	c, err := u.LoadConfig(nil)
	if err != nil {
		u.t.Fatal(err)
	}
	who, err := u.selectModel(u.t.Context(), c, o)
	if err != nil {
		u.t.Fatal(err)
	}
	d, err := u.openChat(u.t.Context(), conversationOptions{config: c, flags: o}, who)
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(d.close)
	return d
}

// enter runs a line and returns what it prints to standard output.
func (u *user) enter(d *dialog, line string) (string, error) {
	u.t.Helper()
	u.stdout.Reset()
	err := u.runLine(u.t.Context(), d, line)
	return u.stdout.String(), err
}

func TestSlashCommands(t *testing.T) {
	u := newUser(t)
	t.Chdir(u.home)
	d := u.open(&Flags{})
	for _, tt := range []struct {
		line string
		want []string // in the output
		not  string
	}{
		{"/help", []string{"/help", "/skills", "/unload", "one of 2 skills", "@PATH in a message"}, "Tab"},
		{"/help load", []string{"/load NAME", "load a skill until"}, "/unload NAME"},
		{"/help /tides", []string{"tides", "Reads tide tables.", "usage: ", "/tides HARBOUR", "tools: Read", "scripts: scripts/run.sh", "from "}, "only"},
		{"/help model-only", []string{"only the agent can invoke it"}, "usage"},
		{"/help user-only", []string{"only you can invoke it"}, "only the agent"},
		{"/skills", []string{"Skills (5)", "tides: Reads tide tables.", "help: Has the name"}, "Loaded"},
		{"/cost", []string{"No requests yet."}, ""},
		{"/details", []string{"No tool calls yet."}, ""},
		{"/tools", []string{"Tools of the agent", "load_skill"}, "(the agent finds"},
		{"/load tides", []string{"tides is loaded, until"}, ""},
		{"/load tides", []string{"tides is already loaded"}, ""},
		{"/skills", []string{"Loaded", "until /unload", "Skills (5)"}, ""},
		{"/unload tides", []string{"tides is unloaded."}, ""},
		{"/skills", []string{"Skills (5)"}, "Loaded"},
		{"/model", []string{"Model: demo", "/model openai:NAME"}, ""},
		{"/model local", []string{"Model: ", "small at 127.0.0.1:1."}, ""},
		{"/model demo", []string{"Model: demo"}, ""},
		{"/resume " + d.id, []string{"This is conversation " + d.id}, ""},
		{"hello", nil, ""},
		{"/cost", []string{"model", "demo"}, "No requests"},
		{"/resume", []string{d.id + " (this one)", "hello"}, ""},
		{"/tides Cuxhaven", nil, ""},
		{"/export ~/talk.md", []string{"Exported to ", "talk.md"}, ""},
		{"/export", []string{"conversation-" + d.id + ".md"}, ""},
	} {
		out, err := u.enter(d, tt.line)
		if err != nil {
			t.Errorf("%s: %v", tt.line, err)
		}
		plain := strings.Join(strings.Fields(out), " ")
		for _, want := range tt.want {
			if !strings.Contains(plain, want) {
				t.Errorf("%s: no %q in %q", tt.line, want, plain)
			}
		}
		if tt.not != "" && strings.Contains(plain, tt.not) {
			t.Errorf("%s: %q in %q", tt.line, tt.not, plain)
		}
	}
	for _, name := range []string{"talk.md", "conversation-" + d.id + ".md"} {
		b, err := os.ReadFile(filepath.Join(u.home, name))
		if err != nil || !strings.Contains(string(b), "hello") {
			t.Errorf("%s has %q, %v", name, b, err)
		}
	}

	for line, want := range map[string]struct {
		code int
		hint string
	}{
		"/none":                  {exit.Usage, "list the commands: /help"},
		"/help none":             {exit.NotFound, "list the skills: /skills"},
		"/load":                  {exit.Usage, "/load NAME"},
		"/load none":             {exit.NotFound, "list the skills: /skills"},
		"/unload":                {exit.Usage, "/unload NAME"},
		"/unload user-only":      {exit.NotFound, "list the loaded skills: /skills"},
		"/resume none":           {exit.NotFound, "the latest conversation is "},
		"/export ~/talk.md":      {exit.Failure, "name another file"},
		"/export ~/none/talk.md": {exit.NotFound, "an existing directory"},
	} {
		_, err := u.enter(d, line)
		if e, ok := errors.AsType[*exit.Error](err); !ok || e.Code != want.code || !strings.Contains(e.Hint, want.hint) {
			t.Errorf("%s: %v, %+v", line, err, e)
		}
	}

	for line, want := range map[string]*reopenError{"/new": {left: d.id}, "/clear": {left: d.id, clear: true}, "/quit": nil, "/exit": nil} {
		_, err := u.enter(d, line)
		end, ok := errors.AsType[*terminal.End](err)
		if !ok {
			t.Errorf("%s: %v", line, err)
			continue
		}
		next, _ := errors.AsType[*reopenError](end.With)
		if (next == nil) != (want == nil) || next != nil && *next != *want {
			t.Errorf("%s: %+v", line, end.With)
		}
	}
}

func TestCompletions(t *testing.T) {
	u := newUser(t)
	d := u.open(&Flags{})
	names := func(all []terminal.Choice) string {
		var out []string
		for _, c := range all {
			out = append(out, c.Name)
		}
		return strings.Join(out, " ")
	}
	if got := names(d.completeSkills("t")); got != "tides" {
		t.Errorf("skills: %s", got)
	}
	if got := names(d.completeLoaded("")); got != "" {
		t.Errorf("loaded skills: %s", got)
	}
	if _, err := u.enter(d, "/load tides"); err != nil {
		t.Fatal(err)
	}
	if got := names(d.completeLoaded("ti")) + "," + names(d.completeLoaded("x")); got != "tides," {
		t.Errorf("loaded skills: %s", got)
	}
	if got := names(d.completeNames(t.Context())("he")); got != "help help" { // the command and the skill
		t.Errorf("names: %s", got)
	}
	if got := names(d.completeModels("")); got != "demo local openai:big" {
		t.Errorf("models: %s", got)
	}
	if got := names(d.completeModels("open")); got != "openai:big" {
		t.Errorf("models: %s", got)
	}
	if _, err := u.enter(d, "hello"); err != nil {
		t.Fatal(err)
	}
	other := u.open(&Flags{})
	if got, note := other.pickConversations(); names(got) != d.id || note != "" {
		t.Errorf("conversations: %s (%s), want %s", names(got), note, d.id)
	}
	if got, note := d.pickConversations(); len(got) > 0 || note != "No other conversations yet" {
		t.Errorf("conversations of %s: %s (%s)", d.id, names(got), note)
	}
	dir, err := u.chats()
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxPickedConversations {
		if err := os.WriteFile(filepath.Join(string(dir), fmt.Sprintf("20200101-101010-%05d.jsonl", i)), []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, note := other.pickConversations(); len(got) != maxPickedConversations || note != "latest 2000 of 2001; /resume ID opens older ones" {
		t.Errorf("%d conversations: %s", len(got), note)
	}
	if all := other.completeConversations(d.id[:8]); len(all) != 1 || !strings.Contains(all[0].Help, "hello") {
		t.Errorf("conversations: %+v", all)
	}
	if got := names(other.completeConversations("x")); got != "" {
		t.Errorf("conversations with x: %s", got)
	}
}

// Lines are commands and messages until the input ends. Errors do not end the
// conversation.
func TestReadLoop(t *testing.T) {
	u := newUser(t)
	d := u.open(&Flags{left: "20260101-101010-abcde"})
	if err := u.readLoop(t.Context(), d, terminal.NewLineReader(strings.NewReader("/none\n\nhello\n  /load tides  \n"))); err != nil {
		t.Fatal(err)
	}
	if len(u.errs) != 1 || !strings.Contains(u.errs[0].Error(), "unknown command /none") {
		t.Errorf("reported %v", u.errs)
	}
	if got := u.stderr.String(); !strings.Contains(got, "conversation "+d.id+". /help lists the commands") || !strings.Contains(got, "/resume 20260101-101010-abcde") {
		t.Errorf("printed %q", got)
	}
	if !d.hasMessages() || len(d.session.Active()) != 1 {
		t.Errorf("messages %t, active skills %v", d.hasMessages(), d.session.Active())
	}
	u.stderr.Reset()
	u.printResume(d, nil)
	if got := u.stderr.String(); !strings.Contains(got, "Resume this conversation with: loadout chat --session "+d.id) {
		t.Errorf("printed %q", got)
	}
	u.stderr.Reset()
	u.printResume(d, &reopenError{})
	u.printResume(u.open(&Flags{}), nil) // the user said nothing
	if got := u.stderr.String(); strings.Contains(got, "Resume") {
		t.Errorf("printed %q", got)
	}
	if err := u.readLoop(t.Context(), d, terminal.NewLineReader(strings.NewReader("/quit\nhello\n"))); err != nil {
		t.Errorf("after /quit: %v", err)
	}
	var next *reopenError
	empty := u.open(&Flags{left: d.id})
	if err := u.readLoop(t.Context(), empty, terminal.NewLineReader(strings.NewReader("/new\n"))); !errors.As(err, &next) || next.left != d.id {
		t.Errorf("after a second /new: %v", err)
	}
	if err := u.readLoop(t.Context(), d, terminal.NewLineReader(strings.NewReader("/new\n"))); !errors.As(err, &next) || next.left != d.id {
		t.Errorf("after /new: %v", err)
	}
}

// On a simple terminal, a conversation runs line by line and ends with the command
// to resume it.
func TestRunLineByLine(t *testing.T) {
	u := newUser(t)
	c, err := u.LoadConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	o := &Flags{}
	who, err := u.selectModel(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	if u.canUseScreen() {
		t.Fatal("a screen without a terminal")
	}
	if err := u.runInteractive(t.Context(), c, o, who, terminal.NewLineReader(strings.NewReader("hello\n")), false); err != nil {
		t.Fatal(err)
	}
	if got := u.stderr.String(); !strings.Contains(got, "/help lists the commands") || !strings.Contains(got, "Resume this conversation with: loadout chat --session ") {
		t.Errorf("printed %q", got)
	}
	if u.stdout.Len() == 0 {
		t.Error("no answer")
	}
	if err := u.runInteractive(t.Context(), c, &Flags{Workspace: filepath.Join(u.home, "none")}, who, terminal.NewLineReader(strings.NewReader("")), false); err == nil {
		t.Error("a conversation in a directory that does not exist")
	}
}

// Without a terminal, one prompt is answered, in a new or an existing conversation.
func TestRunOnce(t *testing.T) {
	u := newUser(t)
	u.Stdin = strings.NewReader("hello from a pipe\n")
	if err := u.Run(t.Context(), &Flags{Preload: []string{"tides"}}); err != nil {
		t.Fatal(err)
	}
	if got := u.stderr.String(); u.stdout.Len() == 0 || !strings.Contains(got, "no model configured; the built-in demo answers") || strings.Count(got, "loaded skill tides") != 1 {
		t.Errorf("printed %q, %q", u.stdout.String(), u.stderr.String())
	}
	dir, err := u.chats()
	if err != nil {
		t.Fatal(err)
	}
	all, err := dir.List()
	if err != nil || len(all) != 1 || !strings.Contains(dir.FirstMessage(all[0].ID), "hello from a pipe") {
		t.Fatalf("conversations %v, %v", all, err)
	}
	if err := u.Run(t.Context(), &Flags{Prompt: "again", Session: all[0].ID}); err != nil {
		t.Fatal(err)
	}
	if all, err := dir.List(); err != nil || len(all) != 1 {
		t.Errorf("conversations %v, %v", all, err)
	}
	for name, tt := range map[string]struct {
		flags Flags
		code  int
	}{
		"approve":        {Flags{Prompt: "x", Approve: "never"}, exit.Usage},
		"no such chat":   {Flags{Prompt: "x", Session: "20200101-101010-abcde"}, exit.NotFound},
		"demo and URL":   {Flags{Prompt: "x", ModelFlags: setup.ModelFlags{BaseURL: "http://127.0.0.1:1"}}, exit.Usage},
		"demo and key":   {Flags{Prompt: "x", ModelFlags: setup.ModelFlags{Model: "demo", Key: "K"}}, exit.Usage},
		"no such folder": {Flags{Prompt: "x", Workspace: filepath.Join(u.home, "none")}, exit.NotFound},
	} {
		err := u.Run(t.Context(), &tt.flags)
		if e, ok := errors.AsType[*exit.Error](err); !ok || e.Code != tt.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := u.Run(t.Context(), &Flags{Prompt: "x", Preload: []string{"none"}}); err == nil {
		t.Error("preloaded a skill that does not exist")
	}
}

func TestResumeCommand(t *testing.T) {
	u := newUser(t)
	servers := filepath.Join(u.home, "a b.json")
	if err := os.WriteFile(servers, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := u.open(&Flags{Workspace: t.TempDir(), Approve: "rules", Files: []string{servers}, ModelFlags: setup.ModelFlags{Model: "demo"}})
	got := d.resumeCommand()
	for _, want := range []string{"--session " + d.id, "--model demo", "--workspace ", "--approve rules", "--mcp-config '" + servers + "'", "--skills "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	d.named = filepath.Join(u.home, "two  spaces")
	u.stderr.Reset()
	if _, err := u.enter(d, "hello"); err != nil {
		t.Fatal(err)
	}
	u.stderr.Reset()
	u.printResume(d, nil)
	if printed := u.stderr.String(); !strings.Contains(printed, "--workspace '"+d.named+"'") {
		t.Errorf("printed %q", printed)
	}
	d.named += "\x1b[2J"
	if printed := d.resumeCommand(); strings.Contains(printed, "--workspace") {
		t.Errorf("a path with control characters in %q", printed)
	}
	t.Chdir(u.home)
	d.flags.Files, u.Skills = []string{"a b.json"}, []string{"skills"}
	if relative := d.resumeCommand(); !strings.Contains(relative, "--mcp-config '"+servers+"' --skills "+filepath.Join(u.home, "skills")) {
		t.Errorf("relative paths in %s", relative)
	}
	if strings.Contains(got, "--base-url") || strings.Contains(got, "--key") || strings.Contains(got, "--profile") {
		t.Errorf("too much in %s", got)
	}
}

func TestClassifyTurnError(t *testing.T) {
	u := newUser(t)
	d := u.open(&Flags{})
	for _, tt := range []struct {
		err  error
		code int
		hint string
	}{
		{context.Canceled, exit.Failure, "again"},
		{&llm.StatusError{Code: 401}, exit.Refused, ""}, {&llm.StatusError{Code: 403}, exit.Refused, ""},
		{&llm.StatusError{Code: 404}, exit.NotFound, "check the name of the model"},
		{&llm.StatusError{Code: 400}, exit.Failure, "a retry would be refused too"},
		{&llm.StatusError{Code: 503}, exit.Failure, "again"},
		{errors.New("x"), exit.Failure, "again"},
	} {
		if e := d.classifyTurnError(tt.err, "again"); e.Code != tt.code || !strings.Contains(e.Hint, tt.hint) || !errors.Is(e, tt.err) {
			t.Errorf("%v: %+v", tt.err, e)
		}
	}
	for err, want := range map[error]string{
		errors.New("broken"):                        "broken",
		&llm.StatusError{Code: 503}:                 "switch the model with /model",
		exit.Errorf(exit.Usage, "do this", "wrong"): "do this",
	} {
		if got := d.describeError(err); !strings.Contains(got, want) {
			t.Errorf("%v is described as %q", err, got)
		}
	}

}

// The list of /model gets the models of the server that a choice would use. A server
// that fails, the demo, and a vendor without a key add nothing.
func TestOfferedModels(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, `{"data": [{"id": "small"}, {"id": "org/large:tag"}, {"id": "two words"}, {"id": "bad\u202e"}, {"id": "bad\n"}, {"id": %q}]}`, strings.Repeat("x", 300))
	}))
	defer server.Close()
	u := newUser(t)
	d := u.open(&Flags{})
	for _, tt := range []struct {
		model    setup.ModelChoice
		want     string
		requests int
	}{
		{setup.ModelChoice{Name: "openai:x", Server: server.URL + "/v1"}, "openai:org/large:tag openai:small", 1},
		{setup.ModelChoice{Name: "openai:x", Server: server.URL + "/none"}, "", 1},
		{setup.ModelChoice{Name: "openai:x"}, "", 0},
		{setup.ModelChoice{Name: "demo"}, "", 0},
		{setup.ModelChoice{}, "", 0},
	} {
		requests = 0
		d.answering = &setup.ActiveModel{Began: tt.model, Now: tt.model}
		var names []string
		for _, c := range d.offeredModels(t.Context()) {
			names = append(names, c.Name)
			if c.Help != "offered by "+strings.TrimPrefix(server.URL, "http://") {
				t.Errorf("%s: %q", c.Name, c.Help)
			}
		}
		if got := strings.Join(names, " "); got != tt.want || requests != tt.requests {
			t.Errorf("%+v: got %q after %d requests", tt.model, got, requests)
		}
	}
}

// Servers are asked for their models at the same time: one that does not answer delays no other.
func TestModelsAreListedConcurrently(t *testing.T) {
	second := make(chan struct{})
	servers := []setup.ModelChoice{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	got := listModels(t.Context(), servers, func(ctx context.Context, k setup.ModelChoice) ([]string, error) {
		switch k.Name {
		case "a": // answers after b was asked
			select {
			case <-second:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		case "b":
			close(second)
		case "c":
			return nil, errors.New("broken")
		}
		return []string{k.Name}, nil
	})
	if len(got) != 3 || !slices.Equal(got[0], []string{"a"}) || !slices.Equal(got[1], []string{"b"}) || got[2] != nil {
		t.Errorf("got %q", got)
	}
}

// The list of models is read while another command, typed ahead, switches the model. The race
// detector sees a conflict.
func TestModelsAreListedWhileTheModelIsSwitched(t *testing.T) {
	d := newUser(t).open(&Flags{})
	d.answering = &setup.ActiveModel{}
	var listing sync.WaitGroup
	listing.Go(func() { d.pickModels(); d.offeredModels(t.Context()) })
	if _, err := d.switchModel(t.Context(), "demo"); err != nil {
		t.Error(err)
	}
	listing.Wait()
}
