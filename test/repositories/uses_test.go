//go:build linux

package repositories_test

// args are the arguments of a tool.
type args = map[string]any

var repositories = []repository{
	{
		name: "wecode-ai/Wegent", system: "wegent", usable: 15, uses: wegent,
		without:   []string{"wework/src-tauri/icons/icon-dev.icns"},
		documents: "backend/init_data/02-public-resources.yaml",
	},
	{
		name: "Tencent/WeKnora", system: "weknora", usable: 7, uses: weknora,
		without: []string{"frontend/src/assets/fonts/TencentSans.ttf", "website-docs/public/screenshots/quickstart-register.png"},
	},
	{name: "nqumich/ba-agent", system: "ba-agent", packages: true, usable: 4, uses: baAgent},
	{name: "lotaway/local-llm-provider", system: "local-llm-provider", usable: 1, uses: localLLMProvider},
}

var wegent = map[string][]use{
	// Wegent does not replace the name of the program either.
	"browser":                {{want: []string{"<BROWSER_TOOL_CMD>"}}},
	"conversation_to_prompt": {{want: []string{"## Evaluation Rules"}}},
	"ui-links":               {{want: []string{"attachment://", "wegent://"}}},
	"dingtalk-ai-table":      {{tool: "query_records", args: args{"table": "tasks"}, want: []string{`query_records got {"table":"tasks"}`}}},
	"dingtalk-docs": {
		{tool: "list_nodes", args: args{"workspaceId": "w1"}, want: []string{`list_nodes got {"workspaceId":"w1"}`}},
		{tool: "get_document_content", args: args{"nodeId": "n1"}, want: []string{`get_document_content got {"nodeId":"n1"}`}},
	},
	"interactive": {{tool: "interactive_form_question", args: args{"questions": []any{args{"id": "environment", "question": "Where?", "input_type": "text"}}},
		want: []string{`"question":"Where?"`}}},
	"prompt-optimization":     {{tool: "get_team_prompt", want: []string{"get_team_prompt got"}}},
	"subscription-manager":    {{tool: "preview_subscription", args: args{"display_name": "Water", "trigger_type": "cron", "cron_expression": "0 9 * * *"}, want: []string{`"cron_expression":"0 9 * * *"`}}},
	"wegent-image-generation": {{tool: "generate_image", args: args{"prompt": "a red kite"}, want: []string{`generate_image got {"prompt":"a red kite"}`}}},
	"wegent-video-generation": {{tool: "generate_video", args: args{"prompt": "a red kite"}, want: []string{`generate_video got {"prompt":"a red kite"}`}}},
	"wegent-knowledge": {
		{tool: "wegent_kb_list_knowledge_bases", args: args{"scope": "all"}, want: []string{`wegent_kb_list_knowledge_bases got {"scope":"all"}`}},
		{tool: "wegent_kb_search_knowledge_base", args: args{"knowledge_base_id": 123, "query": "deployment"}, want: []string{`"query":"deployment"`}},
	},
	"mermaid-diagram": {
		{tool: "read_mermaid_reference", args: args{"reference": "flowchart"}, want: []string{"flowchart"}},
		{tool: "render_mermaid", args: args{"code": "flowchart TD\n  A[Start] --> B[End]"}, want: []string{`"success": true`, "A[Start]"}},
		{tool: "render_mermaid", args: args{"code": "flowchart TD\n  A[Start --> B"}, want: []string{`"success": false`, "Unclosed bracket"}},
	},
	"sandbox": {
		{tool: "write_file", args: args{"file_path": "/home/user/notes/a.txt", "content": "hello from a file\n"}, want: []string{`"success": true`}},
		{tool: "exec", args: args{"command": "cat notes/a.txt | tr a-z A-Z"}, want: []string{`"exit_code": 0`, `"stdout": "HELLO FROM A FILE\n"`}},
		{tool: "read_file", args: args{"file_path": "notes/a.txt"}, want: []string{"hello from a file"}},
		{tool: "list_files", args: args{"path": "/home/user", "depth": 2}, want: []string{`"path": "/home/user/notes/a.txt"`}},
		// The code of a skill does not get the token of a task, and there is no program claude.
		{tool: "upload_attachment", refused: true, args: args{"file_path": "notes/a.txt"}, want: []string{"No authentication token available for upload"}},
		{tool: "download_attachment", refused: true, args: args{"attachment_url": "/api/attachments/1/download"}, want: []string{"No authentication token available for download"}},
		{tool: "sub_claude_agent", refused: true, args: args{"prompt": "Say hello."}, want: []string{"claude: not found"}},
	},
	"skill-creator": {
		{script: "scripts/aggregate_benchmark.py", argv: []string{"/work/in/bench", "--output", "/work/out/benchmark.json"}, want: []string{"Generated: /work/out/benchmark.json"},
			in: map[string]string{
				"bench/eval-1/with_skill/run-1/grading.json":    `{"summary": {"pass_rate": 1, "passed": 2, "failed": 0, "total": 2}}`,
				"bench/eval-1/without_skill/run-1/grading.json": `{"summary": {"pass_rate": 0.5, "passed": 1, "failed": 1, "total": 2}}`,
			}},
		{file: "references/schemas.md", want: []string{"grading.json"}},
	},
	"wiki-submit": {
		{script: "wiki_submit.js", host: true, argv: []string{"submit", "--endpoint", "BACKEND/api/internal/wiki/generations/contents", "--token", token, "--generation-id", "7", "--path", "index", "--title", "Overview", "--content", "# Overview"},
			want: []string{"Page 'index' submitted successfully"}},
		{script: "wiki_submit.js", host: true, argv: []string{"read", "--endpoint", "BACKEND/api/internal/wiki/generations/contents", "--token", token, "--generation-id", "7", "--path", "index"},
			want: []string{"# Overview"}},
	},
	"create-smart-app":     {{want: []string{"plugin-manifest.json"}}},
	"hello-wework":         {{tool: "example__hello_wework", args: args{"name": "Loadout"}, want: []string{"Hello, Loadout!"}}},
	"wework-project-space": {{want: []string{"get_current_context"}}},
}

var weknora = map[string][]use{
	"引用生成器": {{want: []string{"参考文献列表"}}},
	"文档分析器": {{want: []string{"文档类型识别"}}},
	"文档协作":  {{want: []string{"Reader Testing"}}},
	"数据处理器": {
		{script: "scripts/analyze.py", stdin: `{"items": [1, 2, 3, 4]}`, want: []string{`"mean": 2.5`}},
		{script: "scripts/format_converter.py", argv: []string{"--to", "csv"}, stdin: `[{"name": "A", "value": 1}]`, want: []string{"name,value\r\nA,1"}},
		{script: "scripts/extract_info.py", stdin: "2024年销售额为100万元，同比增长15%", want: []string{`"15%"`, "100万元"}},
	},
	"openmaic-classroom": {
		{script: "scripts/rag-to-requirement.py", stdin: `{"chunks": [{"document_name": "comets.pdf", "content": "Comets are made of ice and dust.", "metadata": {"page": 5}}], "query": "comets"}`, want: []string{`"requirement"`, "comets.pdf"}},
		{script: "scripts/concept-to-requirement.py", stdin: `{"concept": {"slug": "concept/comet", "title": "Comet", "summary": "Ice and dust."}, "entities": []}`, want: []string{`"requirement"`, "Comet"}},
		{file: "references/api-reference.md", want: []string{"/api/"}},
	},
	"pdf-processing": {
		{script: "scripts/extract_text.py", argv: []string{"/work/in/form.pdf"}, in: map[string]string{"form.pdf": "%PDF-1.4\n"}, want: []string{"Extraction complete."}},
		{script: "scripts/analyze_form.py", argv: []string{"/work/in/form.pdf"}, in: map[string]string{"form.pdf": "%PDF-1.4\n"}, want: []string{"agree_terms: checkbox [REQUIRED]"}},
	},
	"weknora-rag-search": {
		{want: []string{"Pick the command by your goal"}},
		{file: "references/search-chunks.md", want: []string{"search chunks"}},
	},
	"weknora-shared": {{want: []string{"Exit codes"}}},
}

// sales are the values of seven days, of which the last is unusual.
var sales = []any{
	args{"date": "2026-01-01", "region": "north", "value": 100}, args{"date": "2026-01-02", "region": "south", "value": 102},
	args{"date": "2026-01-03", "region": "north", "value": 98}, args{"date": "2026-01-04", "region": "south", "value": 101},
	args{"date": "2026-01-05", "region": "north", "value": 99}, args{"date": "2026-01-06", "region": "south", "value": 100},
	args{"date": "2026-01-07", "region": "north", "value": 400},
}

// salesJSON has the first and the last of the sales.
const salesJSON = `[{"date": "2026-01-01", "region": "north", "value": 100}, {"date": "2026-01-07", "region": "south", "value": 300}]`

// The scripts come first, because they wait until packages are installed.
var baAgent = map[string][]use{
	"anomaly_detection": {
		{script: "main.py", argv: []string{`{"data": ` + salesJSON + `, "threshold": 0.5}`}, want: []string{`"total": 2`, `"type": "rise"`}},
		{tool: "detect", args: args{"data": sales}, want: []string{`"date": "2026-01-07"`, `"severity": "medium"`, `"data_points": 7`}},
	},
	"attribution": {
		{script: "main.py", argv: []string{`{"target_dimension": "region", "data": ` + salesJSON + `}`}, want: []string{"主要贡献来自 south，占比 75.0%"}},
		{tool: "analyze", args: args{"data": sales, "target_dimension": "region"}, want: []string{`"north": 69.7`, "重点关注 north 的变化趋势"}},
	},
	"report_gen": {
		{script: "main.py", argv: []string{`{"report_type": "weekly", "data": ` + salesJSON + `}`}, want: []string{"# 业务周报", "## 异动分析"}},
		{tool: "generate", args: args{"report_type": "daily", "data": sales, "title": "GMV日报", "format": "html"}, want: []string{"GMV日报", "<h1>"}},
	},
	"visualization": {
		{script: "main.py", argv: []string{`{"data": ` + salesJSON + `, "chart_hint": "line"}`}, want: []string{`"chart_type": "line"`, `"valid": true`}},
		{tool: "create_chart", args: args{"data": args{"north": 697, "south": 303}, "theme": "dark"}, want: []string{`"chart_type": "pie"`, `"valid": true`}},
	},
}

var localLLMProvider = map[string][]use{
	"chrome-devtools": {
		{tool: "chrome__navigate_page", args: args{"url": "http://127.0.0.1/"}, want: []string{`navigate_page got {"url":"http://127.0.0.1/"}`}},
	},
}
