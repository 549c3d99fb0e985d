package detonation

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/steering"
	"github.com/loadout-dev/loadout/sandbox"
)

// Limits of the files that are inspected after a run.
const (
	maxFileBytes  = 1 << 20
	maxHomeBytes  = 16 << 20
	maxNewFiles   = 1000
	maxListed     = 2 // decoys in one excerpt
	maxPerScript  = 20
	maxTraceBytes = 4 << 20
)

// homeChanges are the differences between the home directory before and after a
// run.
type homeChanges struct {
	before  memory
	after   map[string]bool // paths that exist
	changed []changedFile
	size    int64
	cut     bool // not all files were read completely
}

// changedFile is a new or changed file in the home directory.
type changedFile struct {
	path string
	data []byte // truncated to maxFileBytes
	exec bool
}

// add adds a file after a run. It is the function for
// [execute.Options].Collect.
func (h *homeChanges) add(f sandbox.File, r io.Reader) (bool, error) {
	h.after[f.Path] = true
	_, known := h.before[f.Path]
	most := min(maxFileBytes, maxHomeBytes-h.size)
	switch {
	case f.Path == traceFile:
		most = maxTraceBytes
	case known: // new files must not hide changes of decoys
		most = maxFileBytes
	case len(h.changed) >= maxNewFiles || most <= 0:
		h.cut = true
		return false, nil
	}
	h.cut = h.cut || f.Size > most
	data, err := io.ReadAll(io.LimitReader(r, most))
	if err != nil {
		return false, err
	}
	h.size += int64(len(data))
	if before, ok := h.before[f.Path]; !ok || f.Size != int64(len(before)) || !bytes.Equal(before, data) {
		h.changed = append(h.changed, changedFile{f.Path, data, f.Exec})
	}
	return true, nil
}

// deleted returns the decoys that do not exist after a run. ended means that the sandbox
// ended before the files were read.
func (h *homeChanges) deleted(ended bool) []string {
	if ended && len(h.after) == 0 {
		return nil
	}
	var out []string
	for name := range h.before {
		if !h.after[name] && !strings.HasPrefix(name, ".local/") {
			out = append(out, "~/"+name)
		}
	}
	slices.Sort(out)
	return out
}

// findingKey identifies findings that are reported once.
type findingKey struct{ rule, script, subject string }

// evidence is the first observation of a finding.
type evidence struct {
	severity scan.Severity
	excerpt  string
}

// found adds a finding unless the same was found in another run of the script.
func (d *detonator) found(rule string, severity scan.Severity, at *Attempt, subject, excerpt string) {
	k := findingKey{rule, at.Script, subject}
	if e := d.findings[k]; e == nil || e.severity < severity {
		d.findings[k] = &evidence{severity, at.describe() + ": " + excerpt}
	}
}

// collectFindings returns the findings of all runs, with a limit for each
// script and rule.
func (d *detonator) collectFindings() []scan.Finding {
	out, count := []scan.Finding{}, map[[2]string]int{}
	keys := slices.SortedFunc(maps.Keys(d.findings), func(a, b findingKey) int {
		return strings.Compare(a.rule+"\n"+a.script+"\n"+a.subject, b.rule+"\n"+b.script+"\n"+b.subject)
	})
	for _, k := range keys {
		if count[[2]string{k.rule, k.script}]++; count[[2]string{k.rule, k.script}] <= maxPerScript {
			e := d.findings[k]
			out = append(out, scan.NewFinding(k.rule, e.severity, k.script, e.excerpt))
		}
	}
	return out
}

// observe adds the findings of one run.
func (d *detonator) observe(at *Attempt, res *execute.Result, requests []request, home *homeChanges, marker string) {
	d.observeRequests(at, requests)
	d.observeOutput(at, "output", slices.Concat(res.Stdout, []byte("\n"), res.Stderr))
	for _, f := range home.changed {
		switch {
		case f.path == traceFile:
			d.observeTools(at, readTrace(f.data))
		case f.path == marker:
			d.observeDownload(at, requests)
		default:
			d.observeFile(at, &f, home.before[f.path] != nil)
		}
	}
	if gone := home.deleted(res.Killed); len(gone) > 0 {
		d.found("run-decoy-changed", scan.High, at, "deleted", "deletes "+list(gone))
	}
}

func (d *detonator) observeRequests(at *Attempt, requests []request) {
	for _, r := range requests {
		text := slices.Concat(r.Data, []byte("\n"+r.Host+"\n"+strings.ReplaceAll(r.Host, ".", "")))
		sent := d.sent(d.decoys.find(text), r.Host)
		if len(sent) > 0 {
			d.found("run-decoy-sent", scan.High, at, r.Host, r.describe()+": "+list(sent))
		}
		d.observeHost(at, r.Host, r.describe())
	}
}

// registries are hosts of package registries, which many scripts contact to
// install packages.
var registries = []string{"pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "registry.yarnpkg.com"}

// observeHost adds a finding if SKILL.md does not name the host.
func (d *detonator) observeHost(at *Attempt, host, how string) {
	if host == "" || isNamed(d.hosts, host) {
		return
	}
	severity := scan.Medium
	if slices.Contains(registries, host) {
		severity = scan.Low
	}
	d.found("run-host", severity, at, host, how)
}

// sent returns the descriptions of the decoys that were sent to a host and do
// not belong there.
func (d *detonator) sent(found []match, host string) []string {
	var out []string
	named := isNamed(d.hosts, host)
	for _, m := range found {
		if c := &d.decoys.all[m.decoy]; !c.isIssuer(host) && !(c.named && named) {
			out = append(out, d.describe(m))
		}
	}
	return out
}

// describe returns the name of a decoy, and how it was encoded.
func (d *detonator) describe(m match) string {
	if m.encoding == "" {
		return d.decoys.all[m.decoy].name
	}
	return d.decoys.all[m.decoy].name + " (" + m.encoding + ")"
}

// observeOutput adds a finding if text contains decoys other than the input
// file.
func (d *detonator) observeOutput(at *Attempt, where string, text []byte) {
	var names []string
	for _, m := range d.decoys.find(text) {
		if d.decoys.all[m.decoy].name != inputName {
			names = append(names, d.describe(m))
		}
	}
	if len(names) > 0 {
		d.found("run-decoy-shown", scan.Medium, at, where, where+": "+list(names))
	}
}

func (d *detonator) observeTools(at *Attempt, calls []toolCall) {
	for _, c := range calls {
		how := c.program + " " + d.withoutTokens(c.args)
		if c.program == "node" {
			how, _, _ = strings.Cut(how, " {")
			if c.host() == "localhost" || c.host() == "127.0.0.1" {
				continue
			}
		}
		if c.schedules() {
			d.found("run-startup-file", scan.High, at, c.program, how)
			continue
		}
		host := c.host()
		if sent := d.sent(d.decoys.find(slices.Concat(c.text, []byte("\n"+strings.ReplaceAll(c.args, ".", "")))), host); len(sent) > 0 {
			d.found("run-decoy-sent", scan.High, at, c.program+" "+host, how+": "+list(sent))
		}
		d.observeHost(at, host, how)
	}
}

// withoutTokens replaces the tokens of decoys, which look like noise.
func (d *detonator) withoutTokens(text string) string {
	for _, c := range d.decoys.all {
		text = strings.ReplaceAll(text, c.token, "…")
	}
	return text
}

// observeDownload adds a finding for a run that executed a response.
func (d *detonator) observeDownload(at *Attempt, requests []request) {
	severity, from := scan.Medium, []string{}
	for _, r := range requests {
		if !r.code {
			continue
		}
		if !isNamed(d.hosts, r.Host) {
			severity = scan.High
		}
		from = append(from, r.describe())
	}
	d.found("run-downloaded", severity, at, "", list(from))
}

// observeFile adds the findings for a new or changed file.
func (d *detonator) observeFile(at *Attempt, f *changedFile, existed bool) {
	name := "~/" + f.path
	if strings.HasPrefix(f.path, "out/") {
		d.observeOutput(at, name, f.data)
		return
	}
	reader := startupReader(f.path)
	switch {
	case reader != "":
		d.found("run-startup-file", scan.High, at, f.path, fmt.Sprintf("%s, which %s reads: %s", name, reader, d.withoutTokens(lastLine(f.data))))
	case existed:
		d.found("run-decoy-changed", scan.High, at, f.path, "changes "+name)
	case f.exec && !strings.HasPrefix(f.path, ".cache/"):
		d.found("run-executable", scan.Low, at, f.path, name)
	}
	d.observeOutput(at, name, f.data)
}

// startupDirs are the directories in a home directory whose files make programs
// run commands, in addition to those in package steering.
var startupDirs = map[string]string{
	".config/autostart/": "the desktop", ".config/systemd/user/": "systemd", ".config/fish/": "fish", ".local/share/systemd/user/": "systemd",
	"Library/LaunchAgents/": "launchd", "Library/LaunchDaemons/": "launchd", ".config/environment.d/": "systemd",
}

// startupReader returns the program that reads a file in the home directory to
// run commands or as instructions, or "". Names that do not start with a dot
// are also names of a project's files, which scripts write for good reasons.
func startupReader(p string) string {
	for dir, reader := range startupDirs {
		if strings.HasPrefix(p, dir) {
			return reader
		}
	}
	if class, reader := steering.Classify(p); class == steering.Steering && (strings.HasPrefix(p, ".") || strings.HasPrefix(path.Base(p), ".")) {
		return reader
	}
	return ""
}

// lastLine returns the last line of text that is not empty.
func lastLine(data []byte) string {
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return lines[len(lines)-1]
}

// list joins names and shortens long lists.
func list(names []string) string {
	if more := len(names) - maxListed; more > 0 {
		return strings.Join(names[:maxListed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}
