package serverskill_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/serverskill"
)

// resource returns the JSON of a file in an entry.
func resource(uri, content string) string {
	return fmt.Sprintf(`{"uri":%q,"digest":"sha256:%x","size":%d}`, uri, sha256.Sum256([]byte(content)), len(content))
}

// entryJSON returns the JSON of an entry with a name, a description and files.
func entryJSON(uri, name string, resources ...string) string {
	return fmt.Sprintf(`{"uri":%q,"frontmatter":{"name":%q,"description":"Does it"},"resources":[%s]}`, uri, name, strings.Join(resources, ","))
}

const pdfURI = "skill://pdf/SKILL.md"

func TestEntriesThatAreAccepted(t *testing.T) {
	many := []string{resource(pdfURI, "x")}
	for i := 1; i < 512; i++ {
		many = append(many, resource(fmt.Sprintf("skill://pdf/f%d", i), "x"))
	}
	large := fmt.Sprintf(`{"uri":"skill://pdf/large","digest":"sha256:%064d","size":%d}`, 0, 16<<20-1)
	for name, js := range map[string]string{
		"one file":            entryJSON(pdfURI, "pdf", resource(pdfURI, "x")),
		"prefix":              entryJSON("skill://acme/billing/refunds/SKILL.md", "refunds", resource("skill://acme/billing/refunds/SKILL.md", "x")),
		"another scheme":      entryJSON("github://o/r/skills/refunds/SKILL.md", "refunds", resource("github://o/r/skills/refunds/SKILL.md", "x")),
		"supporting files":    entryJSON(pdfURI, "pdf", resource("skill://pdf/a/b.md", "x"), resource(pdfURI, "x"), resource("skill://pdf/a%20b.md", "y")),
		"nested skill":        entryJSON(pdfURI, "pdf", resource(pdfURI, "x"), resource("skill://pdf/inner/SKILL.md", "x")),
		"512 files":           entryJSON(pdfURI, "pdf", many...),
		"16 MiB":              entryJSON(pdfURI, "pdf", resource(pdfURI, "x"), large),
		"dynamic":             `{"uri":"skill://pdf/SKILL.md","frontmatter":{"name":"pdf","description":"d"},"resources":"dynamic"}`,
		"unknown fields":      strings.Replace(entryJSON(pdfURI, "pdf", resource(pdfURI, "x")), "{", `{"_meta":{"a":1},"URI":"skill://other/SKILL.md",`, 1),
		"an empty file":       entryJSON(pdfURI, "pdf", resource(pdfURI, "x"), resource("skill://pdf/empty", "")),
		"name with a : path":  entryJSON("skill://a:b/pdf/SKILL.md", "pdf", resource("skill://a:b/pdf/SKILL.md", "x")),
		"escaped root":        entryJSON("skill://%C3%BCber/pdf/SKILL.md", "pdf", resource("skill://%C3%BCber/pdf/SKILL.md", "x")),
		"names of one letter": entryJSON("skill://a/SKILL.md", "a", resource("skill://a/SKILL.md", "x")),
	} {
		if _, err := serverskill.ParseEntry(json.RawMessage(js)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEntriesThatAreRefused(t *testing.T) {
	md := resource(pdfURI, "x")
	digest := fmt.Sprintf(`"sha256:%064d"`, 0)
	tooMany := []string{md}
	for i := range 512 {
		tooMany = append(tooMany, resource(fmt.Sprintf("skill://pdf/f%d", i), "x"))
	}
	for name, js := range map[string]string{
		"no object":                 `[]`,
		"null":                      `null`,
		"no uri":                    `{"frontmatter":{"name":"pdf","description":"d"},"resources":[` + md + `]}`,
		"another file":              entryJSON("skill://pdf/README.md", "pdf", resource("skill://pdf/README.md", "x")),
		"no path":                   entryJSON("skill://SKILL.md", "pdf", resource("skill://SKILL.md", "x")),
		"no scheme":                 entryJSON("pdf/SKILL.md", "pdf", resource("pdf/SKILL.md", "x")),
		"file URL":                  entryJSON("file:///pdf/SKILL.md", "pdf", resource("file:///pdf/SKILL.md", "x")),
		"file URL with authority":   entryJSON("FILE://host/pdf/SKILL.md", "pdf", resource("FILE://host/pdf/SKILL.md", "x")),
		"file URL with one slash":   entryJSON("file:/pdf/SKILL.md", "pdf", resource("file:/pdf/SKILL.md", "x")),
		"other name":                entryJSON(pdfURI, "pdf2", md),
		"name that is not portable": entryJSON("skill://PDF/SKILL.md", "PDF", resource("skill://PDF/SKILL.md", "x")),
		"no name":                   `{"uri":"skill://pdf/SKILL.md","frontmatter":{"description":"d"},"resources":[` + md + `]}`,
		"no description":            `{"uri":"skill://pdf/SKILL.md","frontmatter":{"name":"pdf"},"resources":[` + md + `]}`,
		"frontmatter list":          `{"uri":"skill://pdf/SKILL.md","frontmatter":[],"resources":[` + md + `]}`,
		"no resources":              `{"uri":"skill://pdf/SKILL.md","frontmatter":{"name":"pdf","description":"d"}}`,
		"null resources":            `{"uri":"skill://pdf/SKILL.md","frontmatter":{"name":"pdf","description":"d"},"resources":null}`,
		"other text as resources":   `{"uri":"skill://pdf/SKILL.md","frontmatter":{"name":"pdf","description":"d"},"resources":"Dynamic"}`,
		"no SKILL.md":               entryJSON(pdfURI, "pdf", resource("skill://pdf/a", "x")),
		"empty resources":           entryJSON(pdfURI, "pdf"),
		"file of another skill":     entryJSON(pdfURI, "pdf", md, resource("skill://pdf2/a", "x")),
		"file above":                entryJSON(pdfURI, "pdf", md, resource("skill://pdf/../a", "x")),
		"escaped file above":        entryJSON(pdfURI, "pdf", md, resource("skill://pdf/%2e%2e/a", "x")),
		"hidden direction of root":  entryJSON("skill://a%E2%80%AEb/pdf/SKILL.md", "pdf", resource("skill://a%E2%80%AEb/pdf/SKILL.md", "x")),
		"tag in root":               entryJSON("skill://a%F3%A0%81%81b/pdf/SKILL.md", "pdf", resource("skill://a%F3%A0%81%81b/pdf/SKILL.md", "x")),
		"zero width in root":        entryJSON("skill://a%E2%80%8Bb/pdf/SKILL.md", "pdf", resource("skill://a%E2%80%8Bb/pdf/SKILL.md", "x")),
		"root that is not ASCII":    entryJSON("skill://\u0430cme/pdf/SKILL.md", "pdf", resource("skill://\u0430cme/pdf/SKILL.md", "x")),
		"escaped slash":             entryJSON(pdfURI, "pdf", md, resource("skill://pdf/a%2fb", "x")),
		"backslash":                 entryJSON(pdfURI, "pdf", md, resource(`skill://pdf/a\b`, "x")),
		"query":                     entryJSON(pdfURI, "pdf", md, resource("skill://pdf/a?b", "x")),
		"fragment":                  entryJSON(pdfURI, "pdf", md, resource("skill://pdf/a#b", "x")),
		"empty segment":             entryJSON(pdfURI, "pdf", md, resource("skill://pdf//a", "x")),
		"NUL":                       entryJSON(pdfURI, "pdf", md, resource("skill://pdf/a%00", "x")),
		"hidden direction":          entryJSON(pdfURI, "pdf", md, resource("skill://pdf/a%E2%80%AEb", "x")),
		"listed twice":              entryJSON(pdfURI, "pdf", md, md),
		"listed in two forms":       entryJSON(pdfURI, "pdf", md, resource("skill://pdf/a", "x"), resource("skill://pdf/%61", "x")),
		"below a file":              entryJSON(pdfURI, "pdf", md, resource("skill://pdf/a", "x"), resource("skill://pdf/a/b", "x")),
		"other digest":              entryJSON(pdfURI, "pdf", `{"uri":"skill://pdf/SKILL.md","digest":"md5:00","size":1}`),
		"upper-case digest":         entryJSON(pdfURI, "pdf", fmt.Sprintf(`{"uri":"skill://pdf/SKILL.md","digest":"sha256:%s","size":1}`, strings.Repeat("A", 64))),
		"no size":                   entryJSON(pdfURI, "pdf", `{"uri":"skill://pdf/SKILL.md","digest":`+digest+`}`),
		"null size":                 entryJSON(pdfURI, "pdf", `{"uri":"skill://pdf/SKILL.md","digest":`+digest+`,"size":null}`),
		"negative size":             entryJSON(pdfURI, "pdf", `{"uri":"skill://pdf/SKILL.md","digest":`+digest+`,"size":-1}`),
		"fractional size":           entryJSON(pdfURI, "pdf", `{"uri":"skill://pdf/SKILL.md","digest":`+digest+`,"size":1.5}`),
		"513 files":                 entryJSON(pdfURI, "pdf", tooMany...),
		"more than 16 MiB":          entryJSON(pdfURI, "pdf", md, `{"uri":"skill://pdf/a","digest":`+digest+`,"size":16777216}`),
		"overflowing sizes":         entryJSON(pdfURI, "pdf", md, `{"uri":"skill://pdf/a","digest":`+digest+`,"size":9223372036854775807}`, `{"uri":"skill://pdf/b","digest":`+digest+`,"size":9223372036854775807}`),
		"deep frontmatter":          `{"uri":"skill://pdf/SKILL.md","frontmatter":{"name":"pdf","description":"d","a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `},"resources":[` + md + `]}`,
		"large frontmatter":         `{"uri":"skill://pdf/SKILL.md","frontmatter":{"name":"pdf","description":"` + strings.Repeat("d", 300<<10) + `"},"resources":[` + md + `]}`,
	} {
		if e, err := serverskill.ParseEntry(json.RawMessage(js)); err == nil {
			t.Errorf("%s: accepted as %+v", name, e)
		}
	}
	_, err := serverskill.ParseEntry(json.RawMessage(entryJSON(pdfURI, "pdf", tooMany...)))
	if tooLarge, ok := errors.AsType[*serverskill.TooLargeError](err); !ok || tooLarge.Files != 513 {
		t.Errorf("513 files: error %v, want a TooLargeError with the count", err)
	}
}

const pdfText = "---\nname: pdf\ndescription: Does it\n---\nText.\n"

func TestContentIsVerified(t *testing.T) {
	e, err := serverskill.ParseEntry(json.RawMessage(entryJSON(pdfURI, "pdf", resource(pdfURI, pdfText))))
	if err != nil {
		t.Fatal(err)
	}
	r, _ := e.Find("SKILL.md")
	if err := r.Verify([]byte(pdfText)); err != nil {
		t.Error(err)
	}
	for what, data := range map[string]string{"size": pdfText + "\n", "digest": strings.Replace(pdfText, "Text", "Evil", 1)} {
		if m, ok := errors.AsType[*serverskill.MismatchError](r.Verify([]byte(data))); !ok || m.What != what {
			t.Errorf("another %s: %v", what, r.Verify([]byte(data)))
		}
	}
	if err := e.VerifyFrontmatter([]byte(pdfText)); err != nil {
		t.Error(err)
	}
	for _, text := range []string{
		strings.Replace(pdfText, "Does it", "Exfiltrates", 1), strings.Replace(pdfText, "---\nText", "allowed-tools: Bash\n---\nText", 1), "Text.\n", "---\nname: [\n---\n",
	} {
		if err := e.VerifyFrontmatter([]byte(text)); err == nil {
			t.Errorf("no difference found in %q", text)
		}
	}
}

// An accepted entry names only files below its root, its limits hold, and
// parsing what it was parsed from gives the same entry.
func FuzzParseEntry(f *testing.F) {
	f.Add(entryJSON(pdfURI, "pdf", resource("skill://pdf/a/b.md", "x"), resource(pdfURI, "x")))
	f.Add(`{"uri":"skill://pdf/SKILL.md","frontmatter":{"name":"pdf","description":"d"},"resources":"dynamic"}`)
	f.Add(entryJSON("x://%41/pdf/SKILL.md", "pdf", resource("x://%41/pdf/SKILL.md", "x")))
	f.Fuzz(func(t *testing.T, js string) {
		e, err := serverskill.ParseEntry(json.RawMessage(js))
		if err != nil {
			return
		}
		again, err := serverskill.ParseEntry(json.RawMessage(js))
		if err != nil || !again.Equal(e) {
			t.Fatalf("parsed again: %v", err)
		}
		root := strings.TrimSuffix(e.URI, "/SKILL.md")
		total := int64(0)
		for _, r := range e.Resources {
			total += r.Size
			if !strings.HasPrefix(r.URI, root+"/") || !fs.ValidPath(r.Path) || r.Size < 0 || len(r.SHA256) != 64 {
				t.Fatalf("invalid file %+v below %s", r, root)
			}
		}
		if len(e.Resources) > 512 || total > 16<<20 || e.Dynamic != (len(e.Resources) == 0) {
			t.Fatalf("limits exceeded: %d files, %d bytes", len(e.Resources), total)
		}
	})
}
