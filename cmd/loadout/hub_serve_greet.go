package main

import (
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/llm/vendors"
	"github.com/loadout-dev/loadout/internal/store"
)

// hubGreeting is the JSON output of the serve command, printed once the hub
// listens.
type hubGreeting struct {
	URL      string `json:"url"`
	Mode     string `json:"mode"`     // single or accounts
	Database string `json:"database"` // SQLite or PostgreSQL
	Data     string `json:"data"`
	Model    string `json:"model"` // as the model reports it, or demo
	Setup    bool   `json:"setup"` // whether a link for the first administrator was printed
}

// printHubGreeting prints the address of the hub and the next steps. The link
// that creates the first administrator is a secret. It is printed only to
// standard error, and never as JSON.
func (a *app) printHubGreeting(o hub.Options, single bool, url, link, model string) {
	if link != "" {
		fmt.Fprintf(a.Stderr, "loadout: this hub has no administrator yet; open this link within a day to become its administrator:\n  %s%s\n", url, link)
	}
	g := hubGreeting{URL: url, Mode: "accounts", Database: "PostgreSQL", Data: o.Data, Model: "demo", Setup: link != ""}
	if single {
		g.Mode = "single"
	}
	if o.Database == "" || store.SQLitePath(o.Database) != "" {
		g.Database = "SQLite"
	}
	if !vendors.IsDemo(model) {
		g.Model = model
	}
	if a.JSON {
		_ = a.PrintJSON(g)
		return
	}
	a.printHubText(g)
}

func (a *app) printHubText(g hubGreeting) {
	var b strings.Builder
	whose, token := "for you only, without sign-in", ""
	if g.Mode == "accounts" {
		whose, token = "with accounts", " -H 'Authorization: Bearer TOKEN'"
	}
	fmt.Fprintf(&b, "Hub %s, %s in %s.\n", whose, g.Database, a.homeRelative(g.Data))
	if g.Model == "demo" {
		b.WriteString("No model configured: the built-in demo answers. Connect a model on the page.\n")
	} else {
		fmt.Fprintf(&b, "Model: %s\n", plain(g.Model))
	}
	fmt.Fprintf(&b, "\n  Hub:           %s\n  MCP endpoint:  %s\n", a.Bold(g.URL), g.URL+"/mcp")
	b.WriteString("\n")
	if token != "" {
		fmt.Fprintf(&b, "Get a TOKEN:     open the setup link, or sign in with POST %s/api/v1/login, then POST /api/v1/tokens\n", g.URL)
	}
	fmt.Fprintf(&b, "Capabilities:    curl%s %s/api/v1/capabilities\n", token, g.URL)
	fmt.Fprintf(&b, "Upload a skill:  loadout pack DIR, then\n                 curl%s -H 'Content-Type: application/zip' --data-binary @NAME.zip \\\n                   '%s/api/v1/skills?file_name=NAME.zip'\n", token, g.URL)
	fmt.Fprintf(&b, "Chat:            curl%s --json '{\"message\": \"use the skill csv-analysis\"}' %s/api/v1/sessions, then\n                 curl%s -N %s/api/v1/sessions/ID/events\n", token, g.URL, token, g.URL)
	if g.Mode == "single" {
		b.WriteString("For a team:      loadout serve --help\n")
	}
	b.WriteString("\nPress Ctrl-C to exit.\n")
	fmt.Fprint(a.Stdout, b.String())
}

// homeRelative replaces the home directory in a path with ~.
func (a *app) homeRelative(path string) string {
	if rest, ok := strings.CutPrefix(path, a.Home()+"/"); ok && a.Home() != "" {
		return plain("~/" + rest)
	}
	return plain(path)
}
