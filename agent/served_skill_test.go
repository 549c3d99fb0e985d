package agent_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/internal/toolname"
)

// publisher is an MCP server with one skill.
type publisher struct {
	mu    sync.Mutex
	files map[string]string // by URI
	sent  int
	tools string // allowed-tools as JSON; may be ""
}

const guideURI = "skill://guide/SKILL.md"

func (p *publisher) Do(ctx context.Context, _ string, f func(context.Context, serverskill.Conn) error) error {
	return f(ctx, p)
}
func (p *publisher) ServesSkills() bool { return true }
func (p *publisher) ListSkills(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(`{"skills":[` + p.entry() + `]}`), nil
}
func (p *publisher) GetSkill(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(`{"skill":` + p.entry() + `}`), nil
}
func (p *publisher) ReadSkillFile(_ context.Context, uri string) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent++
	if text, ok := p.files[uri]; ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

func (p *publisher) entry() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var resources []string
	for uri, text := range p.files {
		resources = append(resources, fmt.Sprintf(`{"uri":%q,"digest":"sha256:%x","size":%d}`, uri, sha256.Sum256([]byte(text)), len(text)))
	}
	return `{"uri":"` + guideURI + `","frontmatter":{"name":"guide","description":"Guides"` + p.tools + `},"resources":[` + strings.Join(resources, ",") + `]}`
}

// A conversation reads the files of a skill of an MCP server only from the version
// that it loaded, and only after it did.
func TestFilesOfServedSkillsAreThoseOfTheLoad(t *testing.T) {
	p := &publisher{files: map[string]string{guideURI: "---\nname: guide\ndescription: Guides\n---\nSee a.md.\n", "skill://guide/a.md": "First."}}
	src := serverskill.New(serverskill.Options{Label: "docs", Connector: p, Wait: true})
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{src}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := rt.NewSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	all, end, err := agent.SkillTools(t.Context(), rt, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(); s.Close(); rt.Close() })
	read := all[slices.IndexFunc(all, func(tool agent.Tool) bool { return tool.Name == toolname.ReadSkillFile })]
	expect := func(want string) {
		t.Helper()
		out, err := read.Call(t.Context(), json.RawMessage(`{"skill":"mcp.docs/guide","path":"a.md"}`))
		if err != nil || !strings.Contains(fmt.Sprintf("%+v", out), want) {
			t.Errorf("read: %+v, %v; want %q", out, err, want)
		}
	}
	load := func() {
		t.Helper()
		if _, err := s.Load(t.Context(), "mcp.docs/guide", nil); err != nil {
			t.Fatal(err)
		}
	}
	expect("is not loaded")
	load()
	expect("First.")
	p.mu.Lock()
	p.files["skill://guide/b.md"] = "Added."
	p.mu.Unlock()
	if err := src.Find(t.Context(), "guide"); err != nil { // an entry with other files
		t.Fatal(err)
	}
	if err := rt.Catalog().Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("has changed since it was loaded")
	load()
	expect("First.")
}
