package main

import (
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/store"
)

// hubGreeting is what serve --json prints once it listens.
type hubGreeting struct {
	URL      string `json:"url"`
	Mode     string `json:"mode"`     // single or accounts
	Database string `json:"database"` // SQLite or PostgreSQL
	Data     string `json:"data"`
	Model    string `json:"model"`
	Setup    bool   `json:"setup"` // whether a link for the first administrator was printed
}

// greetHub says what is served, and what to do next. The link by which the first
// administrator is made is a secret: it goes to standard error, and not into JSON.
func (a *app) greetHub(c *config.Config, o hub.Options, single bool, url, setup string) {
	if setup != "" {
		fmt.Fprintf(a.stderr, "loadout: nobody administers this hub yet; whoever opens this link first does, within a day:\n  %s%s\n", url, setup)
	}
	g := hubGreeting{URL: url, Mode: "accounts", Database: "PostgreSQL", Data: o.Data, Model: "demo", Setup: setup != ""}
	if single {
		g.Mode = "single"
	}
	if o.Database == "" || store.SQLitePath(o.Database) != "" {
		g.Database = "SQLite"
	}
	if choice := chosenModel(c, &chatFlags{}); !choice.isDemo() {
		g.Model = choice.name
	}
	if a.json {
		_ = a.printJSON(g)
		return
	}
	a.greetPeople(g)
}

func (a *app) greetPeople(g hubGreeting) {
	var b strings.Builder
	whose, token := "for you alone, without signing in", ""
	if g.Mode == "accounts" {
		whose, token = "for people who sign in", " -H 'Authorization: Bearer TOKEN'"
	}
	fmt.Fprintf(&b, "This is a hub %s, on %s in %s.\n", whose, g.Database, a.tilde(g.Data))
	if g.Model == "demo" {
		b.WriteString("No model is configured (models.default): a demonstration answers, which is no language model.\n")
	}
	fmt.Fprintf(&b, "\n  Hub:           %s\n  MCP endpoint:  %s\n", a.bold(g.URL), g.URL+"/mcp")
	b.WriteString("\n")
	if token != "" {
		fmt.Fprintf(&b, "Get a TOKEN:     open the setup link, or sign in with POST %s/api/v1/login, then POST /api/v1/tokens\n", g.URL)
	}
	fmt.Fprintf(&b, "What agents use: curl%s %s/api/v1/capabilities\n", token, g.URL)
	fmt.Fprintf(&b, "Put a skill on:  loadout pack DIR, then\n                 curl%s -H 'Content-Type: application/zip' --data-binary @NAME.zip \\\n                   '%s/api/v1/skills?file_name=NAME.zip'\n", token, g.URL)
	fmt.Fprintf(&b, "Talk to it:      curl%s --json '{\"message\": \"use the skill csv-analysis\"}' %s/api/v1/sessions, then\n                 curl%s -N %s/api/v1/sessions/ID/events\n", token, g.URL, token, g.URL)
	if g.Mode == "single" {
		b.WriteString("For a team:      loadout serve --help\n")
	}
	b.WriteString("\nCtrl-C ends it.\n")
	fmt.Fprint(a.stdout, b.String())
}

// tilde is a path with the home directory as ~.
func (a *app) tilde(path string) string {
	if rest, ok := strings.CutPrefix(path, a.home()+"/"); ok && a.home() != "" {
		return plain("~/" + rest)
	}
	return plain(path)
}
