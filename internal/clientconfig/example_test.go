package clientconfig_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout/internal/clientconfig"
)

func Example() {
	project, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(project)
	text := "{\n  \"mcpServers\": {\n    \"github\": { \"url\": \"https://api.example.org/mcp?key=abc\" }\n  }\n}\n"
	if err := os.WriteFile(filepath.Join(project, ".mcp.json"), []byte(text), 0o644); err != nil {
		log.Fatal(err)
	}

	claude, err := clientconfig.Lookup("claude-code")
	if err != nil {
		log.Fatal(err)
	}
	target := clientconfig.Target{Client: claude, Scope: clientconfig.Project, Environment: clientconfig.Environment{OS: "linux", Dir: project}}
	change, err := clientconfig.Plan(target, clientconfig.Entry{Command: "/usr/local/bin/loadout", Args: []string{"mcp"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(change.Action, "\n", strings.ReplaceAll(change.Diff(), project, "shop"))
	if err := change.Apply(); err != nil {
		log.Fatal(err)
	}

	change, err = clientconfig.PlanUndo(target, clientconfig.DefaultName)
	if err != nil {
		log.Fatal(err)
	}
	if err := change.Apply(); err != nil {
		log.Fatal(err)
	}
	after, err := os.ReadFile(change.File)
	fmt.Println(change.Action, string(after) == text, err)
	// Output:
	// add
	// --- shop/.mcp.json
	// +++ shop/.mcp.json
	// @@ -1,5 +1,10 @@
	//  {
	//    "mcpServers": {
	// -    "github": { "url": "•••" }
	// +    "github": { "url": "•••" },
	// +    "loadout": {
	// +      "type": "stdio",
	// +      "command": "/usr/local/bin/loadout",
	// +      "args": ["mcp"]
	// +    }
	//    }
	//  }
	// remove true <nil>
}

func ExampleSnippet() {
	codex, err := clientconfig.Lookup("codex")
	if err != nil {
		log.Fatal(err)
	}
	text, err := clientconfig.Snippet(codex, clientconfig.Entry{URL: "http://127.0.0.1:8484/mcp"})
	fmt.Print(text, err)
	// Output:
	// [mcp_servers.loadout]
	// url = "http://127.0.0.1:8484/mcp"
	// <nil>
}
