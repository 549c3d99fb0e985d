package mcpserver_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/policy"
)

// publisher is an MCP server with one skill, whose files are given by URI.
type publisher map[string]string

const guideURI = "skill://guide/SKILL.md"

func (p publisher) Do(ctx context.Context, _ string, f func(context.Context, serverskill.Conn) error) error {
	return f(ctx, p)
}
func (p publisher) ServesSkills() bool { return true }
func (p publisher) ListSkills(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(`{"skills":[` + p.entry() + `]}`), nil
}
func (p publisher) GetSkill(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(`{"skill":` + p.entry() + `}`), nil
}
func (p publisher) ReadSkillFile(_ context.Context, uri string) ([]byte, error) {
	if text, ok := p[uri]; ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

func (p publisher) entry() string {
	var resources []string
	for uri, text := range p {
		resources = append(resources, fmt.Sprintf(`{"uri":%q,"digest":"sha256:%x","size":%d}`, uri, sha256.Sum256([]byte(text)), len(text)))
	}
	slices.Sort(resources)
	return `{"uri":"` + guideURI + `","frontmatter":{"name":"guide","description":"Guides"},"resources":[` + strings.Join(resources, ",") + `]}`
}

// A server could find two versions of a skill whose digests begin alike, so only the
// whole digest names the version that a client has loaded.
func TestWholeDigestNamesServedSkills(t *testing.T) {
	p := publisher{guideURI: "---\nname: guide\ndescription: Guides\n---\nSee a.md.\n", "skill://guide/a.md": "First."}
	w := newWorld(t, setup{sources: []catalog.Source{serverskill.New(serverskill.Options{Label: "docs", Connector: p, Wait: true})}})
	c := w.connect(t, ways[0], nil)
	res := c.call("load_skill", args{"name": "mcp.docs/guide"})
	digest := strings.TrimPrefix(structured[loadResult](t, res).Digest, "sha256:")
	if len(digest) != 64 || !strings.Contains(textOf(res), "Digest: "+digest+"\n") {
		t.Fatalf("digest %q, text %q; want the whole digest in both", digest, textOf(res))
	}
	for _, held := range []string{digest, "sha256:" + digest, " " + strings.ToUpper(digest)} {
		if res := c.call("read_skill_file", args{"skill": "mcp.docs/guide", "path": "a.md", "digest": held}); res.IsError || !strings.Contains(textOf(res), "First.") {
			t.Errorf("read with %q: %s", held, textOf(res))
		}
		if got := structured[loadResult](t, c.call("load_skill", args{"name": "mcp.docs/guide", "have": held})); got.State != "already" {
			t.Errorf("load with %q: state %s, want already", held, got.State)
		}
	}
	for _, held := range []string{digest[:12], digest[:63], "sha256:" + digest[:20], digest + "0"} {
		if res := c.call("read_skill_file", args{"skill": "mcp.docs/guide", "path": "a.md", "digest": held}); !res.IsError || !strings.Contains(textOf(res), "has changed") {
			t.Errorf("read with %q: %s; want a refusal", held, textOf(res))
		}
		if got := structured[loadResult](t, c.call("load_skill", args{"name": "mcp.docs/guide", "have": held})); got.State != "loaded" {
			t.Errorf("load with %q: state %s, want loaded", held, got.State)
		}
	}
}

// The tool of an earlier system reads the files of a skill of an MCP server in the
// version whose digest it returned.
func TestServedSkillsInCompatMode(t *testing.T) {
	p := publisher{guideURI: "---\nname: guide\ndescription: Guides\n---\nSee a.md.\n", "skill://guide/a.md": "First."}
	w := newWorld(t, setup{options: mcpserver.Options{Compat: "weknora"}, sources: []catalog.Source{serverskill.New(serverskill.Options{Label: "docs", Connector: p, Wait: true})}})
	c := w.connect(t, ways[0], nil)
	res := c.call("read_skill", args{"skill_name": "mcp.docs/guide"})
	digest := regexp.MustCompile(`Digest: ([0-9a-f]{64})\n`).FindStringSubmatch(textOf(res))
	if res.IsError || digest == nil {
		t.Fatalf("read the skill: %s", textOf(res))
	}
	if res := c.call("read_skill", args{"skill_name": "mcp.docs/guide", "file_path": "a.md", "digest": digest[1]}); res.IsError || !strings.Contains(textOf(res), "First.") {
		t.Errorf("read a file with the digest: %s", textOf(res))
	}
	for _, held := range []string{"", strings.Repeat("0", 64)} {
		if res := c.call("read_skill", args{"skill_name": "mcp.docs/guide", "file_path": "a.md", "digest": held}); !res.IsError || strings.Contains(textOf(res), "First.") {
			t.Errorf("read a file with the digest %q: %s; want a refusal", held, textOf(res))
		}
	}
}

// A script of a skill of an MCP server runs only in the version that the client has
// loaded, even if the user approved another one.
func TestScriptsOfServedSkillsAreThoseOfTheLoad(t *testing.T) {
	p := publisher{guideURI: "---\nname: guide\ndescription: Guides\n---\nRun run.sh.\n", "skill://guide/run.sh": "echo in $LOADOUT_SKILL\n"}
	box := newBox()
	w := newWorld(t, setup{scripts: &loadout.Scripts{Sandbox: box, Grants: allApproved{policy.NewMemoryStore()}, FolderDir: filepath.Join(t.TempDir(), "work")}, sources: []catalog.Source{serverskill.New(serverskill.Options{Label: "docs", Connector: p, Wait: true})}})
	c := w.connect(t, ways[0], nil)
	for _, held := range []string{"", strings.Repeat("0", 64)} {
		if res := c.call("run_skill_script", args{"skill": "mcp.docs/guide", "script": "run.sh", "digest": held}); !res.IsError || !strings.Contains(textOf(res), "loaded") {
			t.Errorf("run with the digest %q: %s; want a refusal", held, textOf(res))
		}
	}
	digest := structured[loadResult](t, c.call("load_skill", args{"name": "mcp.docs/guide"})).Digest
	if err := usable(); err != nil {
		t.Skipf("no sandbox here: %v", err)
	}
	if res := c.call("run_skill_script", args{"skill": "mcp.docs/guide", "script": "run.sh", "digest": digest}); !strings.Contains(textOf(res), "in /needs/mcp.docs%2Fguide") {
		t.Errorf("run with the digest of the load: %s", textOf(res))
	}
}
