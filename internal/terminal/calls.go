package terminal

import (
	"fmt"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/session"
)

// Bounds of what is kept of calls, to be unfolded.
const (
	maxCalls      = 50
	maxCallText   = 64 << 10
	maxCallsShown = 10
)

// call is one of a tool, under way or over.
type call struct {
	session.Call
	begun    time.Time
	took     time.Duration
	progress string
	result   string
	failed   bool
	over     bool
}

// name is the tool; of one that is reached through another, that.
func (c *call) name() (name, args string) {
	name, args = Plain(c.Name), c.Arguments
	if bare(c.Name) != toolname.CallTool {
		return name, args
	}
	all, _ := members([]byte(args))
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

// folded is a call on one line.
func (c *call) folded(width int, now time.Time) line {
	name, args := c.name()
	mark, st, took := "✓ ", green, c.took
	switch {
	case !c.over:
		mark, st, took = "• ", cyan, now.Sub(c.begun)
	case c.failed:
		mark, st = "✗ ", red
	}
	end := line{}
	if d := duration(took, c.over); d != "" {
		end = line{{"  " + d, faint}}
	}
	text := brief(args)
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

// unfolded is all of a call: its arguments and what came of it.
func (c *call) unfolded(width int, now time.Time) []line {
	name, args := c.name()
	out := []line{c.folded(width, now)}
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

// duration is how long something took, "" where it was at once.
func duration(d time.Duration, over bool) string {
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

// calls are those of a conversation, the oldest first.
type calls []*call

func (all *calls) event(e agent.Event, now time.Time) *call {
	if e.Call == nil {
		return nil
	}
	c := all.find(e.Call.ID)
	if c == nil {
		c = &call{Call: *e.Call, begun: now}
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
		c.over, c.failed, c.took = true, e.Result.Error, now.Sub(c.begun)
		if c.result = e.Result.Text; len(c.result) > maxCallText {
			c.result = strings.ToValidUTF8(c.result[:maxCallText], "") + fmt.Sprintf("\n… (%d bytes in all)", len(e.Result.Text))
		}
	}
	return c
}

// find is a call under way by its ID.
func (all calls) find(id string) *call {
	for _, c := range all {
		if c.ID == id && !c.over {
			return c
		}
	}
	return nil
}

// open are those under way.
func (all calls) open() calls {
	var out calls
	for _, c := range all {
		if !c.over {
			out = append(out, c)
		}
	}
	return out
}
