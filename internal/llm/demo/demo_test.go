package demo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/internal/servertext"
	"github.com/loadout-dev/loadout/internal/skilltext"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// toolbox is the tools over a few skills, which answer as the real ones do.
type toolbox struct {
	deny       string // a tool that the user denies
	structured bool   // results are JSON
	without    []string
	weak       bool     // all hits of searches are weak
	held       []string // skills that were loaded before
}

type entry struct {
	name, description, instructions string
	files, scripts                  []string
	tools                           []session.Tool
}

var entries = []entry{
	{name: "greeter", description: "Greets people in many languages. Use when someone must be greeted.", instructions: "Run scripts/hello.py with a name.",
		scripts: []string{"scripts/hello.py", "scripts/bye.sh"}, files: []string{"references/words.md"}},
	{name: "weather", description: "Tells the weather and forecasts of places.", instructions: "Call the tool.",
		tools: []session.Tool{{Name: "weather_api_forecast", Description: "The forecast of a place.", InputSchema: json.RawMessage(`{"type":"object","properties":{"days":{"type":"integer"},"place":{"type":"string"}},"required":["place"]}`)}}},
	{name: "报告助手", description: "把数据整理成周报和月报。", instructions: "先读取数据，再运行脚本。", scripts: []string{"scripts/report.py"}},
}

const names = "search_skills load_skill read_skill_file run_skill_script find_tools call_tool"

func (b *toolbox) tools() []llm.Tool {
	var out []llm.Tool
	for n := range strings.FieldsSeq(names) {
		if !slices.Contains(b.without, n) {
			out = append(out, llm.Tool{Name: n, InputSchema: json.RawMessage(`{"type":"object"}`)})
		}
	}
	return out
}

type arguments struct {
	Query, Name, Skill, Script, Path string
	Args                             []string
	Arguments                        json.RawMessage
}

func (b *toolbox) call(c llm.Call) llm.Result {
	var in arguments
	res := llm.Result{Call: c.ID}
	if err := json.Unmarshal([]byte(c.Arguments), &in); err != nil {
		res.Error, res.Parts = true, []llm.Part{llm.Text(err.Error())}
		return res
	}
	text := "The user declined the call of " + c.Name + ". Do not try it again unless they ask for it."
	if res.Error = c.Name == b.deny; !res.Error {
		text = b.answer(c.Name, &in)
	}
	res.Parts = []llm.Part{llm.Text(text)}
	return res
}

func (b *toolbox) answer(name string, in *arguments) string {
	switch name {
	case "search_skills":
		return b.search(in.Query)
	case "load_skill":
		return b.load(in.Name)
	case "run_skill_script":
		return fmt.Sprintf("Exit code 0.\nOutput:\n%s of %s got %q\n", path.Base(in.Script), in.Skill, in.Args)
	case "call_tool":
		return fmt.Sprintf("%s got %s", in.Name, in.Arguments)
	case "read_skill_file":
		return "contents of " + in.Path
	case "find_tools":
		return "- clock_now: The time.\n"
	}
	return "?"
}

// search finds skills that have a word of the query, or two letters in a row of a
// writing without blanks.
func (b *toolbox) search(query string) string {
	type hit struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Weak        bool   `json:"weak,omitempty"`
	}
	var hits []hit
	for _, e := range entries {
		text, found := strings.ToLower(e.name+" "+e.description), query == ""
		for w := range strings.FieldsSeq(strings.ToLower(query)) {
			found = found || len(w) > 4 && strings.Contains(text, strings.Trim(w, "/?.:s"))
		}
		letters := []rune(query)
		for i := 1; i < len(letters); i++ {
			found = found || letters[i] > 0x2e80 && strings.Contains(text, string(letters[i-1:i+1]))
		}
		if found {
			hits = append(hits, hit{e.name, e.description, b.weak})
		}
	}
	if b.structured {
		return asJSON(map[string]any{"hits": hits})
	}
	if len(hits) == 0 {
		return "No skill fits. Try other words, or an empty query for the whole list.\n"
	}
	var out strings.Builder
	for _, h := range hits {
		mark := ""
		if h.Weak {
			mark = "[weak match] "
		}
		fmt.Fprintf(&out, "- %s: %s%s\n", h.Name, mark, h.Description)
	}
	return out.String()
}

func (b *toolbox) load(name string) string {
	i := slices.IndexFunc(entries, func(e entry) bool { return e.name == name })
	if i < 0 {
		return "there is no such skill"
	}
	e := entries[i]
	m := &session.Skill{ID: session.ID{Name: e.name, Origin: "test"}, Instructions: e.instructions}
	if slices.Contains(b.held, name) {
		return skilltext.AlreadyLoaded(name)
	}
	for _, f := range e.files {
		m.Files = append(m.Files, skill.File{Path: f})
	}
	for _, f := range e.scripts {
		m.Files = append(m.Files, skill.File{Path: f, Script: true})
	}
	if b.structured {
		var files []map[string]any
		for _, f := range m.Files {
			files = append(files, map[string]any{"path": f.Path, "script": f.Script})
		}
		return asJSON(map[string]any{"state": "loaded", "name": e.name, "instructions": e.instructions, "files": files, "tools": e.tools})
	}
	var out strings.Builder
	out.WriteString(session.Render(m))
	if len(e.tools) > 0 {
		out.WriteString("\nTools of this skill, to be called with call_tool:\n")
		for _, t := range e.tools {
			skilltext.WriteTools(&out, []skilltext.Tool{{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema}}, true)
		}
	}
	return out.String()
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is data
	}
	return string(b)
}

// maxSteps is more than any turn takes.
const maxSteps = 6

// chat continues a conversation like an agent, and returns the calls of the turn and the
// last text.
func (b *toolbox) chat(t testing.TB, r *llm.Request, says string) (calls []string, words string) {
	t.Helper()
	r.Tools = b.tools()
	r.Messages = append(r.Messages, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text(says)}})
	for range maxSteps {
		a, err := llm.Ask(context.Background(), demo.New(nil), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Messages = append(r.Messages, a.Message)
		if a.Stop != llm.StopTools {
			return calls, a.Message.Text()
		}
		results := llm.Message{Role: llm.User}
		for _, c := range a.Calls() {
			calls = append(calls, c.Name+" "+c.Arguments)
			results.Parts = append(results.Parts, b.call(c))
		}
		r.Messages = append(r.Messages, results)
	}
	t.Fatalf("after %d steps no answer: %s", maxSteps, calls)
	return nil, ""
}

const (
	notAModel = "The built-in demo answers"
	inChinese = "由内置演示按固定规则回答"
)

func TestTranscripts(t *testing.T) {
	search := func(query string) string {
		return `search_skills ` + asJSON(map[string]any{"limit": 5, "query": query})
	}
	for _, c := range []struct {
		name  string
		box   toolbox
		says  string
		calls []string
		words []string // in the answer
	}{
		{"what there is", toolbox{}, "What can you do?", []string{`search_skills {}`}, []string{"- greeter: Greets people", "- weather:", notAModel}},
		{"a greeting", toolbox{}, "hi!", []string{`search_skills {}`}, []string{"- greeter:", notAModel}},
		{"a skill by name", toolbox{}, "Use greeter to say hello to Ada", []string{search("Use greeter to say hello to Ada"), `load_skill {"name":"greeter"}`},
			[]string{"I loaded the skill greeter", "Run scripts/hello.py with a name.", "scripts/hello.py, scripts/bye.sh", "run scripts/hello.py of greeter with", notAModel}},
		{"a skill by what it is for", toolbox{}, "someone should be greeting my guests", []string{search("someone should be greeting my guests"), `load_skill {"name":"greeter"}`}, []string{"I loaded the skill greeter"}},
		{"a script", toolbox{}, "run scripts/hello.py of greeter with Ada and Grace.", []string{search("run scripts/hello.py of greeter with Ada and Grace."), `load_skill {"name":"greeter"}`, `run_skill_script {"args":["Ada","and","Grace"],"script":"scripts/hello.py","skill":"greeter"}`},
			[]string{`hello.py of greeter got ["Ada" "and" "Grace"]`, notAModel}},
		{"a script without its ending, and quoted words", toolbox{}, `Run hello of the greeter skill: "Ada Lovelace" --loud lang=en`, []string{search(`Run hello of the greeter skill: "Ada Lovelace" --loud lang=en`), `load_skill {"name":"greeter"}`, `run_skill_script {"args":["Ada Lovelace","--loud","lang=en"],"script":"scripts/hello.py","skill":"greeter"}`},
			[]string{"got"}},
		{"a script with an object", toolbox{}, `run bye.sh of greeter {"to": ["Ada"]}`, []string{search(`run bye.sh of greeter {"to": ["Ada"]}`), `load_skill {"name":"greeter"}`, `run_skill_script {"args":["{\"to\":[\"Ada\"]}"],"script":"scripts/bye.sh","skill":"greeter"}`}, []string{"bye.sh of greeter got"}},
		{"a file", toolbox{}, "What is in references/words.md of greeter?", []string{search("What is in references/words.md of greeter?"), `load_skill {"name":"greeter"}`, `read_skill_file {"path":"references/words.md","skill":"greeter"}`}, []string{"contents of references/words.md"}},
		{"a tool with key=value", toolbox{}, "use weather: call weather_api_forecast place=Rome days=3", []string{search("use weather: call weather_api_forecast place=Rome days=3"), `load_skill {"name":"weather"}`, `call_tool {"arguments":{"days":3,"place":"Rome"},"name":"weather_api_forecast"}`},
			[]string{`weather_api_forecast got {"days":3,"place":"Rome"}`, notAModel}},
		{"a tool with a quoted word for what it requires", toolbox{}, `weather: weather_api_forecast "New York"`, []string{search(`weather: weather_api_forecast "New York"`), `load_skill {"name":"weather"}`, `call_tool {"arguments":{"place":"New York"},"name":"weather_api_forecast"}`}, []string{"New York"}},
		{"a tool with an object", toolbox{}, `weather_api_forecast of weather {"place":"Oslo"}`, []string{search(`weather_api_forecast of weather {"place":"Oslo"}`), `load_skill {"name":"weather"}`, `call_tool {"arguments":{"place":"Oslo"},"name":"weather_api_forecast"}`}, []string{"Oslo"}},
		{"structured results", toolbox{structured: true}, `weather: weather_api_forecast "New York"`, []string{search(`weather: weather_api_forecast "New York"`), `load_skill {"name":"weather"}`, `call_tool {"arguments":{"place":"New York"},"name":"weather_api_forecast"}`}, []string{"New York"}},
		{"a structured list", toolbox{structured: true}, `run hello.py of greeter with Ada`, []string{search(`run hello.py of greeter with Ada`), `load_skill {"name":"greeter"}`, `run_skill_script {"args":["Ada"],"script":"scripts/hello.py","skill":"greeter"}`}, []string{"Ada"}},
		{"a denied script", toolbox{deny: "run_skill_script"}, "run hello.py of greeter with Ada", []string{search("run hello.py of greeter with Ada"), `load_skill {"name":"greeter"}`, `run_skill_script {"args":["Ada"],"script":"scripts/hello.py","skill":"greeter"}`},
			[]string{"it was not done", "The user declined", "I do not try it again", notAModel}},
		{"a search that fails", toolbox{deny: "search_skills"}, "greet Ada", []string{search("greet Ada")}, []string{"it was not done", notAModel}},
		{"no skill fits", toolbox{}, "Fold me a paper plane", []string{search("Fold me a paper plane"), `find_tools {"query":"Fold me a paper plane"}`}, []string{"No skill fits", "clock_now", notAModel}},
		{"a skill shares only a general word", toolbox{}, "write me a poem that greets nobody and rhymes", []string{search("write me a poem that greets nobody and rhymes"), `find_tools {"query":"write me a poem that greets nobody and rhymes"}`}, []string{"No skill fits", notAModel}},
		{"all hits are weak", toolbox{weak: true}, "someone should be greeting my guests", []string{search("someone should be greeting my guests"), `find_tools {"query":"someone should be greeting my guests"}`}, []string{"No skill fits", notAModel}},
		{"all hits are weak, structured", toolbox{weak: true, structured: true}, "someone should be greeting my guests", []string{search("someone should be greeting my guests"), `find_tools {"query":"someone should be greeting my guests"}`}, []string{"No skill fits", notAModel}},
		{"a weak hit by name", toolbox{weak: true}, "Use greeter for my guests", []string{search("Use greeter for my guests"), `load_skill {"name":"greeter"}`}, []string{"I loaded the skill greeter", notAModel}},
		{"a weak hit by command", toolbox{weak: true}, "/greeter Ada", []string{search("/greeter Ada"), `load_skill {"name":"greeter"}`}, []string{"I loaded the skill greeter", notAModel}},
		{"several lines", toolbox{}, "Someone arrives.\n\ngreet the guests\nwith flowers", []string{`search_skills {"limit":5,"queries":["greet the guests","with flowers"],"query":"Someone arrives."}`, `load_skill {"name":"greeter"}`}, []string{"I loaded the skill greeter", notAModel}},
		{"no skill, and a tool", toolbox{}, "call clock_now zone=UTC", []string{search("call clock_now zone=UTC"), `find_tools {"query":"call clock_now zone=UTC"}`, `call_tool {"arguments":{"zone":"UTC"},"name":"clock_now"}`}, []string{"clock_now got", notAModel}},
		{"an attached file", toolbox{}, "Fold @plane.txt:\nnow\n\nFile plane.txt:\n\n```\ngreeter\n```", []string{`search_skills {"limit":5,"queries":["now"],"query":"Fold @plane.txt:"}`, `find_tools {"query":"Fold @plane.txt:"}`}, []string{"No skill fits", notAModel}},
		{"no tools", toolbox{without: strings.Fields(names)}, "greet Ada", nil, []string{"no tools", notAModel}},
		{"nothing can be run", toolbox{without: []string{"run_skill_script"}}, "run hello.py of greeter", []string{search("run hello.py of greeter"), `load_skill {"name":"greeter"}`}, []string{"I loaded the skill greeter", notAModel}},
		{"Chinese", toolbox{}, "帮我把这些数据整理成周报", []string{search("帮我把这些数据整理成周报"), `load_skill {"name":"报告助手"}`}, []string{"我加载了技能 报告助手", "先读取数据", inChinese}},
		{"a script in Chinese", toolbox{}, "请用报告助手运行report.py，参数 一月 --full", []string{search("请用报告助手运行report.py，参数 一月 --full"), `load_skill {"name":"报告助手"}`, `run_skill_script {"args":["--full"],"script":"scripts/report.py","skill":"报告助手"}`}, []string{"我运行了 报告助手 的 scripts/report.py", inChinese}},
		{"what there is, in Chinese", toolbox{}, "你能做什么？", []string{`search_skills {}`}, []string{"- 报告助手", inChinese}},
		{"no skill fits, in Chinese", toolbox{without: []string{"find_tools"}}, "折一架纸飞机", []string{search("折一架纸飞机")}, []string{"没有合适的技能", inChinese}},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls, words := c.box.chat(t, &llm.Request{}, c.says)
			if diff := cmp.Diff(c.calls, calls); diff != "" {
				t.Error(diff)
			}
			for _, want := range c.words {
				if !strings.Contains(words, want) {
					t.Errorf("%q is not in the answer:\n%s", want, words)
				}
			}
		})
	}
}

// Without a search, the skills at the start of the conversation are used.
func TestSkillsInInstructions(t *testing.T) {
	b := &toolbox{without: []string{"search_skills"}}
	const skills = "Be kind.\n- Do not: lie\nAvailable skills:\n- greeter: Greets people.\n- weather: Tells the weather.\n"
	instructions := skills + servertext.Section([]tools.ServerSummary{{Name: "harbour", Purpose: "Berths and arrivals", Tools: 2}})
	calls, words := b.chat(t, &llm.Request{Instructions: instructions}, "run hello.py of greeter with Ada")
	want := []string{`load_skill {"name":"greeter"}`, `run_skill_script {"args":["Ada"],"script":"scripts/hello.py","skill":"greeter"}`}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("%s\n%s", diff, words)
	}
	if calls, words = b.chat(t, &llm.Request{Instructions: instructions}, "What skills are there?"); len(calls) != 0 || !strings.Contains(words, "- weather: Tells the weather.") || strings.Contains(words, "lie") || strings.Contains(words, "harbour") {
		t.Errorf("%s\n%s", calls, words)
	}
	loaded := instructions + b.load("greeter")
	if calls, words = b.chat(t, &llm.Request{Instructions: loaded}, "run hello.py of greeter with Ada"); !cmp.Equal(calls, want[1:]) {
		t.Errorf("%s\n%s", calls, words)
	}
}

// What was loaded is used again without another search.
func TestLaterTurnUsesLoadedSkills(t *testing.T) {
	var b toolbox
	r := &llm.Request{}
	b.chat(t, r, "use greeter")
	calls, _ := b.chat(t, r, "now run bye.sh with Ada")
	if diff := cmp.Diff([]string{`run_skill_script {"args":["Ada"],"script":"scripts/bye.sh","skill":"greeter"}`}, calls); diff != "" {
		t.Error(diff)
	}
	b.chat(t, r, "use weather")
	if calls, words := b.chat(t, r, "now run bye.sh with Eve"); len(calls) != 1 || !strings.Contains(calls[0], `"script":"scripts/bye.sh","skill":"greeter"`) {
		t.Errorf("after another skill was loaded: %s\n%s", calls, words)
	}
	calls, words := b.chat(t, r, "what can you do?")
	if len(calls) != 1 || strings.Contains(words, "bye.sh") {
		t.Errorf("%s\n%s", calls, words)
	}
}

// A preloaded skill is used like one that was found: its script runs, and a repeated
// load returns its instructions.
func TestPreloadedSkills(t *testing.T) {
	var b toolbox
	begun := []llm.Message{{Role: llm.Notice, Parts: []llm.Part{llm.Text(b.load("greeter"))}}}
	calls, words := b.chat(t, &llm.Request{Messages: begun}, "run scripts/hello.py of greeter with Ada")
	if diff := cmp.Diff([]string{`run_skill_script {"args":["Ada"],"script":"scripts/hello.py","skill":"greeter"}`}, calls); diff != "" {
		t.Errorf("%s\n%s", diff, words)
	}
	b.held = []string{"greeter"}
	r := &llm.Request{Messages: begun}
	_, words = b.chat(t, r, "Use greeter to say hello to Ada")
	if !strings.Contains(words, "Run scripts/hello.py with a name.") || strings.Contains(words, "already") {
		t.Errorf("it tells as instructions: %s", words)
	}
	if calls, words = b.chat(t, r, "now run bye.sh"); len(calls) != 1 || !strings.HasPrefix(calls[0], "run_skill_script") {
		t.Errorf("%s\n%s", calls, words)
	}
}

func TestSameRequestGivesSameResponse(t *testing.T) {
	r := &llm.Request{Instructions: "Be kind.", Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text("你好 hello")}}}, Tools: (&toolbox{}).tools()}
	var all [2][]llm.Event
	for i := range all {
		for e, err := range demo.New(nil).Stream(t.Context(), r) {
			if err != nil {
				t.Fatal(err)
			}
			all[i] = append(all[i], e)
		}
	}
	if diff := cmp.Diff(all[0], all[1]); diff != "" || len(all[0]) < 3 {
		t.Errorf("%s of %d events", diff, len(all[0]))
	}
}

func TestDeltasMakeTheResponse(t *testing.T) {
	r := &llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text("greet")}}}}
	var words string
	n := 0
	a, err := llm.Ask(t.Context(), demo.New(&demo.Options{Next: "Type loadout models."}), r, func(e llm.Event) { words += string(e.(llm.TextDelta)); n++ })
	if err != nil || words != a.Message.Text() || n < 10 || !strings.HasSuffix(words, "Type loadout models.") {
		t.Errorf("%d pieces, %v: %s", n, err, words)
	}
	if a.Usage.Input == 0 || a.Usage.Output == 0 || a.Stop != llm.StopEnd {
		t.Errorf("%+v", a)
	}
	r.MaxTokens = 5
	a, err = llm.Ask(t.Context(), demo.New(nil), r, nil)
	if err != nil || a.Stop != llm.StopLength || a.Usage.Output > 5 || !strings.HasPrefix(words, a.Message.Text()) {
		t.Errorf("%+v, %v", a, err)
	}
}

// Four bytes are a token, in each part.
func TestTokens(t *testing.T) {
	for text, want := range map[string]int{
		"":                       0,
		"word":                   1,
		"words":                  2,
		strings.Repeat("é", 40):  20,
		strings.Repeat("字", 100): 75,
	} {
		r := &llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text(text)}}}}
		a, err := llm.Ask(t.Context(), demo.New(nil), r, nil)
		if err != nil || a.Usage.Input != want {
			t.Errorf("%d tokens, want %d, %v: %s", a.Usage.Input, want, err, text)
		}
	}
}

// All parts of a request count.
func TestTokensOfParts(t *testing.T) {
	r := &llm.Request{Instructions: "four", Tools: []llm.Tool{{Name: "name", Description: "does", InputSchema: json.RawMessage(`"object"`)}},
		Messages: []llm.Message{
			{Role: llm.Assistant, Parts: []llm.Part{llm.Call{ID: "1", Name: "name", Arguments: "{}"}}},
			{Role: llm.User, Parts: []llm.Part{llm.Result{Call: "1", Parts: []llm.Part{llm.Text("word")}}, llm.Image{}}},
		}}
	a, err := llm.Ask(t.Context(), demo.New(nil), r, nil)
	if want := 1 + (1 + 1 + 2) + (1 + 1) + 1 + 1000; err != nil || a.Usage.Input != want {
		t.Errorf("%d tokens, want %d, %v", a.Usage.Input, want, err)
	}
}

// A limit that the response does not exceed changes nothing.
func TestMaxTokensOfShortResponse(t *testing.T) {
	r := &llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text("greet")}}}}
	want, err := llm.Ask(t.Context(), demo.New(nil), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []int{0, 1, 1000} {
		r.MaxTokens = want.Usage.Output + more
		if got, err := llm.Ask(t.Context(), demo.New(nil), r, nil); err != nil || got.Stop != llm.StopEnd || got.Message.Text() != want.Message.Text() {
			t.Errorf("limit %d: stopped for %s, %v", r.MaxTokens, got.Stop, err)
		}
	}
	r.MaxTokens = want.Usage.Output - 1
	if got, err := llm.Ask(t.Context(), demo.New(nil), r, nil); err != nil || got.Stop != llm.StopLength {
		t.Errorf("limit %d: stopped for %s, %v", r.MaxTokens, got.Stop, err)
	}
}

func TestStreamEndsWithContext(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	r := &llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text("greet")}}}}
	_, err := llm.Ask(ctx, demo.New(nil), r, func(llm.Event) { cancel(why) })
	if cut, ok := errors.AsType[*llm.CutError](err); !ok || !errors.Is(err, why) || cut.Answer.Message.Text() == "" {
		t.Errorf("in the middle: %v", err)
	}
	if _, err := llm.Ask(ctx, demo.New(nil), r, nil); err != why {
		t.Errorf("before the start: %v", err)
	}
	for range demo.New(nil).Stream(t.Context(), r) {
		break
	}
}

// FuzzAnyResults answers the calls with whatever comes.
func FuzzAnyResults(f *testing.F) {
	var b toolbox
	f.Add("run hello.py of greeter with Ada", b.search(""), b.load("greeter"), "ok", uint8(0))
	f.Add("call weather_api_forecast {\"place\":1}", b.search(""), b.load("weather"), "no", uint8(8))
	f.Add("用报告助手运行report.py", (&toolbox{structured: true}).search(""), (&toolbox{structured: true}).load("报告助手"), `{"stdout":"x"}`, uint8(0))
	f.Add("x=\" 1\" y=\"\xff\"", "- a: b\n- : \n- x", "Skill a (from b) is loaded\nScripts of this skill: \nTools", "\x00", uint8(255))
	f.Add("run a", `{"hits":[{}]}`, `{"name":"","files":null}`, `{"stdout":null}`, uint8(2))
	f.Add("call t", `{"hits":[{"name":"t"}]}`, `{"tools":[{"name":"t","inputSchema":{"required":["a","a"],"properties":[]}}]}`, "", uint8(0))
	f.Fuzz(func(t *testing.T, says, one, two, three string, fails uint8) {
		r := &llm.Request{Tools: b.tools(), Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text(says)}}}}
		answers := []string{one, two, three}
		for step := range maxSteps + 1 {
			a, err := llm.Ask(t.Context(), demo.New(nil), r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if a.Stop != llm.StopTools {
				if words := a.Message.Text(); !strings.Contains(words, notAModel) && !strings.Contains(words, inChinese) {
					t.Errorf("it does not say what it is: %s", words)
				}
				return
			}
			c := a.Calls()[0]
			if !json.Valid([]byte(c.Arguments)) {
				t.Errorf("%s is called with %q", c.Name, c.Arguments)
			}
			r.Messages = append(r.Messages, a.Message, llm.Message{Role: llm.User, Parts: []llm.Part{
				llm.Result{Call: c.ID, Error: fails>>step&1 == 1, Parts: []llm.Part{llm.Text(answers[step%len(answers)])}},
			}})
		}
		t.Errorf("after %d steps no answer", maxSteps)
	})
}
