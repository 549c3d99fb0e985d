package hubtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/hubtest"
)

// failures collects what a test would report.
type failures struct {
	testing.TB
	all []string
}

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	f.all = append(f.all, fmt.Sprintf(format, args...))
}

func TestCheckReportsResponses(t *testing.T) {
	f := &failures{TB: t}
	h := hubtest.Open(f, hub.Options{Accounts: true})
	root := h.SignIn("root")
	id, ada := root.NewUser("ada")
	root.Check(
		hubtest.NewRequest("GET", "/users/"+id, nil, 200, `"name":"ada" & !"name":"root"`),
		hubtest.NewRequest("PATCH", "/users/me", `{"display": "Root"}`, 200, "Root"),
		hubtest.NewRequest("GET", "//healthz", nil, 200, ""),
	)
	ada.CheckFailures("/users/me")
	if len(f.all) > 0 {
		t.Errorf("reported %q", f.all)
	}
	root.Check(hubtest.NewRequest("GET", "/users/"+id, nil, 404, `"name":"eve" & !"name":"ada"`))
	if len(f.all) != 3 || !strings.Contains(f.all[0], "status 200, want 404") || !strings.Contains(f.all[1], `want "name":"eve"`) || !strings.Contains(f.all[2], `want !"name":"ada"`) {
		t.Errorf("reported %q", f.all)
	}
	if text := root.Must("GET", "/users/me", nil).Text("none"); text != "" {
		t.Errorf("a field that is absent is %q", text)
	}
}
