package terminal

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// maxPicked is the maximum number of visible choices of a picker.
const maxPicked = 10

// maxFilter is the maximum length, in grapheme clusters, of an input that
// becomes the initial filter of a history search. A longer input is treated as
// a draft.
const maxFilter = 80

// picker is a list of choices that is shown instead of the input. The words
// that the user types filter the list.
type picker struct {
	title  string
	all    []Choice
	note   string // shown below the choices
	loads  bool   // whether further choices are being loaded
	free   bool   // whether the user can also pick the typed text
	accept func(Choice) tea.Cmd

	filter editor
	shown  []Choice
	at     int
}

// moreMsg adds choices to a picker.
type moreMsg struct {
	to   *picker
	more []Choice
}

// pickMsg opens a picker whose choices were loaded in the background.
type pickMsg struct{ *picker }

func newPicker(title string, all []Choice, free bool, accept func(Choice) tea.Cmd) *picker {
	p := &picker{title: title, all: all, free: free, accept: accept}
	p.update()
	return p
}

// update selects the choices that contain all typed words, ignoring case.
func (p *picker) update() {
	p.shown, p.at = nil, 0
	typed := strings.TrimSpace(p.filter.String())
	words := strings.Fields(strings.ToLower(typed))
	exact := typed == ""
	for _, c := range p.all {
		if containsAll(strings.ToLower(c.Name+" "+c.Help), words) {
			p.shown = append(p.shown, c)
			exact = exact || c.Name == typed
		}
	}
	if p.free && !exact {
		p.shown = append(p.shown, Choice{Name: typed, Help: "as typed"})
	}
}

// add adds choices after the others. The selected one stays selected.
func (p *picker) add(more []Choice) {
	p.loads = false
	for _, c := range more {
		if !slices.ContainsFunc(p.all, func(o Choice) bool { return o.Name == c.Name }) {
			p.all = append(p.all, c)
		}
	}
	selected := ""
	if p.at < len(p.shown) {
		selected = p.shown[p.at].Name
	}
	p.update()
	p.at = max(slices.IndexFunc(p.shown, func(c Choice) bool { return c.Name == selected }), 0)
}

func containsAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

func (p *picker) paste(text string) {
	p.filter.insert(strings.Join(strings.Fields(text), " "))
	p.update()
}

// move changes the selected choice and stops at both ends.
func (p *picker) move(by int) { p.at = max(min(p.at+by, len(p.shown)-1), 0) }

// lines renders the filter and the choices near the selected one in up to height
// lines. The cursor is at column x of the first line.
func (p *picker) lines(width, height int) (out []line, x int) {
	rows, x, y := p.filter.rows(max(width-2, 8))
	out = []line{{{"> ", cyan}, {rows[y], normal}}}
	if p.filter.empty() {
		out[0] = append(line{{"> ", cyan}}, styledText(p.title+" (type to filter)", faint)...)
	}
	count := min(maxPicked, max(height-2, 1))
	from := max(min(p.at-count/2, len(p.shown)-count), 0)
	shown := p.shown[from:min(from+count, len(p.shown))]
	column := 0
	for _, c := range shown {
		if c.Help != "" {
			column = max(column, Width(Plain(c.Name)))
		}
	}
	column = min(column, width*2/3)
	for i, c := range shown {
		mark, st := "  ", normal
		if from+i == p.at {
			mark, st = "› ", bold
		}
		l := line{{mark, cyan}, {Plain(c.Name), st}}
		if c.Help != "" {
			name := Clip(c.Name, column)
			l = line{{mark, cyan}, {name, st}, {strings.Repeat(" ", column-ansi.StringWidth(name)+2), normal}, {Plain(c.Help), faint}}
		}
		out = append(out, l.clip(width))
	}
	foot := "↑ ↓ choose · Enter accepts · Esc cancels"
	if len(shown) == 0 {
		foot = "Esc cancels"
	}
	if p.loads {
		foot = "loading more · " + foot
	}
	if p.note != "" {
		foot = p.note + " · " + foot
	}
	switch left := len(p.shown) - len(shown); {
	case len(shown) == 0 && len(p.all) > 0:
		foot = "nothing matches · " + foot
	case left > 0:
		foot = formatRemainder(left) + " · " + foot
	}
	return append(out, styledText("  "+foot, faint).clip(width)), x + 2
}

// pickerKey passes a key press to the picker.
func (m *model) pickerKey(name, text string) tea.Cmd {
	p := m.picker
	switch name {
	case "esc", "ctrl+c", "ctrl+g":
		m.picker = nil
		return m.nextWaiting()
	case "enter", "tab":
		if len(p.shown) == 0 {
			return nil
		}
		m.picker = nil
		return p.accept(p.shown[p.at])
	case "up", "ctrl+p", "shift+tab":
		p.move(-1)
	case "down", "ctrl+n", "ctrl+r":
		p.move(1)
	case "pgup":
		p.move(-maxPicked)
	case "pgdown":
		p.move(maxPicked)
	default:
		if p.filter.key(name, text) {
			p.update()
		}
	}
	return nil
}

// pickArgument loads the choices of a command in the background and lets the
// user pick its argument.
func (m *model) pickArgument(k *Command) {
	name, title, load, more, free := k.Name, k.PickTitle, k.Pick, k.PickMore, k.Free
	m.running.Go(func() {
		choices, note := load()
		p := newPicker(title, choices, free, func(c Choice) tea.Cmd { return m.enter(input{text: "/" + name + " " + c.Name}) })
		p.note, p.loads = note, more != nil
		m.send(pickMsg{p})
		if more != nil {
			m.send(moreMsg{p, more(m.ctx)})
		}
	})
}

// searchHistory lets the user pick an earlier input.
func (m *model) searchHistory() {
	var all []Choice
	found := map[string]input{} // by name
	for _, in := range slices.Backward(m.history.past) {
		if _, ok := found[in.shown()]; !ok {
			found[in.shown()] = in
			all = append(all, Choice{Name: in.shown()})
		}
	}
	m.picker = newPicker("Search earlier input", all, false, func(c Choice) tea.Cmd {
		m.input.restore(found[c.Name])
		m.completion = completion{text: m.input.String()}
		return m.nextWaiting()
	})
	if len(all) == 0 {
		m.picker.note = "No earlier inputs yet"
	}
	if typed := m.input.String(); len(m.input.letters) <= maxFilter && !strings.Contains(typed, "\n") {
		m.picker.filter.set(typed)
		m.picker.update()
	}
}
