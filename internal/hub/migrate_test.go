package hub_test

import (
	"archive/zip"
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// filesOf returns the files that the test of the command migrates from the given
// directories, by path.
func filesOf(t testing.TB, dirs ...string) map[string]string {
	t.Helper()
	a, err := txtar.ParseFile("../../cmd/loadout/testdata/script/migrate.txtar")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range a.Files {
		if top, _, ok := strings.Cut(f.Name, "/"); ok && slices.Contains(dirs, top) {
			out[f.Name] = string(f.Data)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no files in %q", dirs)
	}
	return out
}

// archiveOf returns a ZIP of files.
func archiveOf(t testing.TB, files map[string]string) typed {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range files {
		if _, err := must(w.Create(name))(t).Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return typed{"application/zip", out.String()}
}

type migrationReport struct {
	System, Source, Namespace string
	Done                      bool
	Items                     []struct {
		Kind, Name, From, Outcome string
		New                       bool
		Does                      string
		Details                   []string
		ID                        string
	}
	Notes, Secrets []string
}

// lines returns the items in short form, sorted.
func (r migrationReport) lines() []string {
	var out []string
	for _, i := range r.Items {
		state := i.Outcome
		if i.New {
			state = "new, " + state
		}
		out = append(out, fmt.Sprintf("%s %s: %s", i.Kind, i.Name, state))
	}
	slices.Sort(out)
	return out
}

// details returns the details of an item.
func (r migrationReport) details(name string) string {
	for _, i := range r.Items {
		if i.Name == name {
			return strings.Join(append(i.Details, i.Does), "\n")
		}
	}
	return ""
}

func (c caller) migrate(t testing.TB, query string, body typed) migrationReport {
	t.Helper()
	var out migrationReport
	c.send(t, "POST", "/api/v1/migrate?"+query, body).want(t, 200).into(t, &out)
	return out
}

// Each system, with the files of the command's own test: the report comes first and
// stores nothing, then everything is stored, and a second run changes nothing.
func TestMigrationFromEachSystem(t *testing.T) {
	for _, tt := range []struct {
		system string
		dirs   []string
		want   []string
	}{
		{"wegent", []string{"wegent", "export"}, []string{
			"conversation Write a report: new, changed", "document Ghost helper: new, changed", "document Shell other: lost", "file broken.mcp.json: lost",
			"server images: new, changed", "server plugin: lost", "skill report: new, kept", "skill wegent/skills/broken: lost"}},
		{"wegent", []string{"kinds"}, []string{"document Bot helper: new, kept", "document Ghost helper: new, kept"}},
		{"weknora", []string{"weknora"}, []string{"conversation Comets: new, changed", "server weather: new, changed"}},
		{"ba-agent", []string{"ba-agent"}, []string{"conversation Memory of ba-agent: new, kept", "file AGENTS.md: lost"}},
		{"local-llm-provider", []string{"llp"}, []string{"server browser: new, kept", "skill my-browser: new, changed"}},
	} {
		t.Run(strings.Join(tt.dirs, " "), func(t *testing.T) {
			c := newGroupHub(t, "")
			upload := archiveOf(t, filesOf(t, tt.dirs...))
			query := "file_name=export.zip&system=" + tt.system
			before := c.stored(t)
			dry := c.developer.migrate(t, query, upload)
			wantSame(t, "report", dry.lines(), tt.want)
			if dry.Done || dry.Source != "export.zip" || dry.Namespace != "user:"+c.ids["developer"] {
				t.Errorf("report %+v", dry)
			}
			wantSame(t, "what is stored after a dry run", c.stored(t), before)
			done := c.developer.migrate(t, query+"&apply=true", upload)
			if !done.Done || len(done.Notes) > 0 {
				t.Errorf("report %+v", done)
			}
			wantSame(t, "report", done.lines(), tt.want)
			after := c.stored(t)
			if slices.Equal(after, before) {
				t.Error("nothing is stored")
			}
			again := c.developer.migrate(t, query+"&apply=true", upload)
			for i, item := range again.Items {
				if item.New || done.Items[i].New != (item.Outcome != "lost") || item.ID != done.Items[i].ID {
					t.Errorf("again: %+v, before %+v", item, done.Items[i])
				}
			}
			if again.Done {
				t.Error("the second run stored something")
			}
			wantSame(t, "what is stored after a second run", c.stored(t), after)
			c.wantNoUploads(t)
		})
	}
}

// stored lists what the developer and the group have.
func (c *groupHub) stored(t testing.TB) []string {
	t.Helper()
	var out []string
	for _, path := range []string{"/skills?hidden=false", "/sessions", "/kinds/Ghost", "/kinds/Bot", "/kinds/MCPServer"} {
		var page struct {
			Items []struct{ ID, Name, Title string }
		}
		c.developer.send(t, "GET", "/api/v1"+path, nil).want(t, 200).into(t, &page)
		for _, i := range page.Items {
			out = append(out, path+" "+i.ID+cmp.Or(i.Name, i.Title))
		}
	}
	return out
}
