package agents_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/skill"
)

// weibo is the example that has to work as it stands.
const weibo = `apiVersion: agent.wecode.io/v1
kind: Ghost
metadata:
  name: weibo-test
spec:
  systemPrompt: "You are a Weibo analyst"
  skills:
    - weibo
  mcpServers:
    weiboServer:
      type: streamable-http
      url: https://weibo-api.example.com
      headers:
        Authorization: Bearer ${{user.weibo_token}}
`

const digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// head is the beginning of a document of three lines, so that a spec begins on the
// fourth.
func head(kind string) string {
	return "apiVersion: loadout/v1\nkind: " + kind + "\nmetadata: {name: x}\n"
}

// The documents of each kind are written back.
func TestParseAccepted(t *testing.T) {
	for _, tt := range []struct {
		name, src string
		want      []string
	}{
		{"Wegent's Ghost", weibo, []string{`{"apiVersion":"loadout/v1","kind":"Ghost","metadata":{"name":"weibo-test"},"spec":{"systemPrompt":"You are a Weibo analyst","skills":["weibo"],"mcpServers":{"weiboServer":{"headers":{"Authorization":"Bearer ${{user.weibo_token}}"},"type":"streamable-http","url":"https://weibo-api.example.com"}}}}`}},
		{"our Ghost", `apiVersion: loadout/v1
kind: Ghost
metadata: {name: analyst, namespace: team, description: reads numbers}
spec:
  skills: csv, pdf, csv
  preload: [pdf]
  skill_refs: {pdf: {skill_id: s1, content_hash: ` + digestA + `}}
  mcpServers: [weather]
  expose: direct
  policy: {rules: ["deny mcp.*.delete"]}
`, []string{`{"apiVersion":"loadout/v1","kind":"Ghost","metadata":{"name":"analyst","namespace":"team","description":"reads numbers"},"spec":{"skills":["csv","pdf"],"preload_skills":["pdf"],"skill_refs":{"pdf":{"skill_id":"s1","content_hash":"` + digestA + `"}},"mcpServers":["weather"],"expose":"direct","policy":["deny mcp.*.delete"]}}`}},
		{"Bots", head("Bot") + "spec: {ghostRef: {name: g, namespace: default}, shellRef: {name: Chat}, modelRef: {name: m}, skills: [s]}\n---\nkind: Bot\nmetadata: {name: y}\nspec: {ghost: g}\n", []string{
			`{"apiVersion":"loadout/v1","kind":"Bot","metadata":{"name":"x"},"spec":{"ghostRef":{"name":"g","namespace":"default"},"modelRef":{"name":"m"},"skills":["s"]}}`,
			`{"apiVersion":"loadout/v1","kind":"Bot","metadata":{"name":"y"},"spec":{"ghostRef":{"name":"g"}}}`}},
		{"a Team", head("Team") + "spec:\n  collaborationModel: pipeline\n  members:\n  - a\n  - {botRef: {name: b, namespace: team}, role: Leader, prompt: lead, requireConfirmation: true, contextPassing: none}\n", []string{
			`{"apiVersion":"loadout/v1","kind":"Team","metadata":{"name":"x"},"spec":{"members":[{"botRef":{"name":"a"}},{"botRef":{"name":"b","namespace":"team"},"prompt":"lead","role":"leader","requireConfirmation":true}],"collaborationModel":"pipeline"}}`}},
		{"Models", head("Model") + "spec: {vendor: openai, model: m-1, baseUrl: https://llm.example.com/v1, apiKey: '${{secrets.LLM}}'}\n---\n" +
			"kind: Model\nmetadata: {name: y}\nspec: {modelConfig: {env: {model: claude, model_id: c-1, base_url: https://llm.example.com, api_key: '${{secrets.LLM}}'}}}\n---\nkind: Model\nmetadata: {name: z}\nspec: {vendor: demo}\n", []string{
			`{"apiVersion":"loadout/v1","kind":"Model","metadata":{"name":"x"},"spec":{"vendor":"openai","model":"m-1","baseUrl":"https://llm.example.com/v1","apiKey":"${{secrets.LLM}}"}}`,
			`{"apiVersion":"loadout/v1","kind":"Model","metadata":{"name":"y"},"spec":{"vendor":"anthropic","model":"c-1","baseUrl":"https://llm.example.com","apiKey":"${{secrets.LLM}}"}}`,
			`{"apiVersion":"loadout/v1","kind":"Model","metadata":{"name":"z"},"spec":{"vendor":"demo"}}`}},
		{"a server", head("MCPServer") + "spec: {command: npx, args: [weather], env: {KEY: '${{secrets.KEY}}'}}\n", []string{
			`{"apiVersion":"loadout/v1","kind":"MCPServer","metadata":{"name":"x"},"spec":{"args":["weather"],"command":"npx","env":{"KEY":"${{secrets.KEY}}"}}}`}},
		{"a Skill", head("Skill") + "spec: {description: does x, prompt: 'Do x.', version: 1.10, tags: [a]}\n", []string{
			`{"apiVersion":"loadout/v1","kind":"Skill","metadata":{"name":"x"},"spec":{"description":"does x","prompt":"Do x.","tags":["a"],"version":1.10}}`}},
		{"JSON", `{"apiVersion": "loadout/v1", "kind": "Ghost", "metadata": {"name": "a"}, /* c */ "spec": {},}`, []string{`{"apiVersion":"loadout/v1","kind":"Ghost","metadata":{"name":"a"},"spec":{}}`}},
		{"nothing", "# nothing\n---\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			docs := agents.Parse([]byte(tt.src), "")
			var got []string
			for _, d := range docs {
				b, err := d.Encode()
				must(t, err)
				got = append(got, string(b))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || len(found(docs)) > 0 {
				t.Errorf("(-want +got):\n%s%v", diff, found(docs))
			}
		})
	}
}

// All errors are reported together, each with its position.
func TestParseRefused(t *testing.T) {
	for _, tt := range []struct {
		name, src string
		want      []string
	}{
		{"no kind", "a: 1\n", []string{"error 1:1 document-kind"}},
		{"no map", "- a\n", []string{"error 1:1 document-shape"}},
		{"no name", "kind: Ghost\nspec: {}\n", []string{"error 1:7 document-name"}},
		{"a path as name", "kind: Ghost\nmetadata: {name: ../x, namespace: a/b}\n", []string{"error 2:18 document-name"}},
		{"a path as namespace", "kind: Ghost\nmetadata: {name: x, namespace: a/b}\n", []string{"error 2:32 document-namespace"}},
		{"a later version", "apiVersion: loadout/v9\nkind: Ghost\nmetadata: {name: x}\n", []string{"error 1:13 document-version"}},
		{"the rest is unreadable", head("Ghost") + "---\nkind: 'Ghost\n", []string{"error 5:7 document-unreadable"}},
		{"spec is a list", head("Ghost") + "spec: [a]\n", []string{"error 4:7 document-shape"}},
		{"keys twice, and unknown", head("Ghost") + "spec:\n  expose: meta\n  expose: direct\n  colour: red\n  mcp_servers: [a]\n  mcpServers: [b]\n",
			[]string{"error 5:3 document-key-twice", "warning 7:3 document-key", "error 9:3 document-key-twice"}},
		{"a preload that is no skill", head("Ghost") + "spec:\n  skills: [a]\n  preload_skills: [a, b]\n", []string{"error 6:19 preload-unknown"}},
		{"a ref that is no skill", head("Bot") + "spec:\n  ghost: g\n  skills: [a]\n  skill_refs: {b: {skill_id: s}}\n", []string{"error 7:15 skill-ref"}},
		{"refs that disagree", head("Ghost") + "spec:\n  skills: [a]\n  skill_refs: {a: {skill_id: s}}\n  preload_skill_refs: {a: {skill_id: z}}\n", []string{"error 7:24 skill-ref"}},
		{"a hash that is none", head("Ghost") + "spec:\n  skills: [a]\n  skill_refs: {a: {content_hash: 'sha256:1'}}\n", []string{"error 6:19 skill-ref"}},
		{"ids of another system", "apiVersion: agent.wecode.io/v1\nkind: Ghost\nmetadata: {name: x}\nspec: {skills: [a], skill_refs: {a: {skill_id: 7, namespace: default}}}\n", []string{"warning 4:34 skill-ref-elsewhere"}},
		{"names that are none", head("Ghost") + "spec:\n  skills: [a, [b], \"c\\e\"]\n", []string{"error 5:15 skill-name", "error 5:20 skill-name"}},
		{"rules", head("Ghost") + "spec:\n  policy: [perhaps x]\n", []string{"error 5:11 ghost-policy"}},
		{"expose", head("Ghost") + "spec: {expose: all}\n", []string{"error 4:16 ghost-expose"}},
		{"a bad server and a good one", head("Ghost") + "spec:\n  mcpServers:\n    x: {type: pigeon, url: 'https://x.example.com'}\n    y: {command: z}\n", []string{"error 6:15 server-type"}},
		{"secrets in plain text", head("Ghost") + "spec:\n  mcpServers:\n    a: {url: 'https://u:pw@a.example.com'}\n    b: {url: 'https://b.example.com/?token=t'}\n    c: {command: z, env: {API_KEY: k}}\n    d: {url: 'https://d.example.com', headers: {Authorization: Bearer t}}\n    e: {url: 'https://d.example.com', oauth: {clientId: a, clientSecret: b}}\n",
			[]string{"error 6:5 document-secret", "error 7:5 document-secret", "error 8:5 document-secret", "error 9:5 document-secret", "error 10:5 document-secret"}},
		{"the environment", head("MCPServer") + "spec: {command: z, env: {A: '${HOME}'}, envFile: .env}\n", []string{"warning 4:7 server-variable", "error 4:7 server-env-file"}},
		{"no server", head("MCPServer") + "spec: {}\n", []string{"error 4:7 server-target"}},
		{"a Bot of nothing", head("Bot") + "spec: {}\n", []string{"error 4:7 bot-ghost"}},
		{"a ref without a name", head("Bot") + "spec: {ghostRef: {namespace: a}}\n", []string{"error 4:18 document-ref"}},
		{"a Team of nobody", head("Team") + "spec: {members: []}\n", []string{"error 4:7 team-members"}},
		{"members", head("Team") + "spec:\n  members:\n  - {botRef: a, role: leader}\n  - {botRef: b, role: leader}\n  - a\n  - {prompt: x}\n  - 1\n",
			[]string{"error 7:5 team-leader", "error 8:5 team-member", "error 9:5 team-member", "error 10:5 team-member"}},
		{"a key in plain text", head("Model") + "spec: {vendor: openai, model: m, apiKey: sk-1}\n", []string{"error 4:42 document-secret"}},
		{"a vendor", head("Model") + "spec: {vendor: acme, model: m}\n", []string{"error 4:16 model-vendor"}},
		{"no window", head("Model") + "spec: {vendor: demo, window: 0}\n", []string{"error 4:30 model-window"}},
		{"window", head("Model") + "spec: {vendor: demo, window: 32000}\n", nil},
		{"no model", head("Model") + "spec: {vendor: openai}\n", []string{"error 4:7 model-name"}},
		{"an address of a model", head("Model") + "spec: {vendor: openai, model: m, baseUrl: 'https://u:p@h.example.com'}\n", []string{"error 4:43 model-url"}},
		{"a Skill of nothing", head("Skill") + "spec: {prompt: x}\n", []string{"error 4:7 description-missing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			docs := agents.Parse([]byte(tt.src), "a.yaml")
			if diff := cmp.Diff(tt.want, found(docs)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
				for _, d := range docs {
					t.Log(d.Findings)
				}
			}
		})
	}
}

// A preload that is not among the skills is refused by its name.
func TestPreloadErrorsNameTheSkill(t *testing.T) {
	docs := agents.Parse([]byte(head("Ghost")+"spec: {skills: [a], preload_skills: [other]}\n"), "")
	if m := docs[0].Findings[0].Message; !strings.Contains(m, `"other"`) {
		t.Errorf("got %s", m)
	}
}

func TestErrorsNameKeysAsWritten(t *testing.T) {
	docs := agents.Parse([]byte(head("Ghost")+"spec: {colour: red}\n"), "x.yaml")
	const want = "remove it, or use one of description, expose, mcpServers, policy, preload, preloadSkillRefs, preloadSkills, skillRefs, skills, systemPrompt"
	if f := docs[0].Findings; len(f) != 1 || f[0].Fix != want {
		t.Errorf("%+v", f)
	}
}

// Documents of unknown kinds are skipped and reported.
func TestParseSkips(t *testing.T) {
	docs := agents.Parse([]byte("kind: Shell\nmetadata: {name: Chat}\n---\n"+weibo), "")
	if len(docs) != 2 || !docs[0].Skipped || docs[0].Name != "Chat" || docs[1].Skipped {
		t.Errorf("%+v", docs)
	}
	wantEqual(t, found(docs), []string{"warning 1:7 document-skipped"})
}

func TestParseLimits(t *testing.T) {
	docs := agents.Parse([]byte(strings.Repeat("---\nkind: Ghost\nmetadata: {name: x}\n", agents.MaxDocuments+1)), "")
	if last := docs[len(docs)-1]; len(docs) != agents.MaxDocuments+1 || last.Findings.Loads() || last.Findings[0].Code != "document-many" {
		t.Errorf("%d documents, %v", len(docs), last.Findings)
	}
	var many, members []string
	for i := range agents.MaxSkills + 1 {
		many = append(many, fmt.Sprint("s", i))
	}
	for i := range agents.MaxMembers + 1 {
		members = append(members, fmt.Sprint("b", i))
	}
	for code, src := range map[string]string{
		"skill-many":     head("Ghost") + "spec: {skills: [" + strings.Join(many, ", ") + "]}",
		"servers-many":   head("Ghost") + "spec: {mcpServers: [" + strings.Join(many, ", ") + "]}",
		"team-members":   head("Team") + "spec: {members: [" + strings.Join(members, ", ") + "]}",
		"document-large": head("Ghost") + "spec: {systemPrompt: " + strings.Repeat("x", agents.MaxSpec) + "}",
	} {
		if d := agents.Parse([]byte(src), "")[0]; d.Findings.Loads() || d.Findings[0].Code != code {
			t.Errorf("%s: %v", code, d.Findings)
		}
	}
}

// What is accepted can be written and read again as the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(weibo), "a.yaml")
	for _, spec := range []string{
		"Ghost\nmetadata: {name: a}\nspec: {skills: [p], preload: [p], skill_refs: {p: {is_public: true}}, mcp_servers: [x, {name: y, command: z, timeout: 0x10}], expose: direct, policy: {rules: ['deny x']}}",
		"Bot\nmetadata: {name: a}\nspec: {ghost: g, model: m, mcpServers: {a: {url: 'https://a.example.com/${{user.x}}'}}}",
		"Team\nmetadata: {name: a}\nspec: {members: [a, {bot: b, role: leader, requireConfirmation: true}]}",
		"Model\nmetadata: {name: a}\nspec: {modelConfig: {env: {model: openai, model_id: x, api_key: '${{secrets.A}}'}}}",
		"MCPServer\nmetadata: {name: mcp}\nspec: {servers: {command: x}}",
		"Skill\nmetadata: &m {name: a}\nspec: {description: d, prompt: \"---\\n\", version: .5}\n---\nkind: Ghost\nmetadata: *m\n",
	} {
		f.Add([]byte("apiVersion: loadout/v1\nkind: "+spec+"\n"), "a.yaml")
	}
	f.Add([]byte(`{"kind": "Ghost", "metadata": {"name": "a"}, "spec": {"skills": "a, b",},}`), "a.json")
	f.Fuzz(func(t *testing.T, src []byte, file string) {
		for _, d := range agents.Parse(src, file) {
			for _, f := range d.Findings {
				if f.Code == "" || f.Message == "" || f.Severity != skill.Info && f.Fix == "" || strings.ContainsAny(f.Message+f.Fix, "\n\x1b") {
					t.Errorf("unfinished finding %+v", f)
				}
			}
			if !d.Skipped && d.Findings.Loads() != (d.Spec != nil) {
				t.Errorf("a spec %v with the findings %v", d.Spec, d.Findings)
			}
			if d.Spec == nil {
				continue
			}
			first, err := d.Encode()
			if err != nil {
				t.Fatal(err)
			}
			again := agents.Parse(first, "again.json")
			if len(again) != 1 || again[0].Spec == nil {
				t.Fatalf("it was accepted as\n%s\nand then not: %v", first, again[0].Findings)
			}
			second, err := again[0].Encode()
			if err != nil || !bytes.Equal(first, second) {
				t.Errorf("it is\n%s\nand then\n%s\n%v", first, second, err)
			}
		}
	})
}
