package terminal

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// maxOffered is the maximum number of visible completions.
const maxOffered = 6

// completion holds the completions for the command that the user is typing.
type completion struct {
	commands []Command // set while the user types a command name
	offers   []completionItem
	at       int
	text     string  // input for which the completions were computed
	path     *string // path for which they were computed, or nil
}

// completionItem is one possible completion.
type completionItem struct {
	text            string // input after selecting the completion
	name            string
	args            string
	help            string
	detail          func() string
	replaces        int    // letters before the cursor that text replaces; 0 means the whole input
	replacesAfter   int    // letters after the cursor that it replaces too
	detailRequested bool   // whether detailText was requested
	detailText      string // detail of the command
}

// update computes the completions for the new input.
func (c *completion) update(text string, commands func() []Command) {
	if text == c.text && c.path == nil {
		return
	}
	c.text, c.offers, c.at, c.path = text, nil, 0, nil
	if !strings.HasPrefix(text, "/") || strings.Contains(text, "\n") || commands == nil {
		c.commands = nil
		return
	}
	if c.commands == nil {
		c.commands = commands()
	}
	name, args, behind := strings.Cut(text[1:], " ")
	if !behind {
		for i := range c.commands {
			k := &c.commands[i]
			if full := k.nameWithPrefix(name); full != "" {
				c.offers = append(c.offers, completionItem{text: "/" + full + " ", name: "/" + full, args: k.Args, help: k.Help, detail: k.Detail})
			}
		}
		return
	}
	k := FindCommand(c.commands, name)
	if k == nil || k.Complete == nil {
		return
	}
	for _, choice := range k.Complete(args) {
		c.offers = append(c.offers, completionItem{text: "/" + name + " " + choice.Name, name: choice.Name, help: choice.Help})
	}
}

// nameWithPrefix returns the name or the first alias that starts with prefix, or
// "".
func (k *Command) nameWithPrefix(prefix string) string {
	for _, name := range append([]string{k.Name}, k.Aliases...) {
		if strings.HasPrefix(name, prefix) {
			return name
		}
	}
	return ""
}

// FindCommand returns the command with the given name or alias, or nil if there
// is none. Names take precedence over aliases.
func FindCommand(commands []Command, name string) *Command {
	i := slices.IndexFunc(commands, func(k Command) bool { return k.Name == name })
	if i < 0 {
		i = slices.IndexFunc(commands, func(k Command) bool { return slices.Contains(k.Aliases, name) })
	}
	if i < 0 {
		return nil
	}
	return &commands[i]
}

// close hides the completions until the input changes.
func (c *completion) close() { c.offers = nil }

// move changes the selected completion. It returns false if there are none.
func (c *completion) move(by int) bool {
	if len(c.offers) < 2 {
		return false
	}
	c.at = (c.at + by + len(c.offers)) % len(c.offers)
	return true
}

// lines formats the selected completion with its detail, and the completions
// near it.
func (c *completion) lines(width int) []line {
	if len(c.offers) == 0 {
		return nil
	}
	from := max(min(c.at-maxOffered/2, len(c.offers)-maxOffered), 0)
	shown := c.offers[from:min(from+maxOffered, len(c.offers))]
	column := 0
	for _, o := range shown {
		column = max(column, ansi.StringWidth(o.label()))
	}
	column = min(column, width/2)
	var out []line
	for i, o := range shown {
		mark, st := "  ", normal
		if from+i == c.at {
			mark, st = "› ", bold
		}
		label := Clip(o.label(), column)
		pad := strings.Repeat(" ", column-ansi.StringWidth(label)+2)
		l := line{{mark, cyan}, {label, st}, {pad, normal}, {Plain(o.help), faint}}
		out = append(out, l.clip(width))
	}
	if left := len(c.offers) - len(shown); left > 0 {
		out = append(out, styledText("  "+formatRemainder(left), faint))
	}
	if detail := c.offers[c.at].detailText; detail != "" {
		out = append(out, styledText("  "+detail, faint).clip(width))
	}
	return out
}

// loadDetail loads the detail of the selected completion in the background,
// because it may read files.
func (m *model) loadDetail() {
	if len(m.completion.offers) == 0 {
		return
	}
	chosen := &m.completion.offers[m.completion.at]
	if chosen.detail == nil || chosen.detailRequested {
		return
	}
	chosen.detailRequested = true
	text, detail := chosen.text, chosen.detail
	m.running.Go(func() { m.send(detailMsg{text, Plain(detail())}) })
}

// setDetail stores a detail if its completion is still shown.
func (c *completion) setDetail(d detailMsg) {
	for i := range c.offers {
		if c.offers[i].text == d.text {
			c.offers[i].detailText = d.detail
		}
	}
}

func (o *completionItem) label() string {
	if o.args == "" {
		return Plain(o.name)
	}
	return Plain(o.name + " " + o.args)
}

func formatRemainder(n int) string { return "and " + FormatTokens(n) + " more" }
