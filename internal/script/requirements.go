package script

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/requirement"
)

// Limits on requirements files.
const (
	maxRequirementFiles = 16
	maxRequirements     = 2000
)

var (
	hashOption     = lazyregexp.New(`[ \t]--hash[= \t]*(sha(?:256|384|512):[0-9a-f]+)`)
	commentPattern = lazyregexp.New(`(^|[ \t])#.*$`)
)

// requirementsReader collects requirements and their problems.
type requirementsReader struct {
	fsys                      fs.FS
	requirements, constraints []string
	hashes                    bool
	files                     []string
	problems                  []Problem
}

func (r *requirementsReader) addProblem(file string, line int, code, message, fix string) {
	r.problems = append(r.problems, Problem{file, line, code, message, fix})
}

func (r *requirementsReader) readFile(file string, constraints bool) {
	if slices.Contains(r.files, file) {
		return
	}
	if len(r.files) == maxRequirementFiles {
		r.addProblem(file, 0, "unsupported", "too many requirements files", "merge them into one")
		return
	}
	src, err := readSource(r.fsys, file)
	if err != nil {
		r.addProblem(file, 0, "missing", "cannot be read: "+fileerror.Cause(err).Error(), "correct it, or remove the line that names it")
		return
	}
	r.files = append(r.files, file)
	for _, l := range logicalLines(normalizeText(src)) {
		r.readLine(file, l.line, l.text, constraints)
	}
}

// logicalLines joins continued lines and drops comments and blank lines, like
// pip.
func logicalLines(text string) []dependency {
	var out []dependency
	var joined strings.Builder
	number, start := 0, 1
	flush := func() {
		if s := strings.TrimSpace(commentPattern.ReplaceAllString(joined.String(), "")); s != "" {
			out = append(out, dependency{s, start})
		}
		joined.Reset()
	}
	for line := range strings.Lines(text) {
		number++
		if joined.Len() == 0 {
			start = number
		}
		line = strings.TrimRight(line, "\r\n")
		body, goesOn := strings.CutSuffix(line, `\`)
		if goesOn && !commentPattern.MatchString(line) {
			joined.WriteString(strings.TrimLeft(body, " \t") + " ")
			continue
		}
		joined.WriteString(line)
		flush()
	}
	flush()
	return out
}

// hasRequirements reports whether a requirements file contains more than
// comments.
func hasRequirements(src []byte) bool { return len(logicalLines(normalizeText(src))) > 0 }

// readLine reads a line of a requirements file. It rejects all options that it
// does not handle.
func (r *requirementsReader) readLine(file string, line int, text string, constraints bool) {
	if !strings.HasPrefix(text, "-") {
		r.addRequirement(file, line, text, constraints)
		return
	}
	option, value := text, ""
	if i := strings.IndexAny(text, "= \t"); i >= 0 {
		option, value = text[:i], strings.TrimSpace(strings.TrimLeft(text[i:], "= \t"))
	} else if !strings.HasPrefix(text, "--") && len(text) > 2 {
		option, value = text[:2], text[2:] // -rfile
	}
	switch option {
	case "-r", "--requirement":
		r.includeFile(file, line, value, constraints)
	case "-c", "--constraint":
		r.includeFile(file, line, value, true)
	case "--require-hashes":
		r.hashes = true
	case "--prefer-binary", "--pre", "--only-binary":
		// Ignore these: the installer uses only wheels, and a prerelease must
		// be named explicitly.
	case "-e", "--editable":
		r.addProblem(file, line, "direct", "an editable requirement runs code of the skill while it is installed", "name a released package with its version")
	case "-i", "--index-url", "--pypi-url", "--extra-index-url", "-f", "--find-links", "--no-index", "--trusted-host":
		r.addProblem(file, line, "option", option+" changes where packages come from", "remove it; packages come from the index that the operator has chosen")
	default:
		r.addProblem(file, line, "option", "option "+option+" is not supported", "remove it")
	}
}

// includeFile reads a file included by another file.
func (r *requirementsReader) includeFile(file string, line int, name string, constraints bool) {
	p := path.Join(path.Dir(file), name)
	switch {
	case name == "":
		r.addProblem(file, line, "syntax", "missing file name", "remove the line")
	case strings.Contains(name, ":"), path.IsAbs(name), strings.Contains(name, `\`), strings.ContainsAny(name, "$"), !fs.ValidPath(p):
		r.addProblem(file, line, "outside", name+" is not a file of the skill", "copy its lines into this file")
	default:
		r.readFile(p, constraints)
	}
}

// addInline adds a requirement, which must not be an option.
func (r *requirementsReader) addInline(file string, line int, text string) {
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "-") || strings.ContainsAny(text, "\n\r#\\") {
		r.addProblem(file, line, "option", "dependency "+quoteText(text)+" is not a requirement", `write it like "requests>=2"`)
		return
	}
	r.addRequirement(file, line, text, false)
}

// addRequirement adds a requirement with its hashes.
func (r *requirementsReader) addRequirement(file string, line int, text string, constraints bool) {
	var hashes []string
	for _, m := range hashOption.FindAllStringSubmatch(text, -1) {
		hashes = append(hashes, "--hash="+m[1])
	}
	spec := strings.TrimSpace(hashOption.ReplaceAllString(text, ""))
	name, _, _ := strings.Cut(spec, ";")
	switch {
	case requirement.IsDirect(strings.TrimSpace(name)):
		r.addProblem(file, line, "direct", quoteText(spec)+" is a URL or a path", "name a released package with its version")
		return
	case strings.Contains(spec, " -"):
		r.addProblem(file, line, "option", quoteText(spec)+" has an option that is not supported", "remove it")
		return
	case !requirement.IsReleased(spec):
		r.addProblem(file, line, "syntax", quoteText(spec)+" is not a requirement", "write it like requests>=2")
		return
	}
	spec = strings.Join(strings.Fields(spec), " ")
	slices.Sort(hashes)
	whole := strings.Join(append([]string{spec}, hashes...), " ")
	to := &r.requirements
	if constraints {
		to = &r.constraints
	}
	if *to = append(*to, whole); len(*to) == maxRequirements+1 {
		r.addProblem(file, line, "unsupported", "too many requirements", "name those that the script itself uses")
	}
}

// quoteText quotes a skill's text for a message.
func quoteText(s string) string {
	if r := []rune(s); len(r) > 80 {
		s = string(r[:80]) + "…"
	}
	return `"` + strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s) + `"`
}
