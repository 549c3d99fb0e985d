package main

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/serverstate"
)

func TestRunningServersNameTheirProfile(t *testing.T) {
	var out strings.Builder
	a := newApp(environment{stdout: &out, getenv: func(string) string { return "" }})
	a.printRunning([]serverstate.Process{
		{PID: 7, Client: "editor", Servers: []serverstate.Server{{Name: "notes", Profile: "work", State: "READY"}, {Name: "mail", State: "READY"}}},
		{PID: 8},
	})
	for _, want := range []string{"(pid 7, editor)", "notes (work) ", "mail ", "(pid 8)\n  no MCP servers\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "mail (") {
		t.Errorf("a server without a profile has one in\n%s", out.String())
	}
}
