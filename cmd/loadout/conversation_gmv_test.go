package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/packages/packagestest"
)

// gmvServer is an MCP server with a tool that returns the daily GMV as CSV.
func gmvServer(t *testing.T, table string) *httptest.Server {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "daily_gmv", Description: "GMV of each day as CSV.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *mcp.CallToolRequest, struct{ Days int }) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: table}}}, nil, nil
		})
	srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv
}

// ba-agent's scenario: the model fetches the GMV with an MCP tool, finds the day
// beyond three sigmas with its own Python code, which imports the skill's chart
// module and the package pandas that the skill names, and returns a chart and a
// report. The package is a small stand-in for pandas from an index on loopback.
func TestGMVScenarioInChat(t *testing.T) {
	exe := needsSandbox(t)
	if exec.Command("python3", "-m", "pip", "--version").Run() != nil {
		t.Skip("pip is not installed")
	}
	dir := filepath.Join("testdata", "gmv")
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	index := packagestest.NewIndex(t)
	index.Add("pandas", "2.2.0", map[string]string{"pandas/__init__.py": read("pandas/__init__.py")})
	table := read("gmv.csv")
	shop := gmvServer(t, table)
	for wire := range wires {
		t.Run(wire, func(t *testing.T) {
			p := newSomeone(t, exe, wire, map[string]string{
				".config/loadout/loadout.yaml": "sandbox: {python_index: " + index.URL + ", private: [127.0.0.0/8]}\n",
				".config/loadout/servers.yaml": "mcpServers: {shop: {type: streamable-http, url: " + shop.URL + "}}\n",
			}, "--skills", "skills")
			if err := os.CopyFS(p.path("skills"), os.DirFS(filepath.Join(dir, "skills"))); err != nil {
				t.Fatal(err)
			}
			load := speak("", calling("1", "load_skill", "name", "gmv_analysis"))
			p.says("今天GMV有什么异常？", "", load, speak("", calling("3", "write_file", "path", "analyse.py", "content", read("analyse.py"))),
				speak("", calling("4", "run_command", "command", "python3 analyse.py")), speak("需要批准这个技能。"))
			p.tells("4", "No module named 'pandas'", "skill gmv_analysis is not approved", "!异常")

			p.approve("gmv_analysis")
			p.says("批准了，取数。", "", speak("", through("5", "shop__daily_gmv", "Days", 28)), speak("取到了。"))
			fetched := p.told()["5"]
			s := p.says("分析一下。", "", speak("", calling("2", "write_file", "path", "gmv.csv", "content", fetched)),
				speak("", calling("6", "run_command", "command", "python3 analyse.py")),
				speak("1月17日的GMV明显偏低。图是 chart.png，报告是 report.md。"))
			s.ended(t, 0, "usage tool_call:2 tool_result:2 usage tool_call:6 tool_result:6 text usage done:end")
			p.tells("6", "异常： 2026-01-17", "exit code 0")
			var images [][]byte
			for _, e := range s.events {
				if e.Result != nil {
					for _, i := range e.Result.Images {
						images = append(images, i.Data)
					}
				}
			}
			if len(images) != 1 {
				t.Fatalf("the result has %d images", len(images))
			}
			if c, err := png.DecodeConfig(bytes.NewReader(images[0])); err != nil || c.Width != 112 || c.Height != 60 {
				t.Errorf("the chart is %+v, %v", c, err)
			}
			if !strings.Contains(p.lastBody(), base64.StdEncoding.EncodeToString(images[0])) {
				t.Error("the model does not get the chart")
			}
			report, err := filepath.Glob(p.path(".local/share/loadout/chats/*/report.md"))
			if err != nil || len(report) != 1 {
				t.Fatalf("the reports are %v, %v", report, err)
			}
			if got, _ := os.ReadFile(report[0]); !strings.Contains(string(got), "共 28 天，异常 1 天。\n\n- 2026-01-17：41000，均值 121893") {
				t.Errorf("the report is %q", got)
			}
			p.onlyGrows()
		})
	}
}
