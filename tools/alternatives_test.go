package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

func skillWith(name, description, more string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n" + more + "---\nFollow these steps.\n"
}

// For a skill that fails, the model gets similar skills and tools in the form in which
// it gets those for a tool. They never include skills that it may not load, nor what
// the error suggests already.
func TestSkillFailuresOfferAlternatives(t *testing.T) {
	skills := texts{
		"form-reader":  skillWith("form-reader", "Reads forms in PDF files.", ""),
		"pdf-forms":    skillWith("pdf-forms", "Fills in PDF forms.", ""),
		"secret-forms": skillWith("secret-forms", "Reads secret PDF forms.", "disable-model-invocation: true\n"),
		"tides":        skillWith("tides", "Reads tide tables.", ""),
		"long":         skillWith("long", strings.Repeat("Reads very long words. ", 40), ""),
	}
	for i := range 5 {
		name := fmt.Sprintf("chart-%d", i)
		skills[name] = skillWith(name, "Draws a chart.", "")
	}
	w := newWorld(t, skills, "mcpServers: {a: {command: a}}", nil)
	w.Connect(t.Context(), "")
	for name, test := range map[string]struct {
		ref  string
		err  error
		want string
	}{
		"loadable skill":           {"pdf-forms", nil, "\nOther skills to try:\n- form-reader: Reads forms in PDF files.\n"},
		"with its key":             {"test/pdf-forms", nil, "\nOther skills to try:\n- form-reader: Reads forms in PDF files.\n"},
		"suggested by the error":   {"pdf-form", nil, "\nOther skills to try:\n- form-reader: Reads forms in PDF files.\n"},
		"only for users":           {"secret-forms", nil, ""},
		"hidden from the model":    {"secret", nil, ""},
		"unlike any other":         {"photoshop", nil, ""},
		"a tool does it":           {"read-note", nil, "\nOther tools to try:\n- a__read_note: "},
		"declined":                 {"pdf-forms", &loadout.RefusedError{Decision: policy.Decision{Code: decision.Declined}}, ""},
		"refused":                  {"pdf-forms", &loadout.RefusedError{Decision: policy.Decision{Code: decision.NotApproved}, NeedsApproval: true}, "\nOther skills to try:\n- form-reader: "},
		"a name of many words":     {strings.Repeat("pdf forms ", 1000), nil, "\nOther skills to try:\n- "},
		"at most three":            {"draws-chart", nil, "\nOther skills to try:\n- chart-0: Draws a chart.\n- chart-1: Draws a chart.\n- chart-2: Draws a chart.\n"},
		"with a short description": {"very-long-words", nil, "\nOther skills to try:\n- long: Reads very long words. "},
		"nothing":                  {"", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.DescribeSkillAlternatives(t.Context(), test.ref, test.err, &tools.Call{})
			if test.want == "" && got != "" || !strings.HasPrefix(got, test.want) || strings.Contains(got, "secret") || strings.Count(got, "\n- ") > 3 || len(got) > 400 {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A load in a conversation fails with alternatives, instead of the names of all
// skills. A load by the user does not need them.
func TestFailedLoadsInSessionsOfferAlternatives(t *testing.T) {
	w := newWorld(t, texts{"pdf": skillWith("pdf", "Reads PDF forms.", ""), "tides": skillWith("tides", "Reads tide tables.", "")}, "", nil)
	s, err := w.rt.NewSession(t.Context(), &session.Options{Tools: w.ForSession()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, byModel := range []bool{true, false} {
		r, err := s.Load(t.Context(), "pdf-forms", &session.LoadOptions{ByModel: byModel})
		if err != nil {
			t.Fatal(err)
		}
		const want = "skill \"pdf-forms\" not found.\nOther skills to try:\n- pdf: Reads PDF forms.\n"
		if r.State != session.StateFailed || (r.Text == want) != byModel || strings.Contains(strings.Join(r.Problems, ""), "instead") {
			t.Errorf("by the model %v: %q, problems %q", byModel, r.Text, r.Problems)
		}
	}
	if r, err := s.Load(t.Context(), "photoshop", &session.LoadOptions{ByModel: true}); err != nil || !strings.HasSuffix(r.Text, "Available skills: pdf, tides") {
		t.Errorf("without alternatives: %q, %v", r.Text, err)
	}
}

// In a session, the alternatives are those of its principal with the grants of that
// session.
func TestAlternativesInSessionsConsiderGrants(t *testing.T) {
	robot := policy.Principal{ID: "robot", Kind: policy.AgentPrincipal}
	w := keeping(t, asking, policy.NewMemoryStore())
	w.Connect(t.Context(), "")
	c := noteCall("x")
	c.Principal, c.Session = robot, "one"
	grant(t, w, c, policy.ForSession, false)
	for name, test := range map[string]struct {
		tools session.Tools
		asks  bool
	}{
		"granted":           {w.ForSessionOf(robot, "one"), false},
		"another session":   {w.ForSessionOf(robot, "two"), true},
		"another principal": {w.ForSessionOf(policy.LocalUser(), "one"), true},
		"local user":        {w.ForSession(), true},
	} {
		s, err := w.rt.NewSession(t.Context(), &session.Options{Tools: test.tools})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Load(t.Context(), "write-note", &session.LoadOptions{ByModel: true})
		if err != nil || !strings.Contains(r.Text, "c__write_note: ") || strings.Contains(r.Text, "[needs approval]") != test.asks {
			t.Errorf("%s: %q, %v", name, r.Text, err)
		}
		s.Close()
	}
}

// refusing has a skill that the user does not let the model load.
type refusing struct {
	session.Skills
	err error
}

func (r refusing) Fetch(context.Context, string) ([]*session.Skill, error) { return nil, r.err }

// In a session, the reason for a failed load matters as for other calls: there are no
// alternatives to a skill that the user declined, and none that need approval if
// nobody can approve.
func TestAlternativesInSessionsConsiderTheError(t *testing.T) {
	w := newWorld(t, nil, asking, nil)
	w.Connect(t.Context(), "")
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"unreadable":   {errors.New("disk on fire"), true},
		"declined":     {&loadout.RefusedError{Decision: policy.Decision{Code: decision.Declined}}, false},
		"not approved": {&loadout.RefusedError{Decision: policy.Decision{Code: decision.NotApproved}, NeedsApproval: true}, false},
	} {
		s, err := session.Open(t.Context(), refusing{err: test.err}, &session.Options{Tools: w.ForSession()})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Load(t.Context(), "write-note", &session.LoadOptions{ByModel: true})
		if err != nil || strings.Contains(r.Text, "c__write_note") != test.want {
			t.Errorf("%s: %q, %v", name, r.Text, err)
		}
		s.Close()
	}
}

// An error result of a tool has alternatives like any other failed call.
func TestErrorResultsHaveAlternatives(t *testing.T) {
	w := newWorld(t, nil, "mcpServers: {a: {command: a}, b: {command: b}}", nil)
	w.Connect(t.Context(), "")
	got := w.DescribeAlternatives(t.Context(), nil, &tools.Call{Name: "a__read_note", Arguments: json.RawMessage(`{}`)})
	if !strings.HasPrefix(got, "\nOther tools to try:\n- b__read_note: ") {
		t.Errorf("got %q", got)
	}
}
