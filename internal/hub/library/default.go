package library

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Default is a skill that the people of a namespace have without asking.
type Default struct {
	Namespace Namespace `json:"namespace"` // a user's own, a group's, or the public one
	SkillID   string    `json:"skill_id"`
	Preload   bool      `json:"forcePreload"` // loaded from the start
	// Exceptions are conversations in which it is no default: at most 100.
	Exceptions []Exception `json:"exceptions,omitempty"`
}

// Exception is a kind of conversation.
type Exception struct {
	Type  string `json:"type"`  // mode, agent or project
	Value string `json:"value"` // at most 128 bytes
}

const maxExceptions = 100

// MaxDefaults bounds the defaults of one namespace.
const MaxDefaults = 200

func (e Exception) check() error {
	if e.Type != "mode" && e.Type != "agent" && e.Type != "project" {
		return invalid("%.40q is no kind of exception; write mode, agent or project", e.Type)
	}
	if e.Value == "" || len(e.Value) > 128 {
		return invalid("the value of an exception has 1 to 128 bytes")
	}
	return nil
}

// SetDefault makes a skill a default, in place of what was said of it there before. For
// himself a principal may where he sees the skill, for a group where he may upload to it,
// for everybody where he may upload to the public namespace. One more than [MaxDefaults]
// is [ErrTooMany].
func (l *Library) SetDefault(ctx context.Context, p account.Principal, d Default) error {
	if len(d.Exceptions) > maxExceptions {
		return invalid("there are %d exceptions, more than %d", len(d.Exceptions), maxExceptions)
	}
	for _, e := range d.Exceptions {
		if err := e.check(); err != nil {
			return err
		}
	}
	exceptions, err := json.Marshal(d.Exceptions)
	if err != nil {
		return err
	}
	action := defaultAction(d.Namespace)
	if err := l.checkPlace(ctx, p, action, d.Namespace, d.SkillID); err != nil {
		return err
	}
	may := func(tx *store.Tx, h *held) error { return l.mayDefault(ctx, tx, p, h, d.Namespace) }
	return l.changeIf(ctx, p, action, d.SkillID, may, func(tx *store.Tx, h *held) (any, error) {
		// Those who get it have to reach it, or it would be one that they cannot load.
		reach, err := l.reach(ctx, &tx.Tables, d.Namespace)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(reach, func(n Namespace) bool { return slices.Contains(h.listings, n) }) {
			return nil, invalid("skill %q is not published there; publish it first", h.Name)
		}
		return d, addDefault(ctx, tx, store.Default{
			Namespace: d.Namespace, SkillID: d.SkillID, Preload: d.Preload, Exceptions: exceptions, CreatedBy: string(p.User),
		})
	})
}

// addDefault keeps a default, unless there are too many.
func addDefault(ctx context.Context, tx *store.Tx, d store.Default) error {
	have, err := tx.Defaults.In(ctx, []Namespace{d.Namespace})
	if err != nil {
		return err
	}
	if len(have) >= MaxDefaults && !slices.ContainsFunc(have, func(h store.Default) bool { return h.SkillID == d.SkillID }) {
		return fmt.Errorf("%w: %d defaults; remove one first", ErrTooMany, len(have))
	}
	return tx.Defaults.Put(ctx, d)
}

// mayDefault decides whether a principal may make a skill a default somewhere: for
// himself one that he sees, or has as a default already, for others one that he may bind.
func (l *Library) mayDefault(ctx context.Context, tx *store.Tx, p account.Principal, h *held, in Namespace) error {
	if in.User() == "" {
		return h.check(p, account.SkillBind, h.CreatedBy)
	}
	have, err := tx.Defaults.In(ctx, []Namespace{in})
	if err != nil {
		return err
	}
	shown := *h
	if slices.ContainsFunc(have, func(d store.Default) bool { return d.SkillID == h.ID }) {
		shown.Hidden = false
	}
	if !shown.seen(p) {
		return notFound(h.ID)
	}
	return nil
}

// defaultAction is what setting the defaults of a namespace is: of others' it is to put
// something before them.
func defaultAction(n Namespace) account.Action {
	if n.User() != "" {
		return account.DefaultWrite
	}
	return account.SkillUpload
}

// RemoveDefault takes a skill out of the defaults of a namespace.
func (l *Library) RemoveDefault(ctx context.Context, p account.Principal, in Namespace, skillID string) error {
	action := defaultAction(in)
	if err := l.checkPlace(ctx, p, action, in, skillID); err != nil {
		return err
	}
	return l.db.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Defaults.Delete(ctx, in, skillID); err != nil {
			return orNotFound(skillID, err)
		}
		return record(ctx, tx.Audit, p, action, in, skillID, "allowed", removedDefault{true})
	})
}

type removedDefault struct {
	Removed bool `json:"removed_default"`
}

// Defaults returns the defaults of a namespace, by the id of the skill: also those whose
// skills are not seen any more, which can be removed.
func (l *Library) Defaults(ctx context.Context, p account.Principal, in Namespace) ([]Default, error) {
	if err := inPlace(p, account.SkillRead, in); err != nil {
		return nil, err
	}
	rows, err := l.db.Defaults.In(ctx, []Namespace{in})
	if err != nil {
		return nil, err
	}
	out := make([]Default, len(rows))
	for i, r := range rows {
		out[i] = readDefault(r)
	}
	return out, nil
}

func readDefault(r store.Default) Default {
	d := Default{Namespace: r.Namespace, SkillID: r.SkillID, Preload: r.Preload}
	_ = json.Unmarshal(r.Exceptions, &d.Exceptions) // what cannot be read are none
	return d
}

// Situation is the conversation that skills are chosen for.
type Situation struct{ Mode, Agent, Project string }

func (s Situation) is(e Exception) bool {
	return e.Value != "" && (e.Type == "mode" && e.Value == s.Mode || e.Type == "agent" && e.Value == s.Agent || e.Type == "project" && e.Value == s.Project)
}

// Chosen is a skill that a conversation has without asking.
type Chosen struct {
	Ref
	Preload bool      `json:"forcePreload"`
	For     Namespace `json:"for"` // whose default it is
}

// Choose returns the skills that a conversation of the principal has by his own defaults,
// those of his groups, and those for everybody; of several about one skill, or of one
// name, the nearest counts, also where it makes an exception. They are precise
// references without a digest, in the order of nearness.
func (l *Library) Choose(ctx context.Context, p account.Principal, s Situation) ([]Chosen, error) {
	in, err := namespaces(p, account.SkillUse)
	if err != nil {
		return nil, err
	}
	rows, err := l.db.Defaults.In(ctx, in)
	if err != nil {
		return nil, err
	}
	var out []Chosen
	ids, names := map[string]bool{}, map[string]bool{}
	for _, n := range in {
		for _, row := range rows {
			if row.Namespace != n || ids[row.SkillID] {
				continue
			}
			ids[row.SkillID] = true
			h, err := l.bound(ctx, p, account.SkillUse, row.SkillID)
			if isNotFound(err) || isDenied(err) {
				continue // not his any more
			}
			if err != nil {
				return nil, err
			}
			d := readDefault(row)
			if names[h.Name] || slices.ContainsFunc(d.Exceptions, s.is) {
				continue
			}
			names[h.Name] = true
			out = append(out, Chosen{Ref{Name: h.Name, ID: h.ID}, d.Preload, n})
		}
	}
	return out, nil
}
