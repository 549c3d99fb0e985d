package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/filetype"
	"github.com/loadout-dev/loadout/internal/rpcmessage"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

// This file implements the Skills extension: specification/stable/skills.mdx of
// ext-skills.

// pageSize is the number of skills in a page of skills/list. Each entry lists
// all files with their hashes.
const pageSize = 50

// dirPageSize is the number of entries in a page of resources/directory/read.
const dirPageSize = 500

type listSkillsParams struct {
	mcp.ParamsBase
	Cursor string `json:"cursor,omitempty"`
}

type uriParams struct {
	mcp.ParamsBase
	URI    string `json:"uri"`
	Cursor string `json:"cursor,omitempty"`
}

// skillEntry describes a skill in skills/list and skills/get.
type skillEntry struct {
	URI         string          `json:"uri"`
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   []skillResource `json:"resources"`
}

type skillResource struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// cacheable holds the cache fields that protocol version 2026-07-28 added to
// results.
type cacheable struct {
	TTLMs      *int   `json:"ttlMs,omitempty"`
	CacheScope string `json:"cacheScope,omitempty"`
}

type listSkillsResult struct {
	mcp.ResultBase
	cacheable
	ResultType string        `json:"resultType"`
	Skills     []*skillEntry `json:"skills"`
	NextCursor string        `json:"nextCursor,omitempty"`
}

type getSkillResult struct {
	mcp.ResultBase
	cacheable
	ResultType string      `json:"resultType"`
	Skill      *skillEntry `json:"skill"`
}

type readDirectoryResult struct {
	mcp.ResultBase
	ResultType string          `json:"resultType"`
	Resources  []*mcp.Resource `json:"resources"`
	NextCursor string          `json:"nextCursor,omitempty"`
}

func addSkillMethods(sdk *mcp.Server) {
	err := errors.Join(
		mcp.AddReceivingCustomMethod(sdk, "skills/list", onServer((*Server).listSkills)),
		mcp.AddReceivingCustomMethod(sdk, "skills/get", onServer((*Server).getSkill)),
		mcp.AddReceivingCustomMethod(sdk, "resources/directory/read", onServer((*Server).readDirectory)),
	)
	if err != nil {
		panic(err) // the method name is reserved by the SDK
	}
	sdk.AddResourceTemplate(skillTemplate, readResource)
}

// onServer returns a handler that calls method on the [Server] that handles the
// request.
func onServer[P, R any](method func(*Server, context.Context, *mcp.ServerSession, P) (R, error)) func(context.Context, *mcp.ServerSession, P) (R, error) {
	return func(ctx context.Context, ss *mcp.ServerSession, params P) (R, error) {
		return method(serverOf(ctx), ctx, ss, params)
	}
}

// skillTemplate is the URI template of skill files.
var skillTemplate = &mcp.ResourceTemplate{URITemplate: scheme + "{+path}", Name: "skill-file", Title: "File of a skill",
	Description: "A file of a skill, by the skill's path and the file's path inside it."}

// cacheFields returns the cache fields for the request's protocol version.
func cacheFields(ss *mcp.ServerSession, meta map[string]any) cacheable {
	version, _ := meta[mcp.MetaKeyProtocolVersion].(string)
	if version == "" {
		if p := ss.InitializeParams(); p != nil {
			version = p.ProtocolVersion
		}
	}
	if version < rpcmessage.ModernVersion {
		return cacheable{}
	}
	ttl := cacheMillis
	return cacheable{&ttl, cacheScope}
}

func (s *Server) listSkills(ctx context.Context, ss *mcp.ServerSession, p *listSkillsParams) (*listSkillsResult, error) {
	if p == nil {
		p = &listSkillsParams{}
	}
	at, err := decodeCursor(p.Cursor)
	if err != nil {
		return nil, rpcmessage.InvalidParams("%v", err)
	}
	v := s.view()
	res := &listSkillsResult{ResultType: "complete", Skills: []*skillEntry{}, cacheable: cacheFields(ss, p.GetMeta())}
	page, next := pageOf(v.served(), at, pageSize)
	res.NextCursor = next
	for _, e := range page {
		entry, err := s.entry(ctx, v, e)
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			s.log.Warn("a skill is left out of skills/list", "skill", e.Name, "path", e.Path, "reason", err)
			continue
		}
		res.Skills = append(res.Skills, entry)
	}
	return res, nil
}

func (s *Server) getSkill(ctx context.Context, ss *mcp.ServerSession, p *uriParams) (*getSkillResult, error) {
	if p == nil || p.URI == "" {
		return nil, rpcmessage.InvalidParams("skills/get needs the uri of a skill's SKILL.md")
	}
	v := s.view()
	e, inside, ok := v.find(p.URI)
	if !ok || !skillpath.IsSkillFile(inside) {
		return nil, rpcmessage.InvalidParams("no skill is served at %s", p.URI)
	}
	entry, err := s.entry(ctx, v, e)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, rpcmessage.InvalidParams("the skill at %s cannot be served: %s", p.URI, s.errorText(err))
	}
	if entry.URI != p.URI {
		return nil, rpcmessage.InvalidParams("no skill is served at %s", p.URI)
	}
	res := &getSkillResult{ResultType: "complete", Skill: entry, cacheable: cacheFields(ss, p.GetMeta())}
	if res.TTLMs != nil {
		*res.TTLMs = 0
	}
	return res, nil
}

// entryCache caches rendered frontmatter by the hash of SKILL.md.
type entryCache struct {
	mu          sync.Mutex
	frontmatter map[string]json.RawMessage
}

const maxFrontmatters = 20_000

// entry returns the current entry of a skill. The resources and the frontmatter
// in it are from the same version of SKILL.md.
func (s *Server) entry(ctx context.Context, v *view, e *catalog.Entry) (*skillEntry, error) {
	for tries := 1; ; tries++ {
		out, err := s.entryNow(ctx, v, e)
		if !errors.Is(err, errSkillChanging) || tries == 3 {
			return out, err
		}
	}
}

// errSkillChanging is returned if SKILL.md changed between two reads.
var errSkillChanging = errors.New("SKILL.md changed while being read")

func (s *Server) entryNow(ctx context.Context, v *view, e *catalog.Entry) (*skillEntry, error) {
	files, err := s.rt.Catalog().ListFiles(ctx, e) // does not read the files
	if err != nil {
		return nil, err
	}
	if err := checkPortable(files); err != nil {
		return nil, err
	}
	m, err := s.rt.Catalog().Manifest(ctx, e)
	if err != nil {
		return nil, err
	}
	if err := checkPortable(m); err != nil {
		return nil, err
	}
	root := v.uriOf(e)
	out := &skillEntry{URI: root + "/" + skill.FileName, Resources: make([]skillResource, 0, len(m))}
	md := -1
	for i, f := range m {
		if f.Path == skill.FileName {
			md = i
		}
		out.Resources = append(out.Resources, skillResource{root + "/" + escapePath(f.Path), "sha256:" + f.SHA256, f.Size})
	}
	if md < 0 {
		return nil, fmt.Errorf("no file named exactly %s", skill.FileName)
	}
	out.Frontmatter, err = s.frontmatter(ctx, e, m[md].SHA256)
	return out, err
}

// checkPortable returns an error if the skill exceeds the limits that every
// host must accept.
func checkPortable(m skill.Manifest) error {
	if len(m) > skillfile.PortableFiles || m.Size() > skillfile.PortableBytes {
		return fmt.Errorf("skill too large to serve: %d files, %d bytes (limits %d and %d)", len(m), m.Size(), skillfile.PortableFiles, skillfile.PortableBytes)
	}
	return nil
}

func (s *Server) frontmatter(ctx context.Context, e *catalog.Entry, sum string) (json.RawMessage, error) {
	c := &s.entries
	c.mu.Lock()
	js, ok := c.frontmatter[sum]
	c.mu.Unlock()
	if ok {
		return js, nil
	}
	sk, src, err := s.rt.Catalog().Read(ctx, e)
	if err != nil {
		return nil, err
	}
	if skillfile.Hash(src) != sum {
		return nil, errSkillChanging
	}
	if js, err = sk.FrontmatterJSON(); err != nil {
		return nil, err
	}
	js = untrusted.CleanJSON(js)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frontmatter == nil || len(c.frontmatter) >= maxFrontmatters {
		c.frontmatter = map[string]json.RawMessage{}
	}
	c.frontmatter[sum] = js
	return js, nil
}

// readResource handles resources/read for skill:// URIs.
func readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return serverOf(ctx).readResource(ctx, req)
}

func (s *Server) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	e, inside, ok := s.view().find(uri)
	if !ok || inside == "" {
		return nil, rpcmessage.InvalidParams("no file of a skill is served at %s", uri)
	}
	b, err := s.rt.Catalog().Open(ctx, e)
	if err != nil {
		return nil, rpcmessage.InvalidParams("%s cannot be read: %s", uri, s.errorText(err))
	}
	defer b.Close()
	data, err := readWhole(b.FS, inside)
	if err != nil {
		return nil, rpcmessage.InvalidParams("%s is not served: %v", uri, err)
	}
	c := &mcp.ResourceContents{URI: uri, MIMEType: resourceType(inside, data)}
	if filetype.IsText(data) {
		c.Text = string(data)
	} else {
		c.Blob = data
	}
	if filetype.IsTextFile(inside, data) { // a client may decode a blob
		warning, err := s.rt.CheckText(ctx, e, inside, string(data))
		if refused, ok := errors.AsType[*loadout.RefusedError](err); ok {
			s.reportRefusal(useFile, e)
			return nil, rpcmessage.InvalidParams("%s", s.refusalText(refused))
		}
		if warning != "" { // the text must match the digest in skills/list
			c.Meta = mcp.Meta{"dev.loadout/warning": warning}
		}
	}
	kind := useFile
	if skillpath.IsSkillFile(inside) {
		kind = useLoad
	}
	s.reportFile(e, kind, c.Text)
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
}

// readWhole reads a file. It returns an error if the file exceeds
// skillfile.PortableBytes.
func readWhole(fsys fs.FS, name string) ([]byte, error) {
	if !fs.ValidPath(name) || slices.ContainsFunc(strings.Split(name, "/"), skillpath.IsIgnored) {
		return nil, errors.New("no such file")
	}
	// Stat first: opening a pipe would wait for a writer.
	fi, err := fs.Stat(fsys, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("no such file")
	case err != nil:
		return nil, errUnreadable
	case fi.IsDir():
		return nil, errors.New("is a directory")
	case !fi.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case fi.Size() > skillfile.PortableBytes:
		return nil, fmt.Errorf("file too large (%d bytes, limit %d)", fi.Size(), skillfile.PortableBytes)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, errUnreadable
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, skillfile.PortableBytes+1))
	switch {
	case err != nil:
		return nil, errUnreadable
	case len(data) > skillfile.PortableBytes:
		return nil, fmt.Errorf("file too large (limit %d bytes)", skillfile.PortableBytes)
	}
	return data, nil
}

// errUnreadable replaces system errors, which contain local paths.
var errUnreadable = errors.New("not a readable file inside the skill")

func resourceType(name string, data []byte) string {
	if t := filetype.ByName(name); t != "" {
		return t
	}
	if filetype.IsText(data) {
		return "text/plain"
	}
	return "application/octet-stream"
}

// readDirectory lists the immediate children of a directory in a skill.
func (s *Server) readDirectory(ctx context.Context, _ *mcp.ServerSession, p *uriParams) (*readDirectoryResult, error) {
	if p == nil || p.URI == "" {
		return nil, rpcmessage.InvalidParams("resources/directory/read needs the uri of a directory")
	}
	at, err := decodeCursor(p.Cursor)
	if err != nil {
		return nil, rpcmessage.InvalidParams("%v", err)
	}
	children, err := s.children(ctx, p.URI)
	if err != nil {
		return nil, err
	}
	res := &readDirectoryResult{ResultType: "complete", Resources: children[min(at, len(children)):]}
	if len(res.Resources) > dirPageSize {
		res.Resources, res.NextCursor = res.Resources[:dirPageSize], encodeCursor(at+dirPageSize)
	}
	return res, nil
}

func (s *Server) children(ctx context.Context, uri string) ([]*mcp.Resource, error) {
	v := s.view()
	e, inside, ok := v.find(uri)
	if !ok {
		return nil, rpcmessage.InvalidParams("%s is not a directory resource", uri)
	}
	b, err := s.rt.Catalog().Open(ctx, e)
	if err != nil {
		return nil, rpcmessage.InvalidParams("%s cannot be read: %s", uri, s.errorText(err))
	}
	defer b.Close()
	files, _, err := skill.List(b.FS)
	if err != nil {
		return nil, rpcmessage.InvalidParams("%s cannot be read: %s", uri, s.errorText(err))
	}
	root := v.uriOf(e) + "/"
	if inside != "" {
		inside += "/"
	}
	out := []*mcp.Resource{}
	seen := map[string]bool{}
	for _, f := range files {
		rest, ok := strings.CutPrefix(f.Path, inside)
		if !ok {
			continue
		}
		name, _, deeper := strings.Cut(rest, "/")
		if seen[name] {
			continue
		}
		seen[name] = true
		child := &mcp.Resource{URI: root + escapePath(inside+name), Name: name, MIMEType: "inode/directory"}
		if !deeper {
			child.MIMEType, child.Size = resourceType(path.Base(f.Path), nil), f.Size
		}
		out = append(out, child)
	}
	if len(out) == 0 && inside != "" {
		return nil, rpcmessage.InvalidParams("%s is not a directory resource", uri)
	}
	return out, nil
}
