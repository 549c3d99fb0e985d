package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// Server is an MCP server whose variables are unresolved. Unless it is an operator
// server, its configuration has an Owner: the server then sees no environment
// variables, its command runs in the sandbox, and it can connect only to public
// addresses.
type Server struct {
	*upstream.Config
	// Kind, ID and In describe the resource that defines the server. They are empty
	// for operator servers.
	Kind, ID string
	In       store.Namespace
	// By is the user who last changed the definition.
	By string
	// Review is the review state, with Reviewer and Note. It is "" if no review is
	// needed because the server has a URL or is an operator server.
	Review         store.Review
	Reviewer, Note string
}

// NeedsSandbox reports whether the server has a command that must run in the
// sandbox.
func (s Server) NeedsSandbox() bool { return s.Owner != "" && s.Command != "" }

// Usable reports whether the server is approved or needs no review.
func (s Server) Usable() bool { return s.Review == "" || s.Review == store.Approved }

// PolicyDigest returns the digest that reviews and grants refer to.
func (s Server) PolicyDigest() policy.Digest { return policy.Digest(s.Digest()) }

// SkillServers lists the servers that a skill defines, and the names of the other
// servers it uses.
type SkillServers struct {
	Skill   string
	Defined []Server
	Names   []string
}

// ServerLayers groups servers by where they are defined.
type ServerLayers struct {
	Global, Ghost, Bot []Server
	Skills             []SkillServers
}

// ResolveServers merges the layers and sorts the servers by name. A Bot's server
// replaces its Ghost's server with the same name, and both replace a global one. A
// server defined by a skill is named SKILL_SERVER and replaces no other server.
// problems describes omitted servers.
func ResolveServers(l ServerLayers) (servers []Server, problems []string) {
	taken := map[string]bool{}
	for _, layer := range [][]Server{l.Bot, l.Ghost, l.Global} {
		for _, s := range layer {
			if !taken[s.Name] && !s.Disabled {
				servers = append(servers, s)
			}
			taken[s.Name] = true // disabled servers also hide others
		}
	}
	for _, b := range l.Skills {
		for _, name := range b.Names {
			if !slices.ContainsFunc(servers, func(s Server) bool { return s.Name == name }) {
				problems = append(problems, fmt.Sprintf("skill %s: MCP server %s not found", b.Skill, name))
			}
		}
	}
	for _, b := range l.Skills {
		for _, s := range b.Defined {
			c := *s.Config
			c.Name = b.Skill + "_" + s.Name
			if taken[c.Name] {
				problems = append(problems, fmt.Sprintf("skill %s: MCP server %s omitted: the name exists already", b.Skill, c.Name))
				continue
			}
			taken[c.Name] = true
			if s.Config = &c; !c.Disabled {
				servers = append(servers, s)
			}
		}
	}
	slices.SortStableFunc(servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return servers, problems
}

func (a actor) definedServers(ctx context.Context, res *Resource) ([]Server, error) {
	var configs []*upstream.Config
	var err error
	switch spec := res.Spec.(type) {
	case *MCPServer:
		var c *upstream.Config
		if c, err = spec.parseConfig(res.Name); err == nil {
			c.Description = cmp.Or(c.Description, res.Description)
			configs = []*upstream.Config{c}
		}
	default:
		if have := findSelection(spec); have != nil {
			configs, _, err = have.parseServers()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("parse servers of %s %q: %w: %w", res.Kind, res.Name, store.ErrCorrupt, err)
	}
	var out []Server
	for _, c := range configs {
		// The ID prevents an approval from applying to a new resource with the
		// same name.
		c.Owner = upstream.Owner(fmt.Sprintf("%s %s (%s)", res.Kind, res.Name, res.ID))
		s := Server{Config: c, Kind: res.Kind, ID: res.ID, In: res.In, By: res.ServersBy}
		if c.Command != "" {
			said, err := a.getReview(ctx, s.PolicyDigest())
			if err != nil {
				return nil, err
			}
			s.Review, s.Reviewer, s.Note = said.Decision, said.By, said.Note
		}
		out = append(out, s)
	}
	if strings.HasPrefix(res.ID, trialPrefix) {
		return a.withSavedServers(ctx, res, out)
	}
	return out, nil
}

// reviewPrincipal is the principal of stored reviews, which apply to all users.
const reviewPrincipal = "review:servers"

// storedReview is a review as stored in the data of a grant.
type storedReview struct {
	Decision store.Review `json:"decision"`
	By       string       `json:"by"`
	Note     string       `json:"note,omitempty"`
}

// getReview returns the review of the server command with the given digest.
func (a actor) getReview(ctx context.Context, d policy.Digest) (storedReview, error) {
	found, err := a.Grants.Find(ctx, reviewPrincipal, string(d), "", time.Now())
	if err != nil || len(found) == 0 {
		return storedReview{Decision: store.Pending}, err
	}
	var v storedReview
	if err := json.Unmarshal(found[0].Data, &v); err != nil {
		return v, fmt.Errorf("decode review of %s: %w: %w", d.Short(), store.ErrCorrupt, err)
	}
	return v, nil
}

// MaxNote is the maximum size of a reviewer's note, in bytes.
const MaxNote = 4 << 10

// ReviewServer stores a review of a server's command. It returns
// [store.ErrConflict] unless digest is the current digest. The principal must be
// allowed to review skills in the namespace and must not be the user who last
// changed the server.
func (r *Registry) ReviewServer(ctx context.Context, p account.Principal, subject Subject, digest policy.Digest, decision store.Review, note string) error {
	if !slices.Contains([]store.Review{store.Pending, store.Approved, store.Rejected}, decision) || len(note) > MaxNote {
		return fmt.Errorf("review %s: %w", subject, store.ErrInvalid)
	}
	err := r.db.Tx(ctx, func(tx *store.Tx) error {
		a := actor{Tables: tx.Tables, p: p}
		s, err := a.withReadScope().getServer(ctx, subject)
		if err != nil {
			return err
		}
		if err := a.checkAccess(account.SkillReview, accountResource(s.In, s.By), subject.Kind, subject.Name); err != nil {
			return err
		}
		if s.PolicyDigest() != digest {
			return fmt.Errorf("review %s: %w: digest is now %s", subject, store.ErrConflict, s.PolicyDigest().Short())
		}
		data, err := plainjson.Line(storedReview{decision, string(p.User), note})
		if err != nil {
			return err
		}
		err = a.Grants.Put(ctx, store.Grant{ID: reviewPrincipal + ":" + string(digest), Principal: reviewPrincipal, Subject: string(digest), Name: subject.String(), Data: data})
		if err != nil {
			return err
		}
		return a.recordAllowed(ctx, account.SkillReview, s.In, subject.String(), map[string]any{"digest": digest, "review": decision})
	})
	return r.recordDenied(ctx, p, account.SkillReview, subject.String(), err)
}

// getServer returns the server that a subject identifies.
func (a actor) getServer(ctx context.Context, subject Subject) (Server, error) {
	k, err := a.getKind(ctx, account.KindRead, subject.Kind, subject.Namespace, subject.Name)
	if err != nil {
		return Server{}, err
	}
	res, err := a.decodeResource(ctx, k)
	if err != nil {
		return Server{}, err
	}
	all, err := a.definedServers(ctx, res)
	if err != nil {
		return Server{}, err
	}
	for _, s := range all {
		if s.Name == subject.Server || subject.Kind == ServerKind {
			return s, nil
		}
	}
	return Server{}, fmt.Errorf("MCP server %q of %s %q: %w", subject.Server, subject.Kind, subject.Name, store.ErrNotFound)
}

// DefinedServers returns the servers that a resource defines, with their reviews.
func (r *Registry) DefinedServers(ctx context.Context, p account.Principal, kind, namespace, name string) ([]Server, error) {
	a := r.newActor(p)
	k, err := a.getKind(ctx, account.KindRead, kind, namespace, name)
	if err != nil {
		return nil, err
	}
	res, err := a.decodeResource(ctx, k)
	if err != nil {
		return nil, err
	}
	return a.definedServers(ctx, res)
}

// MaxGlobal is the maximum number of global servers per namespace.
const MaxGlobal = 500

// listGlobalServers returns the servers available to documents in home: the
// operator's, and for each name the MCPServer in the namespace that takes
// precedence.
func (r *Registry) listGlobalServers(ctx context.Context, a actor, home store.Namespace) ([]Server, []string, error) {
	near, err := a.nearestKinds(ctx, ServerKind, a.lookupNamespaces(home), MaxGlobal+1)
	if err != nil {
		return nil, nil, err
	}
	var out []Server
	var problems []string
	for _, name := range sortedKeys(near) {
		res, err := a.decodeResource(ctx, near[name])
		var defined []Server
		if err == nil {
			defined, err = a.definedServers(ctx, res)
		}
		if errors.Is(err, store.ErrCorrupt) { // does not affect others
			problems = append(problems, err.Error())
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		out = append(out, defined...)
	}
	for _, c := range r.opts.Servers {
		if _, taken := near[c.Name]; !taken {
			out = append(out, Server{Config: c})
		}
	}
	if len(out) > MaxGlobal {
		problems = append(problems, fmt.Sprintf("too many MCP servers (limit %d); the rest is omitted", MaxGlobal))
		out = out[:MaxGlobal]
	}
	return out, problems, nil
}

// nearestKinds returns up to limit resources of a kind that the actor may use.
// If several namespaces have a resource with the same name, it returns the one
// in the first of these namespaces.
func (a actor) nearestKinds(ctx context.Context, kind string, in []store.Namespace, limit int) (map[string]store.Kind, error) {
	rank := map[store.Namespace]int{}
	for i, n := range in {
		rank[n] = i
	}
	out := map[string]store.Kind{}
	for page := (store.Page{Limit: store.MaxPage}); ; {
		rows, next, err := a.Kinds.List(ctx, kind, in, page)
		if err != nil {
			return nil, err
		}
		for _, k := range rows { // by name
			have, there := out[k.Name]
			switch {
			case !account.Can(a.p, account.KindUse, accountResource(k.Namespace, k.CreatedBy)):
			case !there && len(out) == limit:
				return out, nil
			case !there || rank[k.Namespace] < rank[have.Namespace]:
				out[k.Name] = k
			}
		}
		if next == "" {
			return out, nil
		}
		page.After = next
	}
}
