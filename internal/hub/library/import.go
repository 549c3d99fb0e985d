package library

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/remote"
	"github.com/loadout-dev/loadout/skill"
)

// Offer is what there is at a place.
type Offer struct {
	Source string `json:"source"` // as Import takes it
	Ref    string `json:"ref,omitempty"`
	// Commit is the state that was looked at: Import with it takes what was shown.
	Commit   string    `json:"commit,omitempty"`
	Skills   []Offered `json:"skills"`
	Problems []string  `json:"problems"`
}

// Offered is a skill of a place.
type Offered struct {
	Dir         string `json:"dir"` // by which it is chosen
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version,omitempty"`
	// Here is the skill of that name that the namespace has already, nil where there is
	// none. Same is whether its files are the same.
	Here *Skill `json:"here,omitempty"`
	Same bool   `json:"same"`
	// Problem says why it cannot be imported, "" where it can.
	Problem string `json:"problem,omitempty"`
}

// Look says what is at a place, as package remote reads what a person writes, and what of
// it a namespace has already. The principal may upload there. Places of this machine, of
// its network and by ssh are refused, but for hosts of [Options.Private]. The errors are
// those of package remote.
func (l *Library) Look(ctx context.Context, p account.Principal, in Namespace, source string) (*Offer, error) {
	var out *Offer
	err := l.visit(ctx, p, in, source, "", func(offer *remote.Offer) error {
		out = &Offer{Source: offer.Location.String(), Ref: offer.Revision.Ref, Commit: offer.Revision.Commit, Skills: []Offered{}, Problems: []string{}}
		for _, pr := range offer.Problems {
			out.Problems = append(out.Problems, skill.OneLine(pr.Path+": "+pr.Message))
		}
		for _, s := range offer.Skills {
			o, err := l.offered(ctx, in, offer, s)
			if err != nil {
				return err
			}
			out.Skills = append(out.Skills, o)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// visit looks at a place for somebody who may upload to a namespace.
func (l *Library) visit(ctx context.Context, p account.Principal, in Namespace, source, commit string, f func(*remote.Offer) error) error {
	if err := l.checkPlace(ctx, p, account.SkillUpload, in, "import"); err != nil {
		return err
	}
	at, err := l.parsePlace(source)
	if err != nil {
		return err
	}
	if commit != "" && at.Kind == remote.Git {
		at.Ref = commit
	}
	return l.look(ctx, p.User, at, f)
}

// look looks at a place as a user.
func (l *Library) look(ctx context.Context, user account.UserID, at remote.Location, f func(*remote.Offer) error) error {
	if err := l.checkPlaceOf(at); err != nil {
		return err
	}
	done, err := turn(ctx, l.trips)
	if err != nil {
		return err
	}
	defer done()
	offer, err := l.client(user, lookTime).Look(ctx, at)
	if err != nil {
		return ofPlace(err)
	}
	defer offer.Close()
	return f(offer)
}

// offered describes a skill of a place. Its files are read only where a skill of its name
// is there to compare them with.
func (l *Library) offered(ctx context.Context, in Namespace, offer *remote.Offer, s remote.Skill) (Offered, error) {
	o := Offered{Dir: s.Dir, Name: s.Name, Description: s.Description, Version: s.Version}
	if err := checkName(s.Name); err != nil {
		o.Problem = err.Error()
		return o, nil
	}
	found, err := l.db.Skills.Find(ctx, s.Name, []Namespace{in})
	if err != nil || len(found) == 0 {
		return o, err
	}
	o.Here = newSkill(found[0].Skill, nil)
	b, err := offer.Open(ctx, s)
	if err == nil {
		defer b.Close()
		var files skill.Manifest
		files, _, err = skill.ReadManifest(b.FS)
		o.Same = files.Digest() == found[0].Digest
	}
	if err != nil {
		o.Problem = err.Error()
	}
	return o, ctx.Err()
}

// Choice is what to import. Of directories and of names there are at most 2,000.
type Choice struct {
	Commit string   `json:"commit,omitempty"` // of the [Offer]; "" is what is there now
	Dirs   []string `json:"dirs"`             // of the skills; none is all
	// Overwrite are the names of skills that are there already and get a new version.
	Overwrite []string `json:"overwrite"`
}

// Imported is what became of the skills of a place.
type Imported struct {
	Created []Change `json:"created"`
	Updated []Change `json:"updated"`
	Skipped []Change `json:"skipped"`
}

// Change is what became of one skill.
type Change struct {
	ID     string `json:"id,omitempty"`
	Name   string `json:"name"`
	Dir    string `json:"dir"`
	Number int64  `json:"number,omitempty"` // of the version that is current now
	Reason string `json:"reason,omitempty"` // why it was skipped
}

func newImported() *Imported { return &Imported{[]Change{}, []Change{}, []Change{}} }

func (i *Imported) skip(id, name, dir, reason string) {
	i.Skipped = append(i.Skipped, Change{ID: id, Name: skill.OneLine(name), Dir: dir, Reason: reason})
}

// Import takes skills from a place into a namespace: new ones are created, those in
// Overwrite get a new version, and the others are skipped, each with the reason. What is
// wrong with one skill is such a reason. On an error the result says what was done until
// then.
func (l *Library) Import(ctx context.Context, p account.Principal, in Namespace, source string, c Choice) (*Imported, error) {
	out := newImported()
	if n := max(len(c.Dirs), len(c.Overwrite)); n > maxOffered {
		return out, invalid("%d skills are chosen, more than %d", n, maxOffered)
	}
	err := l.visit(ctx, p, in, source, c.Commit, func(offer *remote.Offer) error {
		at, err := l.parsePlace(source)
		if err != nil {
			return err
		}
		names := map[string]string{} // of skills that were taken, with their directories
		for _, s := range offer.Skills {
			if len(c.Dirs) > 0 && !slices.Contains(c.Dirs, s.Dir) {
				continue
			}
			if other, twice := names[s.Name]; twice {
				out.skip("", s.Name, s.Dir, "the one in "+other+" has the same name")
				continue
			}
			names[s.Name] = s.Dir
			from := newSource(p, at, offer, s)
			if err := l.importOne(ctx, p, in, offer, s, from, slices.Contains(c.Overwrite, s.Name), out); err != nil {
				return err
			}
		}
		for _, dir := range c.Dirs {
			if !slices.ContainsFunc(offer.Skills, func(s remote.Skill) bool { return s.Dir == dir }) {
				out.skip("", dir, dir, "there is no such skill")
			}
		}
		return nil
	})
	return out, err
}

// newSource is where a skill is from. A ref that was asked for is followed further on,
// the commit that it named is what was taken.
func newSource(p account.Principal, at remote.Location, offer *remote.Offer, s remote.Skill) *Source {
	return &Source{
		Kind: string(at.Kind), URL: at.URL, Dir: s.Dir, Ref: at.Ref, Commit: offer.Revision.Commit,
		Imported: time.Now().UTC().Truncate(time.Second), By: string(p.User),
	}
}

// importOne takes one skill, and writes into out what became of it.
func (l *Library) importOne(ctx context.Context, p account.Principal, in Namespace, offer *remote.Offer, s remote.Skill, from *Source, overwrite bool, out *Imported) error {
	found, err := l.db.Skills.Find(ctx, s.Name, []Namespace{in})
	if err != nil {
		return err
	}
	if len(found) > 0 && !overwrite {
		out.skip(found[0].ID, s.Name, s.Dir, "there is a skill of that name; name it to be overwritten")
		return nil
	}
	change := Change{Name: s.Name, Dir: s.Dir}
	err = l.withOffered(ctx, offer, s, func(c *content) error {
		if len(found) > 0 {
			change.ID = found[0].ID
			change.Number, err = l.renew(ctx, p, change.ID, c, from)
			return err
		}
		if err := l.keep(ctx, c); err != nil {
			return err
		}
		change.Number = 1
		change.ID, err = l.create(ctx, p, in, c, from)
		return err
	})
	switch {
	case err == nil && len(found) > 0:
		out.Updated = append(out.Updated, change)
	case err == nil:
		out.Created = append(out.Created, change)
	case isOfSkill(err):
		out.skip(change.ID, s.Name, s.Dir, err.Error())
	default:
		return err
	}
	return nil
}

// isOfSkill reports whether an error is about one skill, so that others go on.
func isOfSkill(err error) bool {
	if _, ok := skill.IsRefused(err); ok || isNotFound(err) || isDenied(err) || errors.Is(err, ErrExists) || errors.Is(err, ErrInvalid) || errors.Is(err, errSame) {
		return true
	}
	if _, ok := errors.AsType[*BrokenError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*NameError](err); ok {
		return true
	}
	_, ok := errors.AsType[*remote.DigestError](err)
	return ok || errors.Is(err, skill.ErrTooLarge)
}

// withOffered reads a skill of a place and calls f with what is in it.
func (l *Library) withOffered(ctx context.Context, offer *remote.Offer, s remote.Skill, f func(*content) error) error {
	b, err := offer.Open(ctx, s)
	if err != nil {
		return ofPlace(err)
	}
	defer b.Close()
	done, err := turn(ctx, l.turns)
	if err != nil {
		return err
	}
	defer done()
	c, err := l.readContent(ctx, b)
	if err != nil {
		return err
	}
	return f(c)
}

// errSame says that a skill is as it is at its place.
var errSame = errors.New("it is as it is there")

// renew gives a skill the files that it has at a place: a new version, or an older one
// that has them. It fails with errSame where the current one has them; that it was looked
// at is kept.
func (l *Library) renew(ctx context.Context, p account.Principal, id string, c *content, from *Source) (int64, error) {
	h, err := l.mayChange(ctx, p, id)
	if err == nil {
		err = c.isOf(h)
	}
	if err != nil {
		return 0, err
	}
	digest := c.manifest.Digest()
	v, err := l.db.Versions.OfDigest(ctx, id, digest)
	if err != nil && !isNotFound(err) {
		return 0, err
	}
	if isNotFound(err) {
		if err := l.keep(ctx, c); err != nil {
			return 0, err
		}
		return l.extend(ctx, p, id, c, from)
	}
	same := false
	err = l.change(ctx, p, account.SkillChange, id, func(tx *store.Tx, h *held) (any, error) {
		if same = h.Number == v.Number; !same {
			if err := l.setCurrent(ctx, tx, v); err != nil {
				return nil, err
			}
		}
		return uploaded{h.Name, v.Number, digest, from}, tx.Skills.Update(ctx, id, from.origin(), from.json())
	})
	if err == nil && same {
		err = errSame
	}
	return v.Number, err
}
