package docs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/sandbox/auto"
)

// connect returns a client of a server of the bundled skills.
func connect(t *testing.T, compat string) *mcp.ClientSession {
	t.Helper()
	ctx := context.Background()
	sources, err := loadout.DefaultSources(&loadout.SourceOptions{NoHome: true, NoProject: true})
	if err != nil {
		t.Fatal(err)
	}
	scripts := &loadout.Scripts{FolderDir: t.TempDir(), Getenv: os.Getenv,
		Sandbox: auto.New(&auto.Options{Stage: built})}
	rt, err := loadout.New(ctx, &loadout.Options{Sources: sources, Scripts: scripts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	s := mcpserver.New(rt, &mcpserver.Options{Compat: compat})
	t.Cleanup(func() { s.Close() })
	here, there := mcp.NewInMemoryTransports()
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Run(ctx, there) // ends with the session
	}()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "docs", Version: "1"}, nil).Connect(ctx, here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session.Close()
		stop()
		<-done
	})
	return session
}

// The tables of tools in docs/mcp.md have the arguments and fields that the
// tools have, and no others.
func TestToolTables(t *testing.T) {
	p := readPage(t, "docs/mcp.md")
	tools, err := connect(t, "").ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		section := p.section("`" + tool.Name + "`")
		if section == nil {
			t.Errorf("docs/mcp.md has no section `%s`", tool.Name)
			continue
		}
		compare(t, tool.Name+", arguments", section.rows("argument"), tool.InputSchema)
		compare(t, tool.Name+", fields of the result", section.rows("field"), tool.OutputSchema)
	}
}

func compare(t *testing.T, what string, rows map[string][]string, schema any) {
	t.Helper()
	js, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var sch struct{ Properties map[string]any }
	if err := json.Unmarshal(js, &sch); err != nil {
		t.Fatal(err)
	}
	have, want := slices.Sorted(maps.Keys(rows)), slices.Sorted(maps.Keys(sch.Properties))
	if !slices.Equal(have, want) {
		t.Errorf("docs/mcp.md, %s: the table has %s, and the tool %s", what, strings.Join(have, " "), strings.Join(want, " "))
	}
}

// section returns the part of a page below a heading, up to the next heading, or nil.
func (p *page) section(title string) *page {
	for i, line := range p.lines {
		if strings.HasPrefix(line, "#") && strings.TrimLeft(line, "# ") == title {
			j := i + 1
			for j < len(p.lines) && !strings.HasPrefix(p.lines[j], "#") {
				j++
			}
			return &page{path: p.path, lines: p.lines[i:j]}
		}
	}
	return nil
}

// A comment "call: TOOL ARGUMENTS" before a JSON block means that the block is the
// structured result of that call; with "compat NAME" before the tool, of the call in a
// compatibility mode. In texts "…" stands for any text, alone for any value, and as the
// last element of a list for any more elements.
func TestCalls(t *testing.T) {
	for _, p := range pages(t) {
		for i, b := range p.blocks {
			call, ok := strings.CutPrefix(b.info, "<call: ")
			if !ok {
				continue
			}
			t.Run(p.at(b.first), func(t *testing.T) {
				if i+1 == len(p.blocks) || p.blocks[i+1].info != "json" {
					t.Fatal("no JSON block follows")
				}
				compat := ""
				if rest, ok := strings.CutPrefix(call, "compat "); ok {
					compat, call, _ = strings.Cut(rest, " ")
				}
				tool, arguments, _ := strings.Cut(call, " ")
				if strings.HasSuffix(tool, "_skill_script") && !hasSandbox() {
					t.Skip("no sandbox can be had here")
				}
				res, err := connect(t, compat).CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
				if err != nil {
					t.Fatal(err)
				}
				got, err := json.MarshalIndent(res.StructuredContent, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				if why := unlike(decode(t, strings.Join(p.blocks[i+1].text, "\n")), decode(t, string(got)), "result"); why != "" {
					t.Errorf("the result is different at %s:\n%s", why, got)
				}
			})
		}
	}
}

func decode(t *testing.T, s string) any {
	t.Helper()
	var v any
	if err := json.NewDecoder(bytes.NewReader([]byte(s))).Decode(&v); err != nil {
		t.Fatalf("%v in\n%s", err, s)
	}
	return v
}

// unlike returns the position of a difference between JSON values, or "".
func unlike(want, got any, at string) string {
	switch want := want.(type) {
	case string:
		if s, ok := got.(string); want != "…" && (!ok || !like(want, s)) {
			return at
		}
	case map[string]any:
		m, ok := got.(map[string]any)
		if !ok || !slices.Equal(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(m))) {
			return at
		}
		for k := range want {
			if why := unlike(want[k], m[k], at+"."+k); why != "" {
				return why
			}
		}
	case []any:
		list, ok := got.([]any)
		if n := len(want); ok && n > 0 && want[n-1] == "…" && len(list) >= n-1 {
			want, list = want[:n-1], list[:n-1]
		}
		if !ok || len(want) != len(list) {
			return at
		}
		for i := range want {
			if why := unlike(want[i], list[i], fmt.Sprintf("%s[%d]", at, i)); why != "" {
				return why
			}
		}
	default:
		if want != got {
			return at
		}
	}
	return ""
}
