package agents

import (
	"context"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/store"
)

// trialPrefix is the prefix of the IDs of documents that are not saved.
const trialPrefix = "trial:"

// MaxTrialDocuments is the maximum number of documents of an agent that is tried.
const MaxTrialDocuments = 2*MaxMembers + 3

// trialDocuments holds documents that are not saved, in the form of saved ones.
type trialDocuments []store.Kind

// byID returns the document with the given ID.
func (t trialDocuments) byID(id string) (store.Kind, bool) {
	i := slices.IndexFunc(t, func(k store.Kind) bool { return k.ID == id })
	if i < 0 {
		return store.Kind{}, false
	}
	return t[i], true
}

// replace returns the resources of a name, in the order of the namespaces in which it
// is looked up. Saved resources are replaced by the documents of their namespace.
func (t trialDocuments) replace(saved []store.Kind, kind, name string, in []store.Namespace) []store.Kind {
	if len(t) == 0 {
		return saved
	}
	var out []store.Kind
	for _, n := range in {
		i := slices.IndexFunc(t, func(k store.Kind) bool { return k.Kind == kind && k.Name == name && k.Namespace == n })
		if i >= 0 {
			out = append(out, t[i])
			continue
		}
		for _, k := range saved {
			if k.Namespace == n {
				out = append(out, k)
			}
		}
	}
	return out
}

// TrialProfile is like [Registry.Profile], for an agent whose documents are not
// saved. The principal must be allowed to save each document, and documents that do
// not parse are refused. References resolve to the documents first, then to saved
// resources. Servers with the same configuration as in the saved document of that
// name use its secrets, reviews and sign-ins. Other servers have none, so their
// commands do not run.
func (r *Registry) TrialProfile(ctx context.Context, p account.Principal, documents []byte, kind, namespace, name string) (*Profile, error) {
	a := r.newActor(p)
	trial, err := a.readTrial(ctx, Parse(documents, "documents.yaml"))
	if err != nil {
		return nil, err
	}
	a.trial = trial
	in, err := a.resolveNamespace(ctx, namespace)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(trial, func(k store.Kind) bool { return k.Kind == kind && k.Namespace == in && k.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%s %q: %w in the given documents", shorten(kind), shorten(name), store.ErrNotFound)
	}
	out, err := r.readConsistent(ctx, func() (*Profile, error) {
		if kind == TeamKind {
			return r.teamProfile(ctx, a, trial[i])
		}
		return r.buildProfile(ctx, a, trial[i], "")
	})
	if err == nil {
		out.trial = trial
	}
	return out, err
}

// readTrial converts documents to the form of saved ones.
func (a actor) readTrial(ctx context.Context, docs []*Document) (trialDocuments, error) {
	if len(docs) > MaxTrialDocuments {
		return nil, fmt.Errorf("try an agent: %w: %d documents, limit %d", store.ErrTooMany, len(docs), MaxTrialDocuments)
	}
	var out trialDocuments
	for _, d := range docs {
		if !slices.Contains([]string{GhostKind, BotKind, TeamKind}, d.Kind) || d.Spec == nil || !d.Findings.Loads() {
			return nil, fmt.Errorf("try an agent: %w: %s %q is not a valid Ghost, Bot or Team", store.ErrInvalid, shorten(d.Kind), shorten(d.Name))
		}
		in, err := a.resolveNamespace(ctx, d.Namespace)
		if err != nil {
			return nil, err
		}
		if err := a.checkAccess(account.KindApply, accountResource(in, string(a.p.User)), d.Kind, d.Name); err != nil {
			return nil, err
		}
		spec, err := plainjson.Line(d.Spec)
		if err != nil {
			return nil, err
		}
		raw, err := plainjson.Line(storedDocument{Description: d.Description, By: string(a.p.User), ServersBy: string(a.p.User), Spec: spec})
		if err != nil {
			return nil, err
		}
		id := fmt.Sprintf("%s%s/%s/%s", trialPrefix, d.Kind, in, d.Name)
		out = append(out, store.Kind{ID: id, Kind: d.Kind, Namespace: in, Name: d.Name, Spec: raw, Generation: 1, CreatedBy: string(a.p.User)})
	}
	return out, nil
}

// withSavedServers returns the servers of a document that is not saved. Servers that
// have the same configuration in the saved document of that name are replaced with
// the saved ones.
func (a actor) withSavedServers(ctx context.Context, tried *Resource, servers []Server) ([]Server, error) {
	k, err := a.Kinds.ByName(ctx, tried.Kind, tried.In, tried.Name)
	if err != nil {
		return servers, ignoreNotFound(err)
	}
	res, err := a.decodeResource(ctx, k)
	if err != nil {
		return nil, err
	}
	saved, err := a.definedServers(ctx, res)
	for i, s := range servers {
		config := *s.Config
		for _, other := range saved {
			if config.Owner = other.Owner; config.Digest() == other.Digest() {
				servers[i] = other
			}
		}
	}
	return servers, err
}
