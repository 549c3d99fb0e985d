package upstream_test

import (
	"fmt"

	"github.com/loadout-dev/loadout/internal/upstream"
)

func ExampleParse() {
	file, problems := upstream.Parse([]byte(`{
  // of any program that has MCP servers
  "mcpServers": {
    "docs": {"type": "streamableHttp", "url": "https://docs.example/mcp", "colour": "red"},
    "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."]},
  },
}`), upstream.ParseOptions{Name: "mcp.json"})
	for _, c := range file.Servers {
		fmt.Println(c.Name, c.Type, c.Target())
	}
	for _, p := range problems {
		fmt.Println(p)
	}
	// Output:
	// docs http docs.example
	// files stdio npx
	// 4:75: info: server "docs": key "colour" is unknown and ignored [server-key]
}

func ExampleConfig_Resolve() {
	c := &upstream.Config{Name: "weibo", URLs: []string{"https://weibo.example"}, Headers: map[string]string{"Authorization": "Bearer ${{user.weibo_token}}"}}
	user := map[string]string{}
	granted := upstream.Variables{User: func(name string) (string, bool) { v, ok := user[name]; return v, ok }}

	_, unset := c.Resolve(granted)
	fmt.Println(unset[0])

	user["weibo_token"] = "abc"
	resolved, _ := c.Resolve(granted)
	fmt.Println(resolved.Headers["Authorization"], resolved.Digest() == c.Digest())
	// Output:
	// header Authorization has no value for ${{user.weibo_token}}: set the user value weibo_token
	// Bearer abc true
}
