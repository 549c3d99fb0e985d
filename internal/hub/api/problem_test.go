package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/untrusted/untrustedtest"
	"github.com/loadout-dev/loadout/skill"
)

// Each error of a location is reported with a code and advice. Errors of this machine
// are not.
func TestSourceProblems(t *testing.T) {
	place := func(err error) error { return &library.SourceError{Err: fmt.Errorf("look at it: %w", err)} }
	for _, tt := range []struct {
		err    error
		status int
		code   string
	}{
		{place(&remote.LocationError{Text: "x", Reason: "y"}), 422, "source_invalid"},
		{place(&remote.NotFoundError{What: "skill"}), 422, "source_not_found"},
		{place(&remote.DeniedError{Host: "github.com"}), 422, "source_denied"},
		{place(&remote.AddressError{Host: "x", Reason: "loopback"}), 422, "source_address"},
		{place(&remote.UntrustedError{Reason: "x"}), 422, "source_address"},
		{place(&remote.TooLargeError{What: "x", Limit: 1}), 422, "source_too_large"},
		{place(&remote.DigestError{Name: "x"}), 502, "source_digest"},
		{place(&remote.StatusError{URL: "x", Code: 503}), 502, "source_failed"},
		{place(remote.ErrNoGit), 501, "no_git"},
		{place(errors.New("connection refused")), 502, "source_failed"},
		{place(context.DeadlineExceeded), 504, "slow"},
		{place(context.Canceled), 503, "ended"},
		{place(ErrTimeout), 504, "slow"},
		{&library.InvalidError{Why: "it was uploaded"}, 422, "invalid"},
	} {
		p := newProblem(tt.err)
		if p == nil || p.Status != tt.status || p.Code != tt.code || p.Next == "" {
			t.Errorf("%v is reported as %+v, want %d %s", tt.err, p, tt.status, tt.code)
		}
	}
	if p := newProblem(errors.New("open /x: no such file")); p != nil {
		t.Errorf("what is of this machine is reported as %+v", p)
	}
}

// The changes made before an import failed are reported.
func TestUnfinishedImport(t *testing.T) {
	done := &library.ImportResult{Created: make([]library.ImportChange, 2), Updated: make([]library.ImportChange, 1)}
	p, ok := errors.AsType[*Problem](PartialImport(done, ErrTimeout))
	if !ok || p.Code != "slow" || !strings.Contains(p.Detail, "2 skills were created and 1 updated") {
		t.Errorf("it is reported as %+v", p)
	}
	if err := PartialImport(&library.ImportResult{}, ErrTimeout); !errors.Is(err, ErrTimeout) {
		t.Errorf("where nothing was done it is %v", err)
	}
	unknown := errors.New("open /x: no such file")
	if err := PartialImport(done, unknown); err != unknown {
		t.Errorf("an error of this machine becomes %v", err)
	}
}

func TestTextsOfProblemsAreCleaned(t *testing.T) {
	s := &Server{}
	for _, text := range untrustedtest.Hostile() {
		faults := []Fault{{Where: text, Message: text}}
		for _, err := range []error{
			&Problem{Status: 422, Detail: text, Next: text, Errors: faults},
			&skill.RefusedError{Refusals: []skill.Refusal{{Entry: text, Message: text}}},
			&library.BrokenError{Diagnostics: skill.Diagnostics{{Severity: skill.Error, Message: text, Fix: text}}},
			&library.SourceError{Err: &remote.LocationError{Text: text, Reason: text}},
			&library.InvalidError{Why: text},
		} {
			p := s.Problem(t.Context(), err)
			texts := []string{p.Detail, p.Next}
			for _, f := range p.Errors {
				texts = append(texts, f.Where, f.Message)
			}
			for _, d := range p.Diagnostics {
				texts = append(texts, d.Message, d.Fix)
			}
			for _, got := range texts {
				if report := untrusted.Inspect(got); !report.Clean() {
					t.Errorf("%T: %+q: %s in %+q", err, text, report, got)
				}
			}
		}
		if faults[0] != (Fault{Where: text, Message: text}) {
			t.Fatalf("%+q: the error was changed", text)
		}
	}
}
