package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/setup"
)

const indexOfReleases = `{"format": 1, "releases": [
	{"version": "v1.2.0", "date": "2026-03-01T12:00:00Z", "notes": "https://example.com/notes\u001b[2J",
	 "files": [{"platform": "linux/amd64", "url": "loadout_1.2.0_linux_amd64.tar.gz",
	            "sha256": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"}]}]}`

func TestUpgradeCheck(t *testing.T) {
	requests := 0
	index := indexOfReleases
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		switch r.URL.Path {
		case "/none":
			http.NotFound(w, r)
			return
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Write([]byte(index))
	}))
	defer server.Close()
	refusing := httptest.NewServer(nil)
	refusing.Close()
	check := func(version, url string, json bool) (out, problems string, err error) {
		var o, p strings.Builder
		a := newApp(environment{stdin: strings.NewReader(""), stdout: &o, stderr: &p, getenv: func(name string) string {
			if name == "LOADOUT_RELEASES_INDEX" {
				return url
			}
			return ""
		}, caller: testCaller})
		a.JSON = json
		err = a.checkForUpgrade(t.Context(), setup.Version{Version: version, Platform: "linux/amd64"})
		return o.String(), p.String(), err
	}

	out, problems, err := check("v1.1.0", server.URL+"/dl/index.json", false)
	if want := "Loadout v1.2.0 is available (2026-03-01). This is v1.1.0.\n" +
		"  notes   https://example.com/notes [2J\n" +
		"  file    " + server.URL + "/dl/loadout_1.2.0_linux_amd64.tar.gz\n" +
		"  sha256  5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef\n"; out != want || !errors.Is(err, exit.Reported) {
		t.Errorf("newer: %v, got\n%s\nwant\n%s", err, out, want)
	}
	if !strings.Contains(problems, "package manager") {
		t.Errorf("newer: no next step in %q", problems)
	}
	out, _, err = check("v1.1.0", server.URL, true)
	if !strings.Contains(out, `"state": "newer"`) || !strings.Contains(out, `"latest": "v1.2.0"`) || !errors.Is(err, exit.Reported) {
		t.Errorf("newer, JSON: %v, %s", err, out)
	}
	for version, want := range map[string]string{
		"v1.2.0": "Loadout v1.2.0 is up to date. The latest release is v1.2.0.\n",
		"devel":  "The latest release is v1.2.0 (2026-03-01). This is devel.\n",
	} {
		if out, _, err := check(version, server.URL, false); err != nil || !strings.HasPrefix(out, want) {
			t.Errorf("%s: %v, got %s", version, err, out)
		}
	}

	for content, want := range map[string]string{
		"": "The index contains no releases.\n",
		`{"version": "v1.2.0-rc.1"}, {"version": "v1.1.0-rc.1"}`: "The index contains only prereleases. This is v1.1.0.\n",
	} {
		index = `{"format": 1, "releases": [` + content + `]}`
		if out, _, err := check("v1.1.0", server.URL, false); err != nil || out != want {
			t.Errorf("releases %s: %v, got %s", content, err, out)
		}
	}

	for name, test := range map[string]struct {
		url, index string
		code       int
		want       string
	}{
		"not configured": {"", "", exit.Missing, "no release index is configured"},
		"newer format":   {server.URL, `{"format": 2}`, exit.Missing, "unsupported release index format 2 (want 1)"},
		"invalid":        {server.URL, `{"format": 1, "releases": [{"version": "1"}]}`, exit.Missing, "invalid release index"},
		"too large":      {server.URL, strings.Repeat(" ", 1<<20+1), exit.Refused, "1048576"},
		"not found":      {server.URL + "/none", "", exit.NotFound, "not found"},
		"server error":   {server.URL + "/broken", "", exit.Missing, "500"},
		"refused":        {refusing.URL, "", exit.Missing, "connect"},
	} {
		index = test.index
		_, _, err := check("v1.1.0", test.url, false)
		if e, ok := errors.AsType[*exit.Error](err); !ok || e.Code != test.code || e.Hint == "" || strings.Contains(e.Hint, "spelling") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want code %d and %q", name, err, test.code, test.want)
		}
	}

	// No other command reads the index.
	requests = 0
	t.Setenv("LOADOUT_RELEASES_INDEX", server.URL)
	for _, args := range [][]string{{"version"}, {"list"}, {"config", "show"}} {
		output(t, args)
	}
	if requests != 0 {
		t.Errorf("commands read the index %d times", requests)
	}
}
