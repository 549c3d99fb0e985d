package assembly_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/packages/packagestest"
	"github.com/loadout-dev/loadout/internal/sandbox/stage/stagetest"
	"github.com/loadout-dev/loadout/llm"
)

// replay is a model that makes the given calls, one after another, and then
// answers.
func replay(given ...string) func(context.Context, *script, *llm.Request) (*llm.Answer, error) {
	return func(context.Context, *script, *llm.Request) (*llm.Answer, error) {
		if len(given) == 0 {
			return says("1月17日的GMV明显偏低。"), nil
		}
		name, args, _ := strings.Cut(given[0], " ")
		given = given[1:]
		return calls(name, json.RawMessage(args)), nil
	}
}

// ba-agent's scenario on the hub: an agent fetches the GMV from its MCP server,
// finds the day beyond three sigmas with Python code that it wrote, and returns a
// chart as an image and a report as a file of the conversation. The code imports
// the chart module of an active skill and the package pandas that this skill
// names, of which the index has a small stand-in.
func TestGMVScenarioOnTheHub(t *testing.T) {
	if exec.Command("python3", "-m", "pip", "--version").Run() != nil {
		t.Skip("pip is not installed")
	}
	dir := os.DirFS(filepath.Join("..", "..", "..", "cmd", "loadout", "testdata", "gmv"))
	read := func(name string) string {
		b, err := fs.ReadFile(dir, name)
		must(t, err)
		return string(b)
	}
	table, code := read("gmv.csv"), read("analyse.py")
	index := packagestest.NewIndex(t)
	index.Add("pandas", "2.2.0", map[string]string{"pandas/__init__.py": read("pandas/__init__.py")})
	w := sqlite(t, sandboxed(t), func(o *assembly.Options) {
		o.Packages = &loadout.Packages{Dir: filepath.Join(stagetest.OpenDir(t), "packages"), PythonIndex: index.URL}
	})
	shop := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	mcp.AddTool(shop, &mcp.Tool{Name: "daily_gmv", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(context.Context, *mcp.CallToolRequest, struct{ Days int }) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: table}}}, nil, nil
	})
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return shop }, &mcp.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	w.apply(w.meg, fmt.Sprintf("{apiVersion: loadout/v1, kind: Ghost, metadata: {name: analyst, namespace: team}, spec: {skills: [gmv_analysis], mcpServers: {shop: {type: streamable-http, url: %s}}}}", server.URL))
	files := fstest.MapFS{}
	for _, name := range []string{"SKILL.md", "scripts/chart.py"} {
		files[name] = &fstest.MapFile{Data: []byte(read("skills/gmv_analysis/" + name))}
	}
	s := w.upload(w.root, w.team, "gmv_analysis", files)
	write := func(path, text string) string {
		args, err := json.Marshal(map[string]string{"path": path, "content": text})
		must(t, err)
		return "write_file " + string(args)
	}
	const load, run = `load_skill {"name":"gmv_analysis"}`, `run_command {"command":"python3 analyse.py"}`

	w.model.name = "openai:gpt-5.2" // reads images
	w.model.answer = replay(load, write("gmv.csv", table), write("analyse.py", code), run)
	id := w.begin(w.ada, "Ghost/team/analyst")
	text, images := results(w.say(w.ada, id, "今天GMV有什么异常？"))
	if !strings.Contains(text, "No module named 'pandas'") || !strings.Contains(text, "skill gmv_analysis is not approved") || len(images) > 0 {
		t.Errorf("before the review: %s, %d images", text, len(images))
	}

	w.review(s, library.Approved)
	w.model.answer = replay(load, `call_tool {"name":"shop__daily_gmv","arguments":{"Days":28}}`)
	id = w.begin(w.ada, "Ghost/team/analyst")
	text, _ = results(w.say(w.ada, id, "取最近28天的GMV。"))
	_, rows, _ := strings.Cut(text, "date,gmv\n") // of the server's result
	w.model.answer = replay(write("gmv.csv", "date,gmv\n"+rows), write("analyse.py", code), run)
	events := w.say(w.ada, id, "今天GMV有什么异常？")
	if text, images = results(events); !strings.Contains(text, "异常： 2026-01-17") {
		t.Errorf("after the review: %s", text)
	}
	if len(images) != 1 {
		t.Fatalf("the page gets %d images", len(images))
	}
	if c, err := png.DecodeConfig(bytes.NewReader(images[0].Data)); err != nil || c.Width != 112 || images[0].MIMEType != "image/png" {
		t.Errorf("the chart is %+v, %v, of the type %s", c, err, images[0].MIMEType)
	}
	if !slices.ContainsFunc(w.model.last().Messages, func(m llm.Message) bool {
		return slices.ContainsFunc(m.Parts, func(p llm.Part) bool {
			r, ok := p.(llm.Result)
			return ok && slices.ContainsFunc(r.Parts, func(p llm.Part) bool { _, ok := p.(llm.Image); return ok })
		})
	}) {
		t.Error("the model does not get the chart")
	}
	list, err := w.chat.Files(t.Context(), w.ada, id)
	must(t, err)
	for _, name := range []string{"chart.png", "report.md"} {
		if !slices.ContainsFunc(list, func(f chat.File) bool { return f.Path == name }) {
			t.Errorf("%s is not offered: %+v", name, list)
		}
	}
	report, err := w.chat.ReadFile(t.Context(), w.ada, id, "report.md")
	must(t, err)
	if !strings.Contains(string(report), "共 28 天，异常 1 天。\n\n- 2026-01-17：41000，均值 121893") {
		t.Errorf("the report is %q", report)
	}
}

// results returns the texts and images of all tool results.
func results(events []chat.Event) (text string, images []llm.Image) {
	for _, e := range events {
		if e.Step != nil && e.Step.Result != nil {
			text += e.Step.Result.Text + "\n"
			images = append(images, e.Step.Result.Images...)
		}
	}
	return text, images
}
