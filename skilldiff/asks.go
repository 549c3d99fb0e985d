package skilldiff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/policy"
)

// Asks are what one version of a skill asks for and the other does not.
type Asks struct {
	// More is what the new version asks for beyond the old one, or otherwise:
	// what a person is to look at before they take it.
	More []Ask `json:"more"`
	// Less is what the old version asked for and the new one does not.
	Less []Ask `json:"less"`
}

// Kinds of [Ask].
const (
	Scripts   = "scripts"   // it has code that can be run, where the other has none
	Provider  = "provider"  // code in it that offers tools: a command, a class or a module
	Network   = "network"   // a host, as a pattern
	Secret    = "secret"    // by name
	Inject    = "inject"    // a secret that is added to requests to a host
	Workspace = "workspace" // writing in the directory that agents work on
	Limit     = "limit"     // memory_mb, seconds, processes, disk_mb: more, or no limit of its own
	Isolation = "isolation" // min_tier: the least isolation it agrees to run in
	Server    = "server"    // an MCP server: its command or its addresses, or that the host has it
	Variable  = "variable"  // of the configuration of a server, and where its value goes
	Tool      = "tool"      // a pattern of allowed-tools: no more questions about it while loaded
	Package   = "package"   // that a script needs, as "pypi:NAME" or "npm:NAME"
	Needs     = "needs"     // another skill
	Model     = "model"     // that another model be used while it is loaded
)

// Ask is one thing that a skill asks for. All texts are on one line, cut at
// [MaxValueBytes], and safe for a terminal.
type Ask struct {
	Kind string `json:"kind"`
	Name string `json:"name"` // what: a host, a name, a pattern
	// Old and New say more where there is more to say: the command of a
	// server, the range of a package, a number. Where both are there, the one
	// became the other.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
}

// wish is what is asked for, without how.
type wish struct{ kind, name string }

// maxWishes bounds what is looked at of what one version asks for.
const maxWishes = 20_000

// wishes are what one version asks for.
type wishes struct {
	none   bool // there is no such version
	bounds policy.Bounds
	other  map[wish][]string // what there is to say of each, each once
	said   map[said]bool
	full   bool // there was more than maxWishes
}

// said is one thing that is said of a wish.
type said struct {
	wish
	how string
}

// add adds a wish. Said in several places, it is what all of them say.
func (w *wishes) add(kind, name, how string) {
	s := said{wish{kind, name}, how}
	switch {
	case w.said[s]:
	case len(w.said) == maxWishes:
		w.full = true
	default:
		w.said[s] = true
		w.other[s.wish] = append(w.other[s.wish], how)
	}
}

// how is what there is to say of a wish, whatever the order.
func (w *wishes) how(key wish) string {
	all := slices.DeleteFunc(slices.Clone(w.other[key]), func(s string) bool { return s == "" })
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// asks compares what the versions ask for.
func (c *comparison) asks() error {
	old, err := c.wishes(&c.old, "old version")
	if err != nil {
		return err
	}
	new, err := c.wishes(&c.new, "new version")
	if err != nil {
		return err
	}
	more, less := compareLists(old.bounds, new.bounds)
	moreLimits, lessLimits := compareLimits(old, new)
	more, less = append(more, moreLimits...), append(less, lessLimits...)
	for key := range new.other {
		was, how := old.how(key), new.how(key)
		if _, ok := old.other[key]; !ok || was != how {
			more = append(more, Ask{key.kind, key.name, was, how})
		}
	}
	for key := range old.other {
		if _, ok := new.other[key]; !ok {
			less = append(less, Ask{key.kind, key.name, old.how(key), ""})
		}
	}
	c.diff.Asks = Asks{c.presented(more), c.presented(less)}
	return nil
}

// presented are asks as they are shown.
func (c *comparison) presented(all []Ask) []Ask {
	slices.SortFunc(all, func(a, b Ask) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	if len(all) > MaxAsks {
		c.problem("%d things that it asks for are left out: there are more than %d", len(all)-MaxAsks, MaxAsks)
		all = all[:MaxAsks]
	}
	for i, a := range all {
		all[i] = Ask{a.Kind, visible(a.Name, MaxValueBytes), visible(a.Old, MaxValueBytes), visible(a.New, MaxValueBytes)}
	}
	return all
}

// wishes reads what a version asks for.
func (c *comparison) wishes(s *side, name string) (*wishes, error) {
	w := &wishes{none: s.fsys == nil, other: map[wish][]string{}, said: map[said]bool{}}
	if w.none {
		return w, nil
	}
	if s.version().Scripts > 0 {
		w.add(Scripts, "run", "")
	}
	front, err := s.skill.FrontmatterJSON()
	if err != nil && len(s.skill.Frontmatter) > 0 {
		c.problem("%s: what it asks of a sandbox cannot be told: %v", name, err)
	}
	var problems []policy.Problem
	w.bounds, problems = policy.ParseAsk(front)
	for _, p := range problems {
		c.problem("%s: not asked for: %s", name, p)
	}
	for _, in := range policy.ParseInject(front) {
		w.add(Inject, fmt.Sprintf("%s to %s", in.Secret, in.Pattern()), in.Header)
	}
	for _, t := range s.skill.AllowedTools {
		w.add(Tool, t, "")
	}
	for _, d := range s.skill.Dependencies {
		other, constraint, _ := strings.Cut(d, "@")
		w.add(Needs, strings.TrimSpace(other), strings.TrimSpace(constraint))
	}
	if p := s.skill.Provider; p != nil {
		w.add(Provider, "run", cmp.Or(quoted(p.Command), p.WASM, strings.TrimPrefix(p.Module+"."+p.Class, ".")))
	}
	if s.skill.Model != "" {
		w.add(Model, s.skill.Model, "")
	}
	c.servers(s, w, name)
	err = c.packages(s, w, name)
	if w.full {
		c.problem("%s: of what it asks for, %d are looked at, and there is more", name, maxWishes)
	}
	return w, err
}

// quoted is a command as it can be read: its words, those with blanks in quotes.
func quoted(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = word
		if word == "" || strings.ContainsAny(word, " \t\"'\\") {
			words[i] = strconv.Quote(word)
		}
	}
	return strings.Join(words, " ")
}

// compareLists compares the hosts, secrets and rights that are asked of a
// sandbox. A host that a pattern of the other version covers is nothing more.
func compareLists(old, new policy.Bounds) (more, less []Ask) {
	for _, side := range []struct {
		to   *[]Ask
		a, b policy.Bounds
	}{{&more, old, new}, {&less, new, old}} {
		has := side.a.Allows()
		add := func(kind, name string) { *side.to = append(*side.to, Ask{Kind: kind, Name: name}) }
		for _, h := range side.b.Network {
			if !has.Covers(policy.Allows{Network: []string{h}}) {
				add(Network, h)
			}
		}
		for _, s := range side.b.Secrets {
			if !slices.Contains(has.Secrets, s) {
				add(Secret, s)
			}
		}
		if side.b.WorkspaceWrite && !has.WorkspaceWrite {
			add(Workspace, "write")
		}
	}
	return more, less
}

// compareLimits compares the numbers that are asked of a sandbox. More is what
// lets the skill do more; of a version alone, all that it states.
func compareLimits(old, new *wishes) (more, less []Ask) {
	for _, l := range []change{
		limit("memory_mb", old.bounds.MemoryMB, new.bounds.MemoryMB),
		limit("seconds", old.bounds.Seconds, new.bounds.Seconds),
		limit("processes", old.bounds.Processes, new.bounds.Processes),
		limit("disk_mb", old.bounds.DiskMB, new.bounds.DiskMB),
		{Isolation, "min_tier", old.bounds.MinTier, new.bounds.MinTier, new.bounds.MinTier < old.bounds.MinTier},
	} {
		if l.old == l.new {
			continue
		}
		ask := Ask{l.kind, l.name, number(l.old), number(l.new)}
		if old.none || l.wider && !new.none {
			more = append(more, ask)
		} else {
			less = append(less, ask)
		}
	}
	return more, less
}

// change is a number in two versions, of which 0 is not stated.
type change struct {
	kind, name string
	old, new   int
	wider      bool // the new one lets the skill do more
}

// limit is the change of a limit: without one, it is whatever the host gives.
func limit(name string, old, new int) change {
	return change{Limit, name, old, new, new == 0 || old != 0 && new > old}
}

// number is "" for what is not stated.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// textsOf are the texts of JSON that is a text or a list of them.
func textsOf(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	var all []string
	_ = json.Unmarshal(raw, &all) // what has another form is no command and no address
	return all
}
