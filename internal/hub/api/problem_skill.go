package api

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/skill"
)

// libraryProblem converts err to a problem if it is a library error with
// details, and returns nil otherwise.
func libraryProblem(err error) *Problem {
	for _, of := range []func(error) *Problem{packageProblem, referencedProblem, reviewProblem} {
		if p := of(err); p != nil {
			return p
		}
	}
	return nil
}

// packageProblem converts err to a problem if an uploaded package is invalid,
// and returns nil otherwise. The problem lists everything that is wrong with
// the package.
func packageProblem(err error) *Problem {
	if e, ok := errors.AsType[*library.TooLargeError](err); ok {
		return &Problem{Status: 413, Code: "too_large", Detail: e.Error(), Next: "remove files that the skill does not need"}
	}
	if e, ok := errors.AsType[*skill.RefusedError](err); ok {
		return RefusedPackage(e, "fix the errors and pack it again: loadout pack DIR")
	}
	if e, ok := errors.AsType[*library.BrokenError](err); ok {
		return &Problem{Status: 400, Code: "bad_skill", Detail: e.Error(), Next: "fix the diagnostics: loadout validate DIR", Diagnostics: DiagnosticsOf(e.Diagnostics)}
	}
	if e, ok := errors.AsType[*library.NameError](err); ok {
		return &Problem{Status: 422, Code: "bad_name", Detail: e.Error(), Next: "give the skill another name in its SKILL.md"}
	}
	return nil
}

// RefusedPackage returns the problem for a refused archive, with all reasons. next is
// the next step for the user.
func RefusedPackage(e *skill.RefusedError, next string) *Problem {
	p := &Problem{Status: 400, Code: "bad_package", Detail: e.Error(), Next: next}
	for _, r := range e.Refusals {
		p.Errors = append(p.Errors, Fault{cmp.Or(r.Entry, "package"), r.Message, r.Code})
	}
	return p
}

// referencedProblem returns a problem that lists the references that prevent an
// operation on a skill, or nil for other errors.
func referencedProblem(err error) *Problem {
	e, ok := errors.AsType[*library.ReferencedError](err)
	if !ok {
		return nil
	}
	return &Problem{Status: 400, Code: "SKILL_REFERENCED", Detail: e.Error(), References: &e.References,
		Next: fmt.Sprintf("remove the references first: DELETE %s/skills/%s/references", Prefix, e.Skill)}
}

// reviewProblem converts err to a problem if code is not reviewed or skills are
// disabled, and returns nil otherwise.
func reviewProblem(err error) *Problem {
	if e, ok := errors.AsType[*library.ReviewError](err); ok {
		return &Problem{Status: 403, Code: "not_reviewed", Detail: e.Error(), Next: "ask a reviewer to review its code"}
	}
	if e, ok := errors.AsType[*agents.DisabledError](err); ok {
		return &Problem{Status: 403, Code: "disabled_skills", Detail: e.Error(), Next: "ask an administrator, or a maintainer of your group"}
	}
	return nil
}
