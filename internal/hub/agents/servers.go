package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// Server is an MCP server, its variables not resolved, and whose it is. What is not
// the operator's has an Owner in its configuration, so that it sees no environment,
// its command runs in the sandbox, and it reaches public addresses only.
type Server struct {
	*upstream.Config
	// Kind and ID are of what defines it, "" where that is the operator's own file, and
	// In is the namespace of that.
	Kind, ID string
	In       store.Namespace
	// By is who applied it as it is now.
	By string
	// Review is what a person said of its digest, "" where nobody has to: it is
	// reached by a URL, or the operator's own. Reviewer is who said it, with a note.
	Review         store.Review
	Reviewer, Note string
}

// NeedsSandbox reports whether its command, where it has one, has to run in the sandbox.
func (s Server) NeedsSandbox() bool { return s.Owner != "" && s.Command != "" }

// Usable reports whether it may be connected: nobody has to review it, or somebody has
// approved it.
func (s Server) Usable() bool { return s.Review == "" || s.Review == store.Approved }

// PolicyDigest is its digest: what is approved, and what secrets are granted to.
func (s Server) PolicyDigest() policy.Digest { return policy.Digest(s.Digest()) }

// SkillServers is the servers that one skill has: those that it defines, and the names of
// others.
type SkillServers struct {
	Skill   string
	Defined []Server
	Names   []string
}

// ServerLayers are servers by what defines them.
type ServerLayers struct {
	Global, Ghost, Bot []Server
	Skills             []SkillServers
}

// ResolveServers decides which servers there are: of one name, a Bot's is before its Ghost's,
// and that before a global one. A skill's are called SKILL_SERVER, so that they take
// the place of none; the names in it are those of the others. What is left out is said
// in the problems. Their order does not depend on that of the layers.
func ResolveServers(l ServerLayers) (servers []Server, problems []string) {
	taken := map[string]bool{}
	for _, layer := range [][]Server{l.Bot, l.Ghost, l.Global} {
		for _, s := range layer {
			if !taken[s.Name] && !s.Disabled {
				servers = append(servers, s)
			}
			taken[s.Name] = true // also by one that is switched off
		}
	}
	for _, b := range l.Skills {
		for _, name := range b.Names {
			if !slices.ContainsFunc(servers, func(s Server) bool { return s.Name == name }) {
				problems = append(problems, fmt.Sprintf("skill %s: there is no MCP server %s", b.Skill, name))
			}
		}
	}
	for _, b := range l.Skills {
		for _, s := range b.Defined {
			c := *s.Config
			c.Name = b.Skill + "_" + s.Name
			if taken[c.Name] {
				problems = append(problems, fmt.Sprintf("skill %s: its MCP server %s is left out: there is one of that name", b.Skill, c.Name))
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

// definedServers are the servers that a row defines.
func (a actor) definedServers(ctx context.Context, res *Resource) ([]Server, error) {
	var configs []*upstream.Config
	var err error
	switch spec := res.Spec.(type) {
	case *MCPServer:
		var c *upstream.Config
		if c, err = spec.parseConfig(res.Name); err == nil {
			configs = []*upstream.Config{c}
		}
	default:
		if have := selectionOf(spec); have != nil {
			configs, _, err = have.parseServers()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w: %w", res.Kind, res.Name, store.ErrCorrupt, err)
	}
	var out []Server
	for _, c := range configs {
		// By the id: what is made again under a name is another one, and was not approved.
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
	return out, nil
}

// reviewPrincipal is for whom reviews are kept: not one principal, but all.
const reviewPrincipal = "review:servers"

type storedReview struct {
	Decision store.Review `json:"decision"`
	By       string       `json:"by"`
	Note     string       `json:"note,omitempty"`
}

// getReview is what was said of a digest.
func (a actor) getReview(ctx context.Context, d policy.Digest) (storedReview, error) {
	found, err := a.Grants.Find(ctx, reviewPrincipal, string(d), "", time.Now())
	if err != nil || len(found) == 0 {
		return storedReview{Decision: store.Pending}, err
	}
	var v storedReview
	if err := json.Unmarshal(found[0].Data, &v); err != nil {
		return v, fmt.Errorf("review of %s: %w: %w", d.Short(), store.ErrCorrupt, err)
	}
	return v, nil
}

// MaxNote bounds the words of a reviewer, in bytes.
const MaxNote = 4 << 10

// ReviewServer keeps what a person decided about the command of a server, as it is now: it
// has to be of the digest that was looked at, or nothing is kept and the error is a
// [store.ErrConflict]. Who may is who may review skills of the namespace, but not who
// applied it.
func (r *Registry) ReviewServer(ctx context.Context, p account.Principal, of Subject, digest policy.Digest, decision store.Review, note string) error {
	if !slices.Contains([]store.Review{store.Pending, store.Approved, store.Rejected}, decision) || len(note) > MaxNote {
		return fmt.Errorf("review of %s: %w", of, store.ErrInvalid)
	}
	err := r.db.Tx(ctx, func(tx *store.Tx) error {
		a := actor{tx.Tables, p}
		s, err := a.withReadScope().getServer(ctx, of)
		if err != nil {
			return err
		}
		if err := a.checkAccess(account.SkillReview, resourceOf(s.In, s.By), of.Kind, of.Name); err != nil {
			return err
		}
		if s.PolicyDigest() != digest {
			return fmt.Errorf("review of %s: %w: it is %s now", of, store.ErrConflict, s.PolicyDigest().Short())
		}
		data, err := encodeJSON(storedReview{decision, string(p.User), note})
		if err != nil {
			return err
		}
		err = a.Grants.Put(ctx, store.Grant{ID: reviewPrincipal + ":" + string(digest), Principal: reviewPrincipal, Subject: string(digest), Name: of.String(), Data: data})
		if err != nil {
			return err
		}
		return a.recordAllowed(ctx, account.SkillReview, s.In, of.String(), map[string]any{"digest": digest, "review": decision})
	})
	return r.recordDenied(ctx, p, account.SkillReview, of.String(), err)
}

// getServer is the server that a subject names.
func (a actor) getServer(ctx context.Context, of Subject) (Server, error) {
	k, err := a.getKind(ctx, account.KindRead, of.Kind, of.Namespace, of.Name)
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
		if s.Name == of.Server || of.Kind == ServerKind {
			return s, nil
		}
	}
	return Server{}, fmt.Errorf("MCP server %q of %s %q: %w", of.Server, of.Kind, of.Name, store.ErrNotFound)
}

// DefinedServers returns the servers that a thing defines, with what was decided about them.
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

// MaxGlobal bounds the servers that are not of one Ghost or Bot.
const MaxGlobal = 500

// listGlobalServers are the servers that everybody has who is around a namespace: those of the
// operator, and the MCPServers that are there, the nearest of each name.
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
		if errors.Is(err, store.ErrCorrupt) { // takes no other down
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
		problems = append(problems, fmt.Sprintf("there are more than %d MCP servers: the rest is left out", MaxGlobal))
		out = out[:MaxGlobal]
	}
	return out, problems, nil
}

// nearestKinds are the things of a kind that the actor may use in namespaces, of each name
// the one of the first of these that has it: at most so many.
func (a actor) nearestKinds(ctx context.Context, kind string, in []store.Namespace, most int) (map[string]store.Kind, error) {
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
			case !account.Can(a.p, account.KindUse, resourceOf(k.Namespace, k.CreatedBy)):
			case !there && len(out) == most:
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
