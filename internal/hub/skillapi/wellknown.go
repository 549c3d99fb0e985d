package skillapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/store"
)

const (
	indexPath   = "/.well-known/agent-skills/index.json"
	indexSchema = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
	// maxIndexed limits the skills of an index, because readers limit its size.
	maxIndexed = 2000
	// maxPacked limits the package digests that a node caches.
	maxPacked = 20_000
)

// indexJSON is an index of skills in version 0.2.0 of the format.
type indexJSON struct {
	Schema  string        `json:"$schema"`
	Skills  []indexedJSON `json:"skills" nullable:"false"`
	Omitted int           `json:"omitted,omitempty" doc:"How many skills there are besides, which an index has no room for"`
}

// indexedJSON is a skill that can be downloaded.
type indexedJSON struct {
	Name        string `json:"name"`
	Type        string `json:"type" enum:"archive"`
	Description string `json:"description"`
	URL         string `json:"url" doc:"Of the archive, on this hub"`
	Digest      string `json:"digest" doc:"Of the archive"`
}

// addSkillIndex adds the index of skills, through which programs install skills of
// the hub like those of any site. It requires authentication and lists the
// skills that the user may download.
func (h *Handlers) addSkillIndex() {
	op := api.Operation("get-skill-index", "GET", "/skills", "The skills that you may download, as sites publish theirs")
	op.Path = indexPath
	api.Add(h.Server, op, newSkillIndex(h.Library).get)
}

// skillIndex creates indexes. It caches the digests of packages, because
// computing one reads all files of a skill and the result never changes. It is
// safe for concurrent use.
type skillIndex struct {
	library *library.Library
	turn    chan struct{} // held while a package is read; one at a time is enough

	mu    sync.Mutex
	known map[string]string // by the digest of the files and the name
}

func newSkillIndex(l *library.Library) *skillIndex {
	return &skillIndex{library: l, turn: make(chan struct{}, 1), known: map[string]string{}}
}

func (x *skillIndex) get(ctx context.Context, _ *api.NoBody) (*api.Body[indexJSON], error) {
	p := account.FromContext(ctx)
	in, err := downloadNamespaces(p)
	if err != nil {
		return nil, err
	}
	out := indexJSON{Schema: indexSchema, Skills: []indexedJSON{}}
	q := library.Query{In: in, Page: store.Page{Limit: store.MaxPage}}
	for {
		skills, next, err := x.library.List(ctx, p, q)
		if err != nil {
			return nil, err
		}
		for _, s := range skills {
			if err := x.add(ctx, p, s, &out); err != nil {
				return nil, err
			}
		}
		if q.After = next; next == "" {
			return api.BodyOf(out, nil)
		}
	}
}

// downloadNamespaces returns the namespaces whose skills a principal may download,
// nearest first.
func downloadNamespaces(p account.Principal) ([]store.Namespace, error) {
	var may []store.Namespace
	take := func(n store.Namespace, r account.Resource) {
		if account.Can(p, account.SkillDownload, r) {
			may = append(may, n)
		}
	}
	take(store.UserNamespace(string(p.User)), account.OwnedBy(p.User))
	for i, g := range slices.Sorted(maps.Keys(p.Groups)) {
		if i == store.MaxNamespaces-2 {
			break // the newest, as everywhere
		}
		take(store.GroupNamespace(string(g)), account.OwnedByGroup(g, ""))
	}
	take(store.Public, account.Resource{Shared: true})
	if len(may) == 0 {
		return nil, account.Check(p, account.SkillDownload, account.OwnedBy(p.User))
	}
	return may, nil
}

// add adds a skill to an index, unless its name is invalid there.
func (x *skillIndex) add(ctx context.Context, p account.Principal, s *library.Skill, out *indexJSON) error {
	if !skillname.IsPortable(s.Name) {
		return nil
	}
	if len(out.Skills) == maxIndexed {
		out.Omitted++
		return nil
	}
	digest, err := x.digest(ctx, p, s)
	if api.IsHidden(err) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return err
	}
	out.Skills = append(out.Skills, indexedJSON{
		Name: s.Name, Type: "archive", Description: shortDescription(s.Description), Digest: digest,
		URL: fmt.Sprintf("%s/skills/%s/versions/%d/package", api.Prefix, s.ID, s.Number),
	})
	return nil
}

// shortDescription truncates a description to the valid length.
func shortDescription(description string) string {
	const most = 1024
	if r := []rune(description); len(r) > most {
		return string(r[:most])
	}
	return description
}

// digest returns the digest of the package of a skill. If ctx ends early, the
// digests computed so far stay cached.
func (x *skillIndex) digest(ctx context.Context, p account.Principal, s *library.Skill) (string, error) {
	key := s.Digest + " " + s.Name
	if d, ok := x.find(key); ok {
		return d, nil
	}
	select {
	case x.turn <- struct{}{}:
		defer func() { <-x.turn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if d, ok := x.find(key); ok { // another request computed it
		return d, nil
	}
	a, err := x.library.Download(ctx, p, s.ID, s.Number)
	if err != nil {
		return "", err
	}
	defer a.Close()
	sum := sha256.New()
	if _, err := a.WriteTo(sum); err != nil {
		return "", fmt.Errorf("the package of skill %s: %w", s.ID, err)
	}
	d := "sha256:" + hex.EncodeToString(sum.Sum(nil))
	x.store(key, d)
	return d, nil
}

func (x *skillIndex) find(key string) (string, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	d, ok := x.known[key]
	return d, ok
}

func (x *skillIndex) store(key, digest string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.known) >= maxPacked {
		clear(x.known) // drops deleted skills too
	}
	x.known[key] = digest
}
