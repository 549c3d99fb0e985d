package clientprofile_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/clientprofile"
	"github.com/loadout-dev/loadout/internal/tokencount"
)

var update = flag.Bool("update", false, "write the tables of the documentation")

// recording is a file that test/clients wrote.
type recording struct {
	Client, Version, Name, Protocol string
	Capabilities                    struct{ Elicitation, Roots map[string]any }
	Instructions, Description       int
	Result                          string
	Unasked, Reads                  []string
	Shown                           []struct{ Where, Text string }
	Tools                           []json.RawMessage
	Loaded                          string
}

// probeLength is the number of characters that the recorded server sent.
const probeLength = 9600

func recordings(t *testing.T) map[string]recording {
	t.Helper()
	files, err := filepath.Glob("testdata/recordings/*.json")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]recording{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r recording
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[r.Client+" "+r.Version] = r
	}
	return all
}

// Each profile with a recording says what was recorded.
func TestProfilesMatchRecordings(t *testing.T) {
	all := recordings(t)
	limit := func(arrived int) int {
		if arrived == probeLength {
			return clientprofile.All
		}
		return arrived
	}
	for _, p := range clientprofile.Profiles() {
		if p.Recording == "" {
			if p.Source == "" || p.Instructions != 0 {
				t.Errorf("%s has no recording", p.Title)
			}
			continue
		}
		r, ok := all[p.Recording]
		if !ok {
			t.Errorf("the recording %s of %s is missing", p.Recording, p.Title)
			continue
		}
		delete(all, p.Recording)
		if clientprofile.Named(r.Name) != p {
			t.Errorf("%s sends the name %q, which is not in its profile", p.Title, r.Name)
		}
		if got := [2]int{p.Instructions, p.Description}; got != [2]int{limit(r.Instructions), limit(r.Description)} {
			t.Errorf("%s: limits %v, want those of %d and %d characters that arrived", p.Title, got, r.Instructions, r.Description)
		}
		if r.Result == "structured" && !p.StructuredOnly {
			t.Errorf("%s shows only structured content", p.Title)
		}
		if elicitation, roots := r.Capabilities.Elicitation != nil, r.Capabilities.Roots != nil; p.Elicitation != elicitation || p.Roots != roots {
			t.Errorf("%s: elicitation %v, roots %v", p.Title, elicitation, roots)
		}
		if diff := cmp.Diff(expand(p), r.Reads); diff != "" {
			t.Errorf("%s reads (-profile +recording):\n%s", p.Title, diff)
		}
		checkCatalog(t, p, r)
	}
	for name := range all {
		t.Errorf("no profile has the recording %s", name)
	}
}

// expand lists the directories that a client reads as recordings do: a directory
// with subdirectories is there twice, and ../.. is the root of the repository.
func expand(p *clientprofile.Profile) []string {
	var all []string
	for _, dir := range p.Reads {
		dirs := []string{dir}
		if rel, ok := strings.CutPrefix(dir, "./"); ok && p.Parents {
			dirs = append(dirs, "../"+rel, "../../"+rel)
		}
		for _, dir := range dirs {
			all = append(all, dir)
			if top, deep := strings.CutSuffix(dir, "/**"); deep {
				all = append(all, top)
			}
		}
	}
	slices.Sort(all)
	return all
}

// checkCatalog checks that the model sees each of 50 skills once, with the whole
// description if the client cuts nothing, and the instructions of a skill as text.
func checkCatalog(t *testing.T, p *clientprofile.Profile, r recording) {
	t.Helper()
	all := ""
	for _, s := range r.Shown {
		all += s.Text + "\n"
	}
	for i := range 50 {
		name, use := fmt.Sprintf("- review-contracts-%02d: ", i), fmt.Sprintf("Use when the contract is of kind %02d.", i)
		if n := strings.Count(all, name); n != 1 {
			t.Errorf("%s shows the line %q %d times", p.Title, name, n)
		}
		if n := strings.Count(all, use); p.Instructions == clientprofile.All && n != 1 {
			t.Errorf("%s shows %q %d times", p.Title, use, n)
		}
	}
	if !strings.Contains(r.Loaded, "# Review\n\nRead the contract first.\n") {
		t.Errorf("%s shows the instructions as %q", p.Title, r.Loaded)
	}
	if strings.Contains(all+r.Loaded, "/tmp") {
		t.Errorf("%s: the recording contains a path", p.Title)
	}
}

func TestReadsItself(t *testing.T) {
	p := filepath.FromSlash
	home, moved := p("/home/u"), p("/cfg")
	project := []string{p("/home/u/p/sub"), p("/home/u/p")}
	for _, tt := range []struct {
		client, dir string
		dirs        clientprofile.Dirs
		want        bool
	}{
		{"claude-code", "/home/u/.claude/skills/pdf", clientprofile.Dirs{Home: home, Project: project}, true},
		{"claude-code", "/home/u/.claude/skills/group/pdf", clientprofile.Dirs{Home: home, Project: project}, false},
		{"claude-code", "/home/u/.claude/skills", clientprofile.Dirs{Home: home, Project: project}, false},
		{"claude-code", "/home/u/.claude/skillset/pdf", clientprofile.Dirs{Home: home, Project: project}, false},
		{"claude-code", "/home/u/.agents/skills/pdf", clientprofile.Dirs{Home: home, Project: project}, false},
		{"claude-code", "/home/u/.claude/skills/pdf", clientprofile.Dirs{}, false},
		{"codex-mcp-client", "/home/u/.agents/skills/group/pdf", clientprofile.Dirs{Home: home, Project: project}, true},
		{"codex-mcp-client", "/home/u/.codex/skills/.system/pdf", clientprofile.Dirs{Home: home, Project: project}, true},
		{"other", "/home/u/.claude/skills/pdf", clientprofile.Dirs{Home: home, Project: project}, false},

		{"claude-code", "/home/u/p/sub/.claude/skills/pdf", clientprofile.Dirs{Home: home, Project: project}, true},
		{"claude-code", "/home/u/p/sub/.claude/skills/pdf", clientprofile.Dirs{Home: home}, false},
		{"claude-code", "/home/u/p/.claude/skills/pdf", clientprofile.Dirs{Home: home, Project: project}, true},
		{"codex-mcp-client", "/home/u/p/.agents/skills/pdf", clientprofile.Dirs{Home: home, Project: project}, true},
		{"opencode", "/home/u/p/.claude/skills/pdf", clientprofile.Dirs{Home: home, Project: project}, true},
		{"gemini-cli-mcp-client", "/home/u/p/sub/.agents/skills/pdf", clientprofile.Dirs{Home: home, Project: project}, true},
		{"gemini-cli-mcp-client", "/home/u/p/.agents/skills/pdf", clientprofile.Dirs{Home: home, Project: project}, false},

		{"claude-code", "/home/u/.claude/skills/pdf", clientprofile.Dirs{Home: home, Getenv: env("CLAUDE_CONFIG_DIR", moved)}, false},
		{"claude-code", "/home/u/.claude/skills/pdf", clientprofile.Dirs{Home: home, Project: []string{home}, Getenv: env("CLAUDE_CONFIG_DIR", moved)}, false},
		{"claude-code", "/cfg/skills/pdf", clientprofile.Dirs{Home: home, Getenv: env("CLAUDE_CONFIG_DIR", moved)}, true},
		{"claude-code", "/home/u/p/sub/cfg/skills/pdf", clientprofile.Dirs{Home: home, Project: project, Getenv: env("CLAUDE_CONFIG_DIR", "cfg")}, true},
		{"claude-code", "/home/u/.claude/skills/pdf", clientprofile.Dirs{Home: home, Getenv: env("CODEX_HOME", moved)}, true},
		{"opencode", "/home/u/.claude/skills/pdf", clientprofile.Dirs{Home: home, Getenv: env("CLAUDE_CONFIG_DIR", moved)}, true},
		{"codex-mcp-client", "/home/u/.codex/skills/pdf", clientprofile.Dirs{Home: home, Getenv: env("CODEX_HOME", moved)}, false},
		{"codex-mcp-client", "/cfg/skills/group/pdf", clientprofile.Dirs{Home: home, Getenv: env("CODEX_HOME", moved)}, true},
		{"codex-mcp-client", "/home/u/.agents/skills/pdf", clientprofile.Dirs{Home: home, Getenv: env("CODEX_HOME", moved)}, true},
		{"gemini-cli-mcp-client", "/home/u/.agents/skills/pdf", clientprofile.Dirs{Home: home, Getenv: env("GEMINI_CLI_HOME", moved)}, false},
		{"gemini-cli-mcp-client", "/cfg/.agents/skills/pdf", clientprofile.Dirs{Home: home, Getenv: env("GEMINI_CLI_HOME", moved)}, true},
	} {
		reads := clientprofile.Named(tt.client).ReadsItself(tt.dirs)
		if got := reads != nil && reads(p(tt.dir)); got != tt.want {
			t.Errorf("%s, %s, home %q, project %q: %v", tt.client, tt.dir, tt.dirs.Home, tt.dirs.Project, got)
		}
	}
}

// env returns an environment with one variable.
func env(name, value string) func(string) string {
	return func(n string) string {
		if n == name {
			return value
		}
		return ""
	}
}

func TestWithUserAgent(t *testing.T) {
	for agent, want := range map[string]string{
		"claude-code/2.1.197 (cli)": "Claude Code", "codex_cli_rs/0.169.0": "Codex", "Visual Studio Code/1.110": "Visual Studio Code", "Code - OSS/1.110": "Visual Studio Code",
		"": "", "claude-code": "", "Mozilla/5.0 claude-code/2": "",
	} {
		if got := clientprofile.WithUserAgent(agent); got.Title != want || want == "" && got != clientprofile.Unknown() {
			t.Errorf("%q: profile %q, want %q", agent, got.Title, want)
		}
	}
}

// The tables of the documentation are those of the recordings.
func TestDocumentedClients(t *testing.T) {
	for file, words := range map[string][]string{
		"../../docs/mcp-clients.md": {"", "protocol version", "elicitation, roots", "instructions of a server", "description of a tool", "result with text and structured content", "reads skills in", "yes", "no", "all", "%s characters", "text", "structured content",
			"without a user, calls a read-only tool, a destructive tool", "list of 50 skills, estimated tokens", "tools of Loadout, estimated tokens", "also in parent directories, up to the root of the repository"},
		"../../docs/zh/mcp-clients.md": {"", "协议版本", "elicitation、roots", "服务器的说明", "工具的描述", "既有文本又有结构化内容的结果", "自己读取技能的目录", "有", "无", "全部", "%s 个字符", "文本", "结构化内容",
			"没有用户时的调用：只读工具、破坏性工具", "50 个技能的列表，约多少 token", "Loadout 的工具，约多少 token", "也在上级目录中读取，直到仓库的根目录"},
	} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		const begin, end = "<!-- clients: written by go test ./internal/clientprofile -update -->\n", "<!-- end of clients -->\n"
		before, rest, ok := strings.Cut(string(b), begin)
		got, after, ended := strings.Cut(rest, end)
		if !ok || !ended {
			t.Fatalf("%s has no table of clients", file)
		}
		want := table(recordings(t), words)
		if got == want {
			continue
		}
		if !*update {
			t.Errorf("%s (-documented +recorded; -update accepts it):\n%s", file, cmp.Diff(got, want))
			continue
		}
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// modes adds the modes of a capability to text.
func modes(text string, capability map[string]any) string {
	if len(capability) == 0 {
		return text
	}
	return text + " (" + strings.Join(slices.Sorted(maps.Keys(capability)), ", ") + ")"
}

// table returns the recordings as a table in Markdown.
func table(all map[string]recording, words []string) string {
	rows := make([][]string, 11)
	for i, w := range append(words[:7:7], words[16], words[13], words[14], words[15]) {
		rows[i] = []string{w}
	}
	has := func(there bool) string {
		if there {
			return words[7]
		}
		return words[8]
	}
	arrived := func(n int) string {
		if n == probeLength {
			return words[9]
		}
		return fmt.Sprintf(words[10], fmt.Sprintf("%d,%03d", n/1000, n%1000))
	}
	for _, p := range clientprofile.Profiles() {
		r, ok := all[p.Recording]
		if !ok {
			continue
		}
		list, tools := "", ""
		for _, s := range r.Shown {
			list += s.Text + "\n"
		}
		for _, tool := range r.Tools {
			var compact bytes.Buffer // the recording is indented, the request is not
			_ = json.Compact(&compact, tool)
			tools += compact.String() + "\n"
		}
		for _, line := range strings.Split(list, "\n") { // part of the list may be in a description
			if strings.HasPrefix(line, "- review-contracts-") {
				tools = strings.ReplaceAll(tools, `\n`+line, "")
			}
		}
		result := map[string]string{"text": words[11], "structured": words[12]}[r.Result]
		for i, cell := range []string{p.Title + " " + r.Version, r.Protocol, modes(has(r.Capabilities.Elicitation != nil), r.Capabilities.Elicitation) + ", " + has(r.Capabilities.Roots != nil),
			arrived(r.Instructions), arrived(r.Description), result, "`" + strings.Join(p.Reads, "`, `") + "`", has(p.Parents),
			has(slices.Contains(r.Unasked, "probe_result")) + ", " + has(slices.Contains(r.Unasked, "probe_destruction")),
			fmt.Sprint(tokencount.Estimate(list)), fmt.Sprint(tokencount.Estimate(tools))} {
			rows[i] = append(rows[i], cell)
		}
	}
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat(" --- |", len(row)) + "\n")
		}
	}
	return b.String()
}
