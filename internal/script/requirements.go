package script

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// Limits for requirements.
const (
	maxRequirementFiles = 16
	maxRequirements     = 2000
)

const (
	ws            = `[ \t]*`
	versionClause = `(?:===|==|!=|<=|>=|~=|<|>)` + ws + `[A-Za-z0-9.*+!_-]+`
	versionList   = versionClause + `(?:` + ws + `,` + ws + versionClause + `)*` + ws + `,?`
)

// requirement is a name with extras, versions and a marker (PEP 508 without
// URLs).
var requirement = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?` + ws +
	`(?:\[[A-Za-z0-9._, \t-]*\])?` + ws + `(?:` + versionList + `|\(` + ws + versionList + ws + `\))?` + ws + `(?:;[A-Za-z0-9_.,<>=!~'"() \t+*-]+)?$`)

var (
	hashOption = lazyregexp.New(`[ \t]--hash[= \t]*(sha(?:256|384|512):[0-9a-f]+)`)
	direct     = lazyregexp.New(`(?i)^(?:(?:git|hg|svn|bzr)\+|[a-z][a-z0-9+.-]*://|file:|\.{0,2}/|\.\.?$|~|[a-z]:\\|\\)|[A-Za-z0-9\]][ \t]*@|\.(?:whl|zip|tar\.gz|tgz|tar\.bz2)$|[/\\]`)
	comment    = lazyregexp.New(`(^|[ \t])#.*$`)
)

// requirementsReader collects requirements and their problems.
type requirementsReader struct {
	fsys                      fs.FS
	requirements, constraints []string
	hashes                    bool
	files                     []string
	problems                  []Problem
}

func (r *requirementsReader) problem(file string, line int, code, message, fix string) {
	r.problems = append(r.problems, Problem{file, line, code, message, fix})
}

// file reads a requirements or constraints file.
func (r *requirementsReader) file(file string, constraints bool) {
	if slices.Contains(r.files, file) {
		return
	}
	if len(r.files) == maxRequirementFiles {
		r.problem(file, 0, "unsupported", "too many requirements files", "put them into one")
		return
	}
	src, err := read(r.fsys, file)
	if err != nil {
		r.problem(file, 0, "missing", "cannot be read: "+cause(err), "mend it, or remove the line that names it")
		return
	}
	r.files = append(r.files, file)
	for _, l := range logicalLines(plain(src)) {
		r.line(file, l.line, l.text, constraints)
	}
}

// logicalLines joins continued lines and drops comments and blank lines, as pip
// does.
func logicalLines(text string) []dependency {
	var out []dependency
	var joined strings.Builder
	number, start := 0, 1
	flush := func() {
		if s := strings.TrimSpace(comment().ReplaceAllString(joined.String(), "")); s != "" {
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
		if goesOn && !comment().MatchString(line) {
			joined.WriteString(strings.TrimLeft(body, " \t") + " ")
			continue
		}
		joined.WriteString(line)
		flush()
	}
	flush()
	return out
}

// asksForSomething reports whether a requirements file contains more than
// comments.
func asksForSomething(src []byte) bool { return len(logicalLines(plain(src))) > 0 }

// line reads one line of a requirements file. It rejects all options except the
// listed ones.
func (r *requirementsReader) line(file string, line int, text string, constraints bool) {
	if !strings.HasPrefix(text, "-") {
		r.require(file, line, text, constraints)
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
		r.include(file, line, value, constraints)
	case "-c", "--constraint":
		r.include(file, line, value, true)
	case "--require-hashes":
		r.hashes = true
	case "--prefer-binary", "--pre", "--only-binary":
		// Ignore these: the installer takes only wheels, and a prerelease must
		// be named explicitly.
	case "-e", "--editable":
		r.problem(file, line, "direct", "an editable requirement runs code of the skill while it is installed", "name a released package with its version")
	case "-i", "--index-url", "--pypi-url", "--extra-index-url", "-f", "--find-links", "--no-index", "--trusted-host":
		r.problem(file, line, "option", option+" changes where packages come from", "remove it; packages come from the index that the operator has chosen")
	default:
		r.problem(file, line, "option", "option "+option+" is not supported", "remove it")
	}
}

// include reads a file that another one includes.
func (r *requirementsReader) include(file string, line int, name string, constraints bool) {
	p := path.Join(path.Dir(file), name)
	switch {
	case name == "":
		r.problem(file, line, "syntax", "names no file", "remove the line")
	case strings.Contains(name, ":"), path.IsAbs(name), strings.Contains(name, `\`), strings.ContainsAny(name, "$"), !fs.ValidPath(p):
		r.problem(file, line, "outside", name+" is not a file of the skill", "put its lines into this file")
	default:
		r.file(p, constraints)
	}
}

// inline adds a single requirement, which cannot be an option.
func (r *requirementsReader) inline(file string, line int, text string) {
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "-") || strings.ContainsAny(text, "\n\r#\\") {
		r.problem(file, line, "option", "dependency "+quoted(text)+" is not a requirement", `write it like "requests>=2"`)
		return
	}
	r.require(file, line, text, false)
}

// require adds one requirement with its hashes.
func (r *requirementsReader) require(file string, line int, text string, constraints bool) {
	var hashes []string
	for _, m := range hashOption().FindAllStringSubmatch(text, -1) {
		hashes = append(hashes, "--hash="+m[1])
	}
	spec := strings.TrimSpace(hashOption().ReplaceAllString(text, ""))
	name, _, _ := strings.Cut(spec, ";")
	switch {
	case direct().MatchString(strings.TrimSpace(name)):
		r.problem(file, line, "direct", quoted(spec)+" is fetched from an address or a path of its own", "name a released package with its version")
		return
	case strings.Contains(spec, " -"):
		r.problem(file, line, "option", quoted(spec)+" has an option that is not supported", "remove it")
		return
	case !requirement().MatchString(spec):
		r.problem(file, line, "syntax", quoted(spec)+" is not a requirement", "write it like requests>=2")
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
		r.problem(file, line, "unsupported", "too many requirements", "name those that the script itself uses")
	}
}

// quoted returns text of a skill for a message.
func quoted(s string) string {
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
