package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

const (
	indexPath   = "/.well-known/agent-skills/index.json"
	indexSchema = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
	// maxIndexed bounds the skills of an index, as those who read it bound its bytes.
	maxIndexed = 2000
	// maxPacked bounds of how many packages a node remembers the digest.
	maxPacked = 20_000
)

// indexJSON is what a hub publishes, in the form of which version 0.2.0 says what it is.
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

// wellKnown adds the index of skills, by which programs add skills of the hub as those of
// any site. Who asks has to say who he is, as for all there is here, and finds what he may
// download.
func (h *Hub) wellKnown(api huma.API) {
	op := operation("get-skill-index", "GET", "/skills", "The skills that you may download, as sites publish theirs")
	op.Path = indexPath
	add(h, api, op, newSkillIndex(h.library).get)
}

// skillIndex makes indexes. It remembers the digests of packages, which are the same bytes
// each time: to find one takes reading all files of a skill. It is safe for concurrent
// use.
type skillIndex struct {
	library *library.Library
	turn    chan struct{} // held while a package is read: one at a time is enough for a list

	mu    sync.Mutex
	known map[string]string // by the digest of the files and the name
}

func newSkillIndex(l *library.Library) *skillIndex {
	return &skillIndex{library: l, turn: make(chan struct{}, 1), known: map[string]string{}}
}

func (x *skillIndex) get(ctx context.Context, _ *nothing) (*body[indexJSON], error) {
	p := account.FromContext(ctx)
	in, err := downloadable(p)
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
			return answered(out, nil)
		}
	}
}

// downloadable are the namespaces of which somebody may download what they list, nearest
// first.
func downloadable(p account.Principal) ([]store.Namespace, error) {
	var may []store.Namespace
	take := func(n store.Namespace, r account.Resource) {
		if account.Can(p, account.SkillDownload, r) {
			may = append(may, n)
		}
	}
	take(store.UserNamespace(string(p.User)), account.Of(p.User))
	for i, g := range slices.Sorted(maps.Keys(p.Groups)) {
		if i == store.MaxNamespaces-2 {
			break // the newest, as everywhere
		}
		take(store.GroupNamespace(string(g)), account.In(g, ""))
	}
	take(store.Public, account.Resource{Shared: true})
	if len(may) == 0 {
		return nil, account.Check(p, account.SkillDownload, account.Of(p.User))
	}
	return may, nil
}

// add adds a skill to an index, unless its name is none that an index can have.
func (x *skillIndex) add(ctx context.Context, p account.Principal, s *library.Skill, out *indexJSON) error {
	if !skill.PortableName(s.Name) {
		return nil
	}
	if len(out.Skills) == maxIndexed {
		out.Omitted++
		return nil
	}
	digest, err := x.digest(ctx, p, s)
	if isHidden(err) {
		return nil // it went meanwhile
	}
	if err != nil {
		return err
	}
	out.Skills = append(out.Skills, indexedJSON{
		Name: s.Name, Type: "archive", Description: shortened(s.Description), Digest: digest,
		URL: fmt.Sprintf("%s/skills/%s/versions/%d/package", base, s.ID, s.Number),
	})
	return nil
}

// shortened is as much of a description as a valid one has.
func shortened(description string) string {
	const most = 1024
	if r := []rune(description); len(r) > most {
		return string(r[:most])
	}
	return description
}

// digest is that of the package of a skill. Where ctx ends before all of an index are
// found, those that were are known the next time.
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
	if d, ok := x.find(key); ok { // somebody else waited for the same
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
	x.keep(key, d)
	return d, nil
}

func (x *skillIndex) find(key string) (string, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	d, ok := x.known[key]
	return d, ok
}

func (x *skillIndex) keep(key, digest string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.known) >= maxPacked {
		clear(x.known) // of skills that are gone, too; the others are found anew
	}
	x.known[key] = digest
}
