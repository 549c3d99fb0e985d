package terminal

import (
	"fmt"
	"strings"
)

// statusLine formats the status on one line. If the line is too long, it omits
// the directory, then the usage, then the skill names.
func statusLine(s Status, width int) line {
	model := span{Plain(s.Model), normal}
	var names []string
	for _, k := range s.Skills {
		name := Plain(k.Name)
		if k.Bounded {
			name += fmt.Sprintf(" (%d)", k.Left)
		}
		names = append(names, name)
	}
	skills := strings.Join(names, ", ")
	short := ""
	if n := len(names); n > 0 {
		short = fmt.Sprintf("%d skill%s", n, plural(n))
	}
	usage := formatUsage(s)
	for _, parts := range [][]string{{skills, usage, OneLine(s.Folder)}, {skills, usage}, {short, usage}, {short}, {}} {
		out := line{model}
		for _, p := range parts {
			if p != "" {
				out = append(out, span{" · " + p, faint})
			}
		}
		if out.width() <= width {
			return out
		}
	}
	return line{model}.clip(width)
}

// formatUsage formats a conversation's token usage, and its cost if known.
func formatUsage(s Status) string {
	if s.Tokens == 0 {
		return ""
	}
	out := FormatTokens(s.Tokens) + " tokens"
	if s.Cost > 0 {
		out += " " + FormatDollars(s.Cost)
	}
	return out
}

// FormatTokens formats a token count, such as 950 or 1.2k.
func FormatTokens(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 100_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// FormatDollars formats an amount of US dollars.
func FormatDollars(sum float64) string {
	if sum < 0.01 {
		return fmt.Sprintf("$%.4f", sum)
	}
	return fmt.Sprintf("$%.2f", sum)
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
