package terminal

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

func TestAnySequenceOfEvents(t *testing.T) {
	keys := []string{"enter", "tab", "esc", "up", "down", "ctrl+c", "ctrl+o", "ctrl+r", "?", "alt+enter", "/", "y", "n", "e", "d", "s", "{", "文", " ", "/lo", "a word "}
	rapid.Check(t, func(rt *rapid.T) {
		var ran []string
		desk := approval.NewQueue(&approval.MemoryStore{})
		s := newScreen(t, &Options{Approvals: desk, Session: "s", Commands: commandsOf(&ran)})
		defer func() {
			s.stop()
			s.running.Wait()
		}()
		asked := 0
		steps := rapid.IntRange(1, 40).Draw(rt, "steps")
		for range steps {
			s.clock = s.clock.Add(time.Duration(rapid.IntRange(0, 2000).Draw(rt, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				s.update(tea.WindowSizeMsg{Width: rapid.IntRange(0, 100).Draw(rt, "width"), Height: rapid.IntRange(0, 40).Draw(rt, "height")})
			case 1:
				s.update(tea.PasteMsg{Content: rapid.StringOfN(rapid.Rune(), 0, 100, -1).Draw(rt, "pasted")})
			case 2:
				asked++
				a := approval.Request{ID: "s." + strings.Repeat("x", asked), Session: "s", Principal: s.opts.Who, Kind: rapid.SampledFrom([]approval.Kind{approval.KindApproval, approval.KindElicitation}).Draw(rt, "kind"), Message: "Do it?\nReally?",
					Schema: json.RawMessage(rapid.SampledFrom([]string{``, `{"properties":{"a":{"type":"string"},"b":{"enum":["x","y"]}}}`, `{"properties":{}}`}).Draw(rt, "schema"))}
				if rapid.Bool().Draw(rt, "call") {
					a.Payload = json.RawMessage(`{"tool":"write_file","arguments":{"path":"a","content":"b\nc"}}`)
				}
				s.update(askMsg{Request: a})
			case 3:
				e := agent.Event{Type: rapid.SampledFrom([]agent.Type{agent.Text, agent.Thinking, agent.ToolCall, agent.ToolProgress, agent.ToolResult, agent.SkillLoaded, agent.SkillUnloaded, agent.Notice, agent.Compacted, agent.Usage, agent.Done}).Draw(rt, "type")}
				e.Text = rapid.SampledFrom([]string{"", "words\n\n", "```\n", "- a", "| a |\n|-|\n"}).Draw(rt, "text")
				if rapid.Bool().Draw(rt, "with a call") {
					e.Call = &llm.Call{ID: rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "id"), Name: "load_skill", Arguments: rapid.SampledFrom([]string{"", "{}", `{"name":"x"}`, "["}).Draw(rt, "arguments")}
					if e.Type == agent.ToolResult {
						e.Result = &session.CallResult{Call: e.Call.ID, Text: "r"}
					}
				}
				s.update(eventMsg(e))
			case 4:
				select {
				case m := <-s.messages:
					s.update(m)
				default:
					s.update(tickMsg{})
				}
			default:
				s.keys(rapid.SampledFrom(keys).Draw(rt, "key"))
			}
			got := s.screen()
			if len(got.rows) > max(s.height, 1) || got.y < 0 || got.y > len(got.rows) {
				rt.Fatalf("%d rows of %d, the cursor on %d", len(got.rows), s.height, got.y)
			}
		}
	})
}
