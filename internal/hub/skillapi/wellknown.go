package skillapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

const (
	indexPath = "/.well-known/agent-skills/index.json"
	// maxIndexed is the maximum number of skills in an index. Clients limit the
	// size of the index.
	maxIndexed = 2000
	// maxPacked is the maximum number of package digests that a node caches.
	maxPacked = 20_000
)

// indexJSON is a skill index in version 0.2.0 of the format.
type indexJSON struct {
	Schema  string        `json:"$schema"`
	Skills  []indexedJSON `json:"skills" nullable:"false"`
	Omitted int           `json:"omitted,omitempty" doc:"Number of skills that are not listed, because the index is full"`
}

// indexedJSON is a downloadable skill in an index.
type indexedJSON struct {
	Name        string `json:"name"`
	Type        string `json:"type" enum:"archive"`
	Description string `json:"description"`
	URL         string `json:"url" doc:"URL of the archive on this hub"`
	Digest      string `json:"digest" doc:"Digest of the archive"`
}

// addSkillIndex adds the skill index, so that programs can install skills from the
// hub as from any site with a skill index. It requires authentication and lists
// the skills that the user may use.
func (h *Handlers) addSkillIndex() {
	op := api.Operation("get-skill-index", "GET", "/skills", "Index of the skills that you may install")
	op.Path = indexPath
	api.Add(h.Server, op, newSkillIndex(h.Library, h.Log).get)
}

// skillIndex creates skill indexes. It caches package digests, because computing a
// digest reads all files of a skill, and the result never changes. It is safe for
// concurrent use.
type skillIndex struct {
	library *library.Library
	log     *slog.Logger
	turn    chan struct{} // held while reading a package; only one is read at a time

	mu    sync.Mutex
	known map[string]string // package digests by file digest and name
}

func newSkillIndex(l *library.Library, log *slog.Logger) *skillIndex {
	return &skillIndex{library: l, log: log, turn: make(chan struct{}, 1), known: map[string]string{}}
}

func (x *skillIndex) get(ctx context.Context, _ *api.NoBody) (*api.Body[indexJSON], error) {
	p := account.FromContext(ctx)
	in, err := library.DownloadNamespaces(p)
	if err != nil {
		return nil, err
	}
	out := indexJSON{Schema: remote.IndexSchema, Skills: []indexedJSON{}}
	q := library.Query{In: in, Installable: true, Page: store.Page{Limit: store.MaxPage}}
	for {
		found, err := x.library.List(ctx, p, q)
		if err != nil {
			return nil, err
		}
		for _, s := range found.Skills {
			if err := x.add(ctx, p, s, &out); err != nil {
				return nil, err
			}
		}
		if q.After = found.Next; found.Next == "" {
			return api.BodyOf(out, nil)
		}
	}
}

// add adds a skill to an index unless the format does not permit its name or its
// files cannot be read. It returns an error only if ctx is done.
func (x *skillIndex) add(ctx context.Context, p account.Principal, s *library.Skill, out *indexJSON) error {
	if !skillname.IsPortable(s.Name) {
		return nil
	}
	if len(out.Skills) == maxIndexed {
		out.Omitted++
		return nil
	}
	digest, err := x.digest(ctx, p, s)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil { // damaged, or changed since it was listed; the other skills are not affected
		x.log.WarnContext(ctx, "skill omitted from the skill index", "skill", s.ID, "version", s.Number, "error", err)
		return nil
	}
	out.Skills = append(out.Skills, indexedJSON{
		Name: s.Name, Type: "archive", Description: shortDescription(untrusted.New(s.Description).ForModel()), Digest: digest,
		URL: fmt.Sprintf("%s/skills/%s/versions/%d/package", api.Prefix, s.ID, s.Number),
	})
	return nil
}

// shortDescription truncates a description to the maximum length that the
// format permits.
func shortDescription(description string) string {
	const most = 1024
	if r := []rune(description); len(r) > most {
		return string(r[:most])
	}
	return description
}

// digest returns the digest of a skill's package. If ctx is cancelled, digests
// computed so far remain cached.
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
	if d, ok := x.find(key); ok { // another request has computed it
		return d, nil
	}
	a, err := x.library.Download(ctx, p, s.ID, s.Number)
	if err != nil {
		return "", err
	}
	defer a.Close()
	sum := sha256.New()
	if _, err := a.WriteTo(sum); err != nil {
		return "", fmt.Errorf("hash package of skill %s: %w", s.ID, err)
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
		clear(x.known) // also removes entries for deleted skills
	}
	x.known[key] = digest
}
