package config

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// Value describes a configuration key and its effective value.
type Value struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
	From  string `json:"from"` // file, variable, "command line" or "default"
}

// Values returns all keys with their values and sources.
func (c *Config) Values() []Value {
	var out []Value
	for _, s := range settings {
		v := Value{Key: s.key, From: cmp.Or(c.from[s.key], "default")}
		switch p := s.value(c).(type) {
		case *bool:
			v.Value = *p
		case *int:
			v.Value = *p
		case *string:
			v.Value = *p
			if s.hidden {
				v.Value = redactPassword(*p)
			}
		case *[]string:
			v.Value = append([]string{}, *p...)
		case *map[string]Price:
			prices := map[string]Price{}
			maps.Copy(prices, *p)
			v.Value = prices
		case *map[string]NamedModel:
			named := map[string]NamedModel{}
			maps.Copy(named, *p)
			v.Value = named
		}
		out = append(out, v)
	}
	return out
}

// Text formats the value for a configuration file.
func (v Value) Text() string {
	switch x := v.Value.(type) {
	case []string:
		quoted := make([]string, len(x))
		for i, s := range x {
			quoted[i] = strconv.Quote(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	case string:
		return strconv.Quote(x)
	case map[string]Price:
		return formatPrices(x)
	case map[string]NamedModel:
		return formatNames(x)
	default:
		return fmt.Sprint(x)
	}
}

// Example returns a configuration file that contains every key with its
// documentation and default.
func Example() string {
	var b strings.Builder
	b.WriteString("# Configuration of Loadout: every key with its default.\n" +
		"# Your file is ~/.config/loadout/loadout.yaml. A project may have its own loadout.yaml;\n" +
		"# until you trust it, it may only add skill directories inside the project and deny rules.\n")
	group := ""
	for _, v := range defaults().Values() {
		s, _ := findSetting(v.Key)
		g, name, _ := strings.Cut(v.Key, ".")
		if g != group {
			group = g
			b.WriteString("\n" + g + ":\n")
		}
		for line := range strings.SplitSeq(s.doc, "\n") {
			b.WriteString("  # " + line + "\n")
		}
		if s.env != "" {
			b.WriteString("  # Environment: " + s.env + "\n")
		}
		fmt.Fprintf(&b, "  %s: %s\n\n", name, v.Text())
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// CommandsDisabledBy returns the setting that disables the commands of skills
// and projects, or "" if they are enabled.
func (c *Config) CommandsDisabledBy() string {
	if c.Sandbox.Enabled {
		return ""
	}
	for _, v := range c.Values() {
		if v.Key == "sandbox.enabled" {
			return "sandbox.enabled is false, set by " + v.From
		}
	}
	return "sandbox.enabled is false"
}
