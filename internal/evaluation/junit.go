package evaluation

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/loadout-dev/loadout/internal/printable"
)

// The elements of a JUnit report, as build servers read it.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitMessage `xml:"failure"`
		Error   *junitMessage `xml:"error"`
		Skipped *junitMessage `xml:"skipped"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
	}
)

// WriteJUnit writes results as a JUnit report. What is not measured is skipped.
func WriteJUnit(w io.Writer, results []*Result) error {
	var all junitSuites
	for _, r := range results {
		s := junitSuite{Name: printable.OneLine(r.Skill)}
		add := func(class, name, failure string) *junitCase {
			s.Tests++
			s.Cases = append(s.Cases, junitCase{Class: s.Name + "." + class, Name: printable.OneLine(name)})
			c := &s.Cases[len(s.Cases)-1]
			if failure != "" {
				c.Failure = &junitMessage{printable.OneLine(failure)}
				s.Failures++
			}
			return c
		}
		add("static", "static checks", r.Static.failure())
		for _, p := range r.Problems {
			add("files", fmt.Sprintf("%s:%d", p.File, p.Line), p.Message)
		}
		if r.Routing != nil {
			for _, c := range r.Routing.Cases {
				add("routing", c.ID+": "+c.Prompt, c.Failure())
			}
		}
		if r.Model != nil {
			for _, c := range r.Model.Cases {
				failure := c.Failure()
				if c.Error != "" {
					failure = ""
				}
				one := add("model", c.ID+": "+c.Prompt, failure)
				if c.Error != "" {
					one.Error = &junitMessage{c.Error}
					s.Errors++
				}
			}
		}
		for _, what := range r.ListNotMeasured() {
			add("not-measured", what, "").Skipped = &junitMessage{"not measured"}
			s.Skipped++
		}
		all.Suites = append(all.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// failure describes why the static checks failed, or returns "".
func (s *Static) failure() string {
	var parts []string
	if !s.Valid {
		parts = append(parts, "the skill is not valid; see: loadout validate")
	}
	if !s.Complete {
		parts = append(parts, "the instructions refer to missing files; see: loadout validate")
	}
	if len(s.Findings) > 0 {
		parts = append(parts, fmt.Sprintf("%d findings with severity high; see: loadout scan", len(s.Findings)))
	}
	return strings.Join(parts, "; ")
}

// Failure describes why a case failed, or returns "".
func (c *Case) Failure() string {
	switch {
	case c.Passed:
		return ""
	case !c.Trigger:
		return "the skill is found first, but should not be loaded"
	case c.Rank == 0:
		return fmt.Sprintf("not among the first %d results%s", searched, c.winner())
	}
	return fmt.Sprintf("result %d of the search, want %d or better%s", c.Rank, Considered, c.winner())
}

func (c *Case) winner() string {
	if c.First == "" {
		return ""
	}
	return "; first is " + c.First
}
