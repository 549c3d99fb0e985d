package terminal

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// maxOffered bounds the choices that are shown at once.
const maxOffered = 6

// completion are the ways to go on with a command that is being typed.
type completion struct {
	commands []Command // while one is typed
	offers   []offer
	at       int
	text     string // the text that the offers are for
}

// offer is one way to go on.
type offer struct {
	text   string // of the whole input
	name   string
	args   string
	help   string
	detail func() string
	asked  bool   // detail was called
	told   string // what it said
}

// update finds the offers for what is typed.
func (c *completion) update(text string, commands func() []Command) {
	if text == c.text {
		return
	}
	c.text, c.offers, c.at = text, nil, 0
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
			if k := &c.commands[i]; strings.HasPrefix(k.Name, name) {
				c.offers = append(c.offers, offer{text: "/" + k.Name + " ", name: "/" + k.Name, args: k.Args, help: k.Help, detail: k.Detail})
			}
		}
		return
	}
	k := find(c.commands, name)
	if k == nil || k.Complete == nil {
		return
	}
	for _, choice := range k.Complete(args) {
		c.offers = append(c.offers, offer{text: "/" + name + " " + choice.Name, name: choice.Name, help: choice.Help})
	}
}

func find(commands []Command, name string) *Command {
	i := slices.IndexFunc(commands, func(k Command) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return &commands[i]
}

// close takes the offers away until something else is typed.
func (c *completion) close() { c.offers = nil }

// move goes to another offer; false is that there is none to choose.
func (c *completion) move(by int) bool {
	if len(c.offers) < 2 {
		return false
	}
	c.at = (c.at + by + len(c.offers)) % len(c.offers)
	return true
}

// chosen is the input with the chosen offer; false is that there is none.
func (c *completion) chosen() (string, bool) {
	if len(c.offers) == 0 {
		return "", false
	}
	return c.offers[c.at].text, true
}

// lines shows the offers around the chosen one, and what there is to say of that.
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
		out = append(out, words("  "+plusMore(left), faint))
	}
	if told := c.offers[c.at].told; told != "" {
		out = append(out, words("  "+told, faint).clip(width))
	}
	return out
}

// tellDetail has it said more of the chosen offer, which may read files.
func (m *model) tellDetail() {
	if len(m.completion.offers) == 0 {
		return
	}
	chosen := &m.completion.offers[m.completion.at]
	if chosen.detail == nil || chosen.asked {
		return
	}
	chosen.asked = true
	text, detail := chosen.text, chosen.detail
	m.running.Go(func() { m.send(detailMsg{text, Plain(detail())}) })
}

// tell shows what there is to say of an offer, where it is still there.
func (c *completion) tell(d detailMsg) {
	for i := range c.offers {
		if c.offers[i].text == d.text {
			c.offers[i].told = d.told
		}
	}
}

func (o *offer) label() string {
	if o.args == "" {
		return Plain(o.name)
	}
	return Plain(o.name + " " + o.args)
}

func plusMore(n int) string { return "and " + Tokens(n) + " more" }
