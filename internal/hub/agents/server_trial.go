package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

// ServerDefinition is a server with the name of the resource that defines it.
// Namespace and Resource are empty for operator servers.
type ServerDefinition struct {
	Server
	Namespace, Resource string
}

// serverKinds lists the kinds that define servers, in the order of
// [Registry.ListServers].
var serverKinds = []string{ServerKind, GhostKind, BotKind}

// maxEmptyPages is the maximum number of pages without servers that ListServers
// skips per call.
const maxEmptyPages = 100

// ListServers returns the visible servers and the cursor of the next page. It
// lists operator servers first, then those defined by MCPServers, Ghosts and Bots.
// The page size counts resources, each of which may define several servers.
// ListServers omits damaged resources.
func (r *Registry) ListServers(ctx context.Context, p account.Principal, page store.Page) ([]ServerDefinition, string, error) {
	a := r.newActor(p)
	if err := account.Check(p, account.KindRead, account.Resource{Shared: true}); err != nil {
		return nil, "", err
	}
	kind, after, more := strings.Cut(page.After, "/")
	var out []ServerDefinition
	if !more {
		for _, c := range r.opts.Servers {
			out = append(out, ServerDefinition{Server: Server{Config: c}})
		}
		kind = serverKinds[0]
	}
	at := slices.Index(serverKinds, kind)
	if at < 0 {
		return nil, "", fmt.Errorf("list servers after %.100q: %w", page.After, store.ErrInvalid)
	}
	for looked := 1; ; looked++ {
		servers, next, err := a.listDefinitions(ctx, kind, store.Page{After: after, Limit: page.Limit})
		out = append(out, servers...)
		switch {
		case err != nil:
			return nil, "", err
		case next != "":
			next = kind + "/" + next
		case at+1 < len(serverKinds):
			next = serverKinds[at+1] + "/"
		}
		if next == "" || len(out) > 0 || looked == maxEmptyPages {
			return out, next, nil
		}
		kind, after, _ = strings.Cut(next, "/")
		at = slices.Index(serverKinds, kind)
	}
}

// listDefinitions returns the servers defined by a page of resources.
func (a actor) listDefinitions(ctx context.Context, kind string, page store.Page) (out []ServerDefinition, next string, err error) {
	found, next, err := a.Kinds.List(ctx, kind, a.visibleNamespaces(), page)
	if err != nil {
		return nil, "", err
	}
	for _, k := range found {
		res, err := a.decodeResource(ctx, k)
		var servers []Server
		if err == nil {
			servers, err = a.definedServers(ctx, res)
		}
		if err != nil && !isCorrupt(err) {
			return nil, "", err
		}
		for _, s := range servers {
			out = append(out, ServerDefinition{s, res.Namespace, res.Name})
		}
	}
	return out, next, nil
}

// ServerForTest returns a server and its variables for a connection test. The
// principal must be allowed to change the definition. If the subject has no kind,
// it names an operator server. The server may still be awaiting review.
func (r *Registry) ServerForTest(ctx context.Context, p account.Principal, subject Subject) (Server, upstream.Variables, error) {
	a := r.newActor(p)
	s, err := r.serverToTest(ctx, a, subject)
	if err != nil || !account.Can(p, account.KindUse, accountResource(s.In, "")) && s.ID != "" {
		return s, upstream.Variables{}, err // without the right to use the server, return no values
	}
	v, err := r.Secrets().ServerVariables(ctx, p, s, "")
	return s, v, err
}

func (r *Registry) serverToTest(ctx context.Context, a actor, subject Subject) (Server, error) {
	if subject.Kind != "" {
		s, err := a.withReadScope().getServer(ctx, subject)
		if err == nil {
			err = a.checkAccess(applyAction(subject.Kind), accountResource(s.In, ""), subject.Kind, subject.Name)
		}
		return s, err
	}
	return r.operatorServer(a, subject.Server)
}

// ParseServerDraft parses an unsaved server as if it were applied to the
// principal's own namespace. It returns the server or its problems. Variables in
// the server are not resolved, and a server that runs a command is awaiting review.
func (r *Registry) ParseServerDraft(p account.Principal, name string, config json.RawMessage) (Server, skill.Diagnostics, error) {
	own := store.UserNamespace(string(p.User))
	if err := account.Check(p, account.ServerApply, accountResource(own, "")); err != nil {
		return Server{}, nil, err
	}
	text, err := plainjson.Line(map[string]any{"apiVersion": APIVersion, "kind": ServerKind, "metadata": map[string]string{"name": name}, "spec": config})
	if err != nil {
		return Server{}, nil, fmt.Errorf("%w: %w", store.ErrInvalid, err)
	}
	d := Parse(text, "config.json")[0]
	for _, u := range documentURLs(d) {
		if why := r.nonPublicReason(u); why != "" {
			d.Findings = append(d.Findings, skill.Diagnostic{Severity: skill.Error, Code: "address-private",
				Message: "the address is not public (" + why + ")", Fix: "ask the operator of the hub to allow the address, or use another one"})
		}
	}
	spec, ok := d.Spec.(*MCPServer)
	if !ok || !d.Findings.Loads() {
		return Server{}, d.Findings, nil
	}
	c, err := spec.parseConfig(name)
	if err != nil {
		return Server{}, nil, fmt.Errorf("%w: %w", store.ErrInvalid, err)
	}
	c.Owner = "an unsaved server"
	s := Server{Config: c, In: own, By: string(p.User)}
	if c.Command != "" {
		s.Review = store.Pending
	}
	return s, d.Findings, nil
}
