package scan

import (
	"cmp"
	"slices"
)

// behaviorRules returns the rules about what scripts do when they run. Package
// detonation runs them and reports the findings.
func behaviorRules() []Rule {
	return []Rule{
		{ID: "run-decoy-sent", Severity: High, Target: Behavior, Message: "sends a secret of the user to a host", Advice: "do not run it"},
		{ID: "run-decoy-shown", Severity: Medium, Target: Behavior, Message: "copies a secret of the user to its output, a file or a command", Advice: "find out why; an agent reads the output of scripts"},
		{ID: "run-decoy-changed", Severity: High, Target: Behavior, Message: "deletes or changes files of the user", Advice: "do not run it outside a sandbox"},
		{ID: "run-downloaded", Severity: High, Target: Behavior, Message: "runs code that it downloads", Advice: "bundle the code with the skill, and scan it"},
		{ID: "run-startup-file", Severity: High, Target: Behavior, Message: "writes a file that makes programs run commands, or that agents obey", Advice: "do not run it outside a sandbox"},
		{ID: "run-host", Severity: Medium, Target: Behavior, Message: "contacts a host that SKILL.md does not name", Advice: "find out who owns the host and what is sent there"},
		{ID: "run-executable", Severity: Low, Target: Behavior, Message: "writes an executable file outside its output directory", Advice: "find out what the file is for"},
	}
}

// resemblanceRules returns the rules about other skills. Package install reports
// the findings.
func resemblanceRules() []Rule {
	return []Rule{
		{ID: "name-similar", Severity: Medium, Target: Skills, Message: "the skill's name is that of another publisher's skill, or differs from it by one letter", Advice: "check that it is the skill that you want"},
		{ID: "skill-copy", Severity: Medium, Target: Skills, Message: "most of the instructions are those of another publisher's skill", Advice: "compare the two skills; use the original"},
	}
}

// NewFinding returns a finding of the rule with the given ID, which must exist,
// for a whole file. The file and the excerpt may be untrusted.
func NewFinding(rule string, severity Severity, file, excerpt string) Finding {
	r := byID()[rule]
	return Finding{Rule: rule, Severity: severity, File: escapeText(file, maxPath), Excerpt: escapeText(redactSecrets(excerpt), maxExcerpt), Message: r.Message, Advice: r.Advice}
}

// Add adds findings to the report. It drops the least severe findings if there
// are more than [MaxFindings].
func (r *Report) Add(findings ...Finding) {
	r.Findings = append(r.Findings, findings...)
	r.sort()
}

// sort sorts the findings and drops those beyond the limit.
func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Rule, b.Rule))
	})
	if len(r.Findings) > MaxFindings {
		r.Findings, r.Truncated = r.Findings[:MaxFindings], true
	}
}
