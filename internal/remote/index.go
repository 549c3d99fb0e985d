package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
)

// IndexSchema identifies version 0.2.0 of the format of indexes, and IndexDir is the path
// of an index on a website.
const (
	IndexSchema = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
	IndexDir    = "/.well-known/agent-skills"
)

// SiteIndex lists the skills of a website.
type SiteIndex struct {
	Schema string    `json:"$schema"`
	Skills []Indexed `json:"skills"`
}

// Indexed is a skill in a [SiteIndex].
type Indexed struct {
	Name        string `json:"name"` // portable
	Type        string `json:"type"` // "archive" or "skill-md"
	Description string `json:"description"`
	URL         string `json:"url"`    // relative to that of the index, or absolute
	Digest      string `json:"digest"` // of the archive or the SKILL.md: "sha256:" and hex
}

const (
	olderIndexDir    = "/.well-known/skills"
	indexFile        = "/index.json"
	maxIndex         = 4 << 20 // bytes
	maxIndexProblems = 100
	maxDescription   = 4096 // bytes
)

// publishedSkill describes a skill in an index.
type publishedSkill struct {
	name        string // portable skill name
	description string
	archive     bool     // in a current index: url refers to an archive, not to a SKILL.md
	url         *url.URL // URL of the artifact; in an older index, the directory of the files
	digest      string   // digest of the artifact: "sha256:" and hex
	files       []string // in an older index: paths relative to url
}

// openIndex reads the index of a site. It downloads no skills.
func (c *Client) openIndex(ctx context.Context, l Location) (*Collection, error) {
	site, err := url.Parse(l.URL)
	if err != nil || site.Host == "" {
		return nil, errors.New("open index: invalid URL")
	}
	candidates, only := indexURLs(site)
	if l.Dir != "" {
		only = l.Dir
	}
	src, at, err := c.firstIndex(ctx, candidates)
	if err != nil {
		return nil, err
	}
	skills, problems, err := c.parseIndex(src, at)
	if err != nil {
		return nil, fmt.Errorf("read index %s: %w", cleanAddress(at), err)
	}
	o := &Collection{Location: l, Problems: problems}
	byName := map[string]publishedSkill{}
	for _, p := range skills {
		if only == "" || p.name == only {
			byName[p.name] = p
			o.Skills = append(o.Skills, Skill{Name: p.name, Description: p.description, Dir: p.name, Digest: p.digest})
		}
	}
	if only != "" && len(o.Skills) == 0 {
		return nil, &NotFoundError{What: fmt.Sprintf("skill %q in the index %s", only, cleanAddress(at))}
	}
	sortSkills(o.Skills)
	o.open = func(ctx context.Context, s Skill) (*skill.Bundle, error) {
		p, ok := byName[s.Dir]
		if !ok {
			return nil, &NotFoundError{What: fmt.Sprintf("skill %q in the index %s", s.Dir, cleanAddress(at))}
		}
		ctx, cancel := c.startSession(ctx, l)
		defer cancel()
		return c.openPublished(ctx, p)
	}
	return o, nil
}

// indexURLs returns the possible URLs of a site's index, in the order to try
// them. skillName is the name of a single skill, or "". The user may specify
// the URL of the site, of the index directory, of the index itself, or of a
// skill below the directory.
func indexURLs(site *url.URL) (candidates []*url.URL, skillName string) {
	at := func(p string) *url.URL { return &url.URL{Scheme: site.Scheme, Host: site.Host, Path: p} }
	for _, dir := range []string{IndexDir, olderIndexDir} {
		i := strings.Index(site.Path+"/", dir+"/")
		if i < 0 {
			continue
		}
		below := strings.Trim((site.Path + "/")[i+len(dir):], "/")
		if below != "index.json" {
			skillName, _, _ = strings.Cut(below, "/")
		}
		return []*url.URL{at(site.Path[:i] + dir + indexFile)}, skillName
	}
	base := strings.TrimRight(site.Path, "/")
	for _, b := range slices.Compact([]string{base, ""}) {
		candidates = append(candidates, at(b+IndexDir+indexFile), at(b+olderIndexDir+indexFile))
	}
	return candidates, ""
}

// firstIndex reads the first index that exists. It skips HTML pages, because
// many sites answer every request with one.
func (c *Client) firstIndex(ctx context.Context, candidates []*url.URL) ([]byte, *url.URL, error) {
	var missing error
	for _, u := range candidates {
		resp, err := c.fetch(ctx, u.String(), "index of skills")
		if notFound, ok := errors.AsType[*NotFoundError](err); ok {
			if missing == nil {
				missing = notFound
			}
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if isHTML(resp) {
			resp.Body.Close()
			if missing == nil {
				missing = &NotFoundError{What: "index of skills " + cleanAddress(u), Hint: "the server responded with an HTML page"}
			}
			continue
		}
		src, err := readFile(resp.Body, cleanAddress(u), maxIndex)
		return src, resp.Request.URL, err
	}
	return nil, nil, missing
}

func isHTML(resp *http.Response) bool {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && kind == "text/html"
}

// indexDocument is an index in either format, with unparsed entries.
type indexDocument struct {
	Schema string            `json:"$schema"`
	Skills []json.RawMessage `json:"skills"`
}

// indexEntry is an entry of an index in either format.
type indexEntry struct {
	Indexed
	Files []string `json:"files"` // in an older index
}

// parseIndex parses the index fetched from a URL. Invalid entries become
// problems. Valid entries have unique portable names and http or https URLs.
func (c *Client) parseIndex(src []byte, from *url.URL) ([]publishedSkill, []catalog.Problem, error) {
	var doc indexDocument
	if err := json.Unmarshal(src, &doc); err != nil {
		return nil, nil, errors.New("invalid JSON: " + printable.OneLine(err.Error()))
	}
	read := c.readEntry
	switch doc.Schema {
	case IndexSchema:
	case "":
		read = c.readOlderEntry
	default:
		return nil, nil, fmt.Errorf("unsupported $schema %q (want %s, or none for the older format)", truncate(doc.Schema, 200), IndexSchema)
	}
	if doc.Skills == nil {
		return nil, nil, errors.New(`required list "skills" is missing`)
	}
	r := &indexReader{known: map[string]bool{}}
	for i, raw := range doc.Skills {
		if i == c.opts.Limits.Skills {
			r.refuse(cleanAddress(from), "too-many-skills", fmt.Sprintf("too many entries (%d); those after the first %d are skipped", len(doc.Skills), i))
			break
		}
		r.add(i, raw, from, read)
	}
	return r.skills, r.problems, nil
}

// indexReader collects the skills and problems of an index.
type indexReader struct {
	known    map[string]bool
	skills   []publishedSkill
	problems []catalog.Problem
}

func (r *indexReader) add(i int, raw json.RawMessage, from *url.URL, read func(*indexEntry, *url.URL) (publishedSkill, string)) {
	var e indexEntry
	if err := json.Unmarshal(raw, &e); err != nil {
		r.refuse(fmt.Sprintf("entry %d", i+1), "bad-entry", printable.OneLine(err.Error()))
		return
	}
	label := fmt.Sprintf("entry %d", i+1)
	if e.Name != "" {
		label = printable.OneLine(truncate(e.Name, 80))
	}
	switch {
	case !skillname.IsPortable(e.Name):
		r.refuse(label, "bad-name", "name is not 1 to 64 lower-case letters, digits and single hyphens")
		return
	case r.known[e.Name]:
		r.refuse(label, "duplicate-name", "duplicate of an earlier entry")
		return
	}
	p, wrong := read(&e, from)
	if wrong != "" {
		r.refuse(label, "bad-entry", wrong)
		return
	}
	r.known[e.Name] = true
	p.name, p.description = e.Name, truncate(e.Description, maxDescription)
	r.skills = append(r.skills, p)
}

func (r *indexReader) refuse(label, code, message string) {
	if len(r.problems) < maxIndexProblems {
		r.problems = append(r.problems, catalog.Problem{Path: label, Diagnostic: skill.Diagnostic{
			Severity: skill.Error, Code: code, Message: message, Fix: "report it to the publisher of the index",
		}})
	}
}

// truncate returns s shortened to at most limit bytes.
func truncate(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

// readEntry parses an entry of a current index. If the entry is invalid, it
// returns the reason.
func (c *Client) readEntry(e *indexEntry, from *url.URL) (publishedSkill, string) {
	p := publishedSkill{archive: e.Type == "archive", digest: strings.ToLower(e.Digest)}
	switch {
	case e.Type != "archive" && e.Type != "skill-md":
		return p, fmt.Sprintf("unknown type %q, want skill-md or archive", truncate(e.Type, 80))
	case e.Digest == "":
		return p, "digest is missing"
	case policy.Digest(p.digest).Check() != nil:
		return p, "invalid digest, want sha256: and 64 hex digits"
	case e.URL == "":
		return p, "url is missing"
	case len(e.URL) > maxTreePath:
		return p, "url is too long"
	}
	u, err := from.Parse(e.URL)
	switch {
	case err != nil:
		return p, "url is invalid"
	case u.User != nil:
		return p, "url contains a user or password"
	case u.Scheme != "https" && (u.Scheme != "http" || !isLocalhost(hostName(u.Hostname())) && !c.isPrivateAllowed(hostName(u.Hostname()))):
		return p, "url does not use https"
	case u.Host == "":
		return p, "url has no host"
	case from.Scheme == "https" && u.Scheme != "https":
		return p, "url uses http although the index uses https"
	}
	p.url = u
	return p, ""
}

// readOlderEntry parses an entry of an older index. If the entry is invalid, it
// returns the reason.
func (c *Client) readOlderEntry(e *indexEntry, from *url.URL) (publishedSkill, string) {
	if len(e.Files) == 0 {
		return publishedSkill{}, "list of files is missing; an index with urls needs a $schema"
	}
	var listed skill.Manifest
	found := false
	for _, f := range e.Files {
		listed = append(listed, skill.File{Path: f})
		found = found || skillpath.IsSkillFile(f)
	}
	if refused := c.opts.Limits.Skill.Check(listed); len(refused) > 0 {
		return publishedSkill{}, printable.OneLine(refused[0].String())
	}
	if !found {
		return publishedSkill{}, "SKILL.md is not in the list of files"
	}
	dir := *from
	dir.Path, dir.RawPath = path.Join(path.Dir(from.Path), e.Name)+"/", ""
	return publishedSkill{url: &dir, files: e.Files}, ""
}
