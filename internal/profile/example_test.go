package profile_test

import (
	"fmt"

	"github.com/loadout-dev/loadout/internal/profile"
)

func ExampleParse() {
	ghosts, _ := profile.Parse([]byte(`apiVersion: loadout/v1
kind: Ghost
metadata:
  name: analyst
spec:
  systemPrompt: Be exact.
  skills: [csv-analysis, charts]
  preload: [csv-analysis]
  mcpServers:
    db: {command: db-server}
`), "analyst.yaml")
	for _, g := range ghosts {
		fmt.Println(g.Name, g.Skills, g.Preload, g.MCPServers[0].Name)
	}
	// Output: analyst [csv-analysis charts] [csv-analysis] db
}
