package terminal

import (
	"fmt"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
)

// Limits of the details view: stored calls, bytes per call, and calls shown.
const (
	maxCalls      = 50
	maxCallText   = 64 << 10
	maxCallsShown = 10
)

// call is a running or completed tool call.
type call struct {
	llm.Call
	start    time.Time
	elapsed  time.Duration
	progress string
	result   string
	failed   bool
	over     bool
}

// innerCall returns the name and arguments of the called tool. For a call
// through a gateway tool, it returns those of the inner tool.
func (c *call) innerCall() (name, args string) {
	name, args = Plain(c.Name), c.Arguments
	if baseName(c.Name) != toolname.CallTool {
		return name, args
	}
	all, _ := parseMembers([]byte(args))
	for _, m := range all {
		text, _ := m.text()
		switch m.name {
		case "name":
			name = Plain(text)
		case "arguments":
			args = string(m.value)
		}
	}
	return name, args
}

// summaryLine describes a call in one line.
func (c *call) summaryLine(width int, now time.Time) line {
	name, args := c.innerCall()
	mark, st, elapsed := "✓ ", green, c.elapsed
	switch {
	case !c.over:
		mark, st, elapsed = "• ", cyan, now.Sub(c.start)
	case c.failed:
		mark, st = "✗ ", red
	}
	end := line{}
	if d := formatDuration(elapsed, c.over); d != "" {
		end = line{{"  " + d, faint}}
	}
	text := summarizeArguments(args)
	switch {
	case c.failed:
		text = Plain(c.result)
	case !c.over && c.progress != "":
		text = Plain(c.progress)
	}
	out := line{{mark, st}, {name, normal}}
	if text != "" {
		out = append(out, span{" " + text, faint})
	}
	return append(out.clip(width-end.width()), end...)
}

// detailLines describes a call with its arguments and its result.
func (c *call) detailLines(width int, now time.Time) []line {
	name, args := c.innerCall()
	out := []line{c.summaryLine(width, now)}
	indent := line{{"  ", normal}}
	add := func(all []line) {
		for _, l := range all {
			out = append(out, append(append(line{}, indent...), l...))
		}
	}
	add(argumentLines(name, []byte(args), nil))
	if c.over {
		add([]line{{{"→", faint}}})
		add(textLines(c.result, faint))
	}
	return out
}

// formatDuration formats a duration. It returns "" for a negligible duration.
func formatDuration(d time.Duration, over bool) string {
	switch {
	case d < time.Second && !over, d < 100*time.Millisecond:
		return ""
	case d < 10*time.Second && over:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}

// calls holds the calls of a conversation, oldest first.
type calls []*call

func (all *calls) event(e agent.Event, now time.Time) *call {
	if e.Call == nil {
		return nil
	}
	c := all.find(e.Call.ID)
	if c == nil {
		c = &call{Call: *e.Call, start: now}
		if c.Arguments = e.Call.Arguments; len(c.Arguments) > maxCallText {
			c.Arguments = strings.ToValidUTF8(c.Arguments[:maxCallText], "") + "…"
		}
		*all = append(*all, c)
		if n := len(*all); n > maxCalls {
			*all = append(calls{}, (*all)[n-maxCalls:]...)
		}
	}
	switch {
	case e.Type == agent.ToolProgress:
		c.progress = Clip(e.Text, 200)
	case e.Result != nil:
		c.over, c.failed, c.elapsed = true, e.Result.Error, now.Sub(c.start)
		if c.result = e.Result.Text; len(c.result) > maxCallText {
			c.result = strings.ToValidUTF8(c.result[:maxCallText], "") + fmt.Sprintf("\n… (%d bytes in all)", len(e.Result.Text))
		}
	}
	return c
}

// find returns the running call with the given ID, or nil.
func (all calls) find(id string) *call {
	for _, c := range all {
		if c.ID == id && !c.over {
			return c
		}
	}
	return nil
}

// runningCalls returns the calls that are still running.
func (all calls) runningCalls() calls {
	var out calls
	for _, c := range all {
		if !c.over {
			out = append(out, c)
		}
	}
	return out
}
