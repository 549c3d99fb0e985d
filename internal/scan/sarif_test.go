package scan_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/scan"
)

// What the schema of SARIF 2.1.0 requires is there, and what refers leads somewhere.
func TestSARIF(t *testing.T) {
	r, err := scan.Skill(context.Background(), file("a b.sh", "true\nrm -rf /\nsudo ls\n").files(), "sample")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := scan.WriteSARIF(&out, "1.0", scan.High, []scan.PathReport{{Path: "skills/x", Report: r}}); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name  string
					Rules []struct {
						ID               string
						ShortDescription struct{ Text string }
					}
				}
			}
			Results []struct {
				RuleID    string
				RuleIndex int
				Level     string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine, StartColumn int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || len(log.Runs) != 1 || len(log.Runs[0].Results) != 1 {
		t.Fatalf("got %s", out.String())
	}
	run := log.Runs[0]
	got := run.Results[0]
	at := got.Locations[0].PhysicalLocation
	if run.Tool.Driver.Name == "" || run.Tool.Driver.Rules[got.RuleIndex].ID != got.RuleID || got.RuleID != "destructive" || got.Level != "error" ||
		got.Message.Text == "" || at.ArtifactLocation.URI != "skills/x/a%20b.sh" || at.Region.StartLine != 2 || at.Region.StartColumn != 1 {
		t.Errorf("got %+v", got)
	}
	for _, r := range run.Tool.Driver.Rules {
		if r.ID == "" || strings.TrimSpace(r.ShortDescription.Text) == "" {
			t.Errorf("unfinished rule %+v", r)
		}
	}
}
