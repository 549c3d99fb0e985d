// Package manpage writes the manual pages of a command line program in roff,
// from the help texts of its commands. Any man program can show them.
//
// It does not use the doc package of Cobra, which reads help texts as Markdown
// and needs three more modules.
package manpage

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Header is the text in the header and footer of a page.
type Header struct {
	Source string    // the program and its version, such as "loadout v1.2.0"
	Date   time.Time // when the source was last changed; the zero Time omits it
}

// Name returns the name of the manual page for cmd, such as
// "loadout-servers-test".
func Name(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// Write writes the manual page for cmd, in section 1. The root command must
// have its default subcommands and flags.
func Write(w io.Writer, cmd *cobra.Command, h Header) error {
	p := &page{}
	date := ""
	if !h.Date.IsZero() {
		date = h.Date.UTC().Format(time.DateOnly)
	}
	cmd.InitDefaultHelpFlag()
	p.line(".TH %s 1 %s %s %s", quote(strings.ToUpper(Name(cmd))), quote(date), quote(h.Source), quote("User Commands"))
	p.section("Name")
	p.line("%s \\- %s", escape(Name(cmd)), escape(cmd.Short))
	p.section("Synopsis")
	p.synopsis(cmd)
	p.section("Description")
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	p.text(long)
	p.commands(cmd)
	if len(cmd.Aliases) > 0 {
		p.section("Aliases")
		p.line("%s", escape(strings.Join(cmd.Aliases, ", ")))
	}
	p.options("Options", cmd.NonInheritedFlags())
	p.options("Options of all commands", cmd.InheritedFlags())
	if cmd.Example != "" {
		p.section("Examples")
		p.literal(strings.Split(strings.TrimRight(cmd.Example, "\n"), "\n"))
	}
	p.seeAlso(cmd)
	_, err := io.WriteString(w, p.String())
	return err
}

// page builds the roff source of a manual page.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *page) section(title string) { p.line(".SH %s", quote(strings.ToUpper(title))) }

// synopsis writes the usage line of cmd.
func (p *page) synopsis(cmd *cobra.Command) {
	name, rest, _ := strings.Cut(cmd.UseLine(), " ")
	if path := cmd.CommandPath(); strings.HasPrefix(cmd.UseLine(), path) {
		name, rest = path, strings.TrimSpace(cmd.UseLine()[len(path):])
	}
	if cmd.HasAvailableSubCommands() {
		rest = strings.TrimSpace("[command] " + rest)
	}
	p.line("\\fB%s\\fR %s", escape(name), escape(rest))
}

// commands writes the subcommands of cmd, by group.
func (p *page) commands(cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	p.section("Commands")
	list := func(id string) {
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() && c.GroupID == id {
				p.line(".TP\n\\fB%s\\fR(1)\n%s", escape(Name(c)), escape(c.Short))
			}
		}
	}
	for _, g := range cmd.Groups() {
		p.line(".SS %s", quote(strings.TrimSuffix(g.Title, ":")))
		list(g.ID)
	}
	list("")
}

func (p *page) options(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.section(title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "\\fB\\-\\-" + escape(f.Name) + "\\fR"
		if f.Shorthand != "" {
			name = "\\fB\\-" + f.Shorthand + "\\fR, " + name
		}
		if value != "" {
			name += " \\fI" + escape(value) + "\\fR"
		}
		p.line(".TP\n%s\n%s", name, escape(usage))
	})
}

// seeAlso writes a section that refers to the page of cmd's parent command. For
// the root command, it writes nothing.
func (p *page) seeAlso(cmd *cobra.Command) {
	if !cmd.HasParent() {
		return
	}
	p.section("See also")
	p.line("\\fB%s\\fR(1)", escape(Name(cmd.Parent())))
}

// text writes paragraphs separated by blank lines. Paragraphs with indented lines
// keep their line breaks.
func (p *page) text(s string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(s), "\n\n") {
		if i > 0 {
			p.line(".PP")
		}
		lines := strings.Split(strings.Trim(paragraph, "\n"), "\n")
		indented := false
		for _, l := range lines {
			indented = indented || strings.HasPrefix(l, " ")
		}
		if indented {
			p.literal(lines)
			continue
		}
		for _, l := range lines {
			p.line("%s", escape(l))
		}
	}
}

// literal writes lines without filling them.
func (p *page) literal(lines []string) {
	p.line(".nf")
	for _, l := range lines {
		p.line("%s", escape(l))
	}
	p.line(".fi")
}

// escapes replaces the characters that roff would otherwise show as typographic
// ones, so that users can copy commands and options.
var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// escape escapes s so that roff shows it unchanged. s must be a single line.
func escape(s string) string {
	s = escapes.Replace(s)
	if strings.HasPrefix(s, ".") {
		return `\&` + s
	}
	return s
}

// quote formats s as one argument of a roff request.
func quote(s string) string { return `"` + strings.ReplaceAll(escape(s), `"`, `\(dq`) + `"` }
