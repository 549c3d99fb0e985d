package clientconfig_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/clientconfig"
)

// Whatever a file looks like, connecting and undoing gives the same bytes.
func TestUndoRestoresBytes(t *testing.T) {
	for _, name := range []string{"cursor", "vscode", "codex", "opencode", "goose"} {
		t.Run(name, func(t *testing.T) {
			target := at(t, name, nil)
			rapid.Check(t, func(rt *rapid.T) {
				text := document(rt, target.Client)
				write(t, target.File, []byte(text))
				e := rapid.SampledFrom([]clientconfig.Entry{command, remote}).Draw(rt, "entry")
				plan, err := clientconfig.Plan(target, e)
				if err != nil {
					rt.Fatalf("%v in\n%s", err, text)
				}
				if plan.Action != clientconfig.Add || strings.Contains(plan.Diff(), "SECRET") {
					rt.Fatalf("%s\n%s", plan.Action, plan.Diff())
				}
				apply(t, plan)
				if again, err := clientconfig.Plan(target, e); err != nil || again.Action != clientconfig.None {
					rt.Fatalf("not idempotent: %v %v\n%s", again, err, read(t, target.File))
				}
				after := read(t, target.File)

				back, err := clientconfig.PlanUndo(target, "")
				if err != nil || strings.Contains(back.Diff(), "SECRET") {
					rt.Fatalf("%v\n%s", err, back.Diff())
				}
				apply(t, back)
				if got := read(t, target.File); got != text {
					rt.Fatalf("got\n%q\nwant\n%q\nfrom\n%q", got, text, after)
				}
			})
		})
	}
}

// document draws a file without our entry.
func document(t *rapid.T, c clientconfig.Client) string {
	g := gen{t, rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end"), c.Name == "vscode"}
	text := ""
	switch c.Format {
	case clientconfig.TOML:
		text = g.toml()
	case clientconfig.YAML:
		text = g.yaml(c.Key)
	default:
		text = g.space() + g.json(c.Key, 0) + g.space()
	}
	if g.chance("mark") {
		text = "\xef\xbb\xbf" + text
	}
	return text
}

type gen struct {
	t       *rapid.T
	newline string
	loose   bool // comments and trailing commas
}

func (g gen) chance(label string) bool { return rapid.Bool().Draw(g.t, label) }

func (g gen) pick(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(g.t, label)
}

func (g gen) space() string {
	kinds := []string{"", "", " ", "\t", g.newline, g.newline + "  ", g.newline + "\t\t", " " + g.newline + g.newline + "    "}
	if g.loose {
		kinds = append(kinds, " // SECRET \"}"+g.newline, "/* SECRET { */", g.newline+"/* SECRET"+g.newline+"*/ ")
	}
	return g.pick("space", kinds...)
}

// json draws an object; at depth 0 perhaps with servers in it.
func (g gen) json(servers string, depth int) string {
	var members []string
	n := rapid.IntRange(0, 3).Draw(g.t, "members")
	at := rapid.IntRange(-1, n).Draw(g.t, "servers")
	for i := range n + 1 {
		name := g.pick("name", `"a"`, `"loadout"`, `"l\u006fadout"`, `"mcpServers"`, `"servers"`, `""`, `"é\""`)
		switch {
		case depth == 0 && i == at:
			name = `"` + servers + `"`
			members = append(members, g.space()+name+g.space()+":"+g.space()+g.json(servers, 1)+g.space())
			continue
		case i == n:
			continue
		case depth == 0 && strings.Contains(name, ervers(servers)), depth == 1 && strings.HasSuffix(name, `adout"`):
			name = `"b"`
		}
		members = append(members, g.space()+name+g.space()+":"+g.space()+g.value(servers, depth)+g.space())
	}
	text := "{" + strings.Join(members, ",")
	if g.loose && len(members) > 0 && g.chance("comma") {
		text += ","
	}
	return text + g.space() + "}"
}

func ervers(s string) string { return strings.TrimLeft(s, "mcpSs") }

func (g gen) value(servers string, depth int) string {
	if depth < 3 && g.chance("deeper") {
		return g.json(servers, depth+1)
	}
	return g.pick("value", `"SECRET"`, "1", "-2.5e3", "true", "null", `[]`, `["SECRET",{"a\\":["SECRET"]}]`, `"SECRET\"}{,//"`, "[1, [2]]")
}

func (g gen) toml() string {
	var b strings.Builder
	line := func() {
		b.WriteString(g.pick("line", "", "", "# SECRET ["+g.newline, g.newline, " \t"+g.newline))
	}
	pairs := func(n string) {
		for _, key := range []string{"a", "'b.c'", "d . e", `"f\"="`} {
			line()
			if !g.chance("key " + n) {
				continue
			}
			value := g.pick("value", `"SECRET"`, "'SECRET'", "1", "1.5", "true", "1979-05-27T07:32:00Z", "nan", "[ 'SECRET', \"]#\" ]",
				"["+g.newline+"  1, # SECRET ]"+g.newline+"  [2], ]", "{ x = 'SECRET', y.z = [1] }",
				`"""`+g.newline+`[mcp_servers.loadout] SECRET ""\""""`, "'''SECRET'"+g.newline+"''''")
			b.WriteString(g.pick("indent", "", "  ", "\t") + key + g.pick("equals", "=", " = ", "\t=") + value + g.pick("end", "", " ", " # SECRET") + g.newline)
		}
	}
	pairs("root")
	for _, header := range []string{"[x]", "[ mcp_servers ]", "[mcp_servers.s]", "[mcp_servers.s.env]", `["mcp_servers"."loadout.x"]`, "[loadout.mcp_servers]", "[[y.'loadout']]", "[[y.loadout]]"} {
		line()
		if g.chance(header) {
			b.WriteString(g.pick("indent", "", "  ") + header + g.pick("end", "", " # SECRET") + g.newline)
			pairs(header)
		}
	}
	line()
	text := b.String()
	if g.chance("cut") {
		text = strings.TrimSuffix(text, g.newline)
	}
	return text
}

// yaml draws a document with one key per line.
func (g gen) yaml(servers string) string {
	var b strings.Builder
	line := func(indent string) {
		b.WriteString(g.pick("line", "", "", indent+"# SECRET: x"+g.newline, g.newline, "  "+g.newline))
	}
	pair := func(indent, key string) {
		line(indent)
		b.WriteString(indent + key + g.pick("value", ": SECRET", ": 'SECRET: x' # SECRET", ": 1", ": true # SECRET", ": [SECRET, 2]", ": {SECRET: SECRET}", ":", ": ~",
			": |"+g.newline+indent+"  SECRET"+g.newline+indent+"  more: SECRET", ": >-"+g.newline+indent+"    SECRET", ": SECRET"+g.newline+indent+"   SECRET",
			":"+g.newline+indent+"- SECRET"+g.newline+indent+"- a: SECRET", ": \"SECRET"+g.newline+indent+"  SECRET\"") + g.newline)
	}
	if g.chance("start") {
		b.WriteString("---" + g.newline)
	}
	for _, key := range []string{"a", "'b'", `"c d"`} {
		if g.chance(key) {
			pair("", key)
		}
	}
	switch indent := g.pick("indent", "  ", "    ", " "); g.pick("servers", "none", "empty", "null", "some") {
	case "empty":
		b.WriteString(servers + g.pick("empty", ": {}", ":  { } # SECRET") + g.newline)
	case "null":
		b.WriteString(servers + g.pick("null", ":", ": # SECRET") + g.newline)
	case "some":
		b.WriteString(servers + g.pick("some", ":", ":  # SECRET", `: # a`) + g.newline)
		pair(indent, "s")
		if g.chance("t") {
			line(indent)
			b.WriteString(indent + "'t':" + g.newline)
			pair(indent+indent, "cmd")
			pair(indent+indent, "x")
		}
	}
	if g.chance("z") {
		pair("", "z")
	}
	line("")
	text := b.String()
	if g.chance("cut") && !strings.HasSuffix(text, "more: SECRET"+g.newline) { // a newline would change that text
		text = strings.TrimSuffix(text, g.newline)
	}
	return text
}
