package migrate

import (
	"context"
	"strings"

	"github.com/loadout-dev/loadout/internal/clientimport"
	"github.com/loadout-dev/loadout/internal/secrets"
)

// Target is a user's setup on this machine, to which a plan is applied.
type Target struct {
	ServersFile string // the user's servers file
	Secrets     *secrets.Store
}

// Change is the difference between a plan and a target. It is not safe for
// concurrent use.
type Change struct {
	// Items reports everything in the plan, in the order of their kinds.
	Items []Item
	// Unset lists the names of the secrets that the user must set.
	Unset []string
	Notes []string

	servers *clientimport.Plan
}

// Compare compares a plan with a target. It writes nothing. The target must not
// change before the result is applied.
func (p *Plan) Compare(t Target) (*Change, error) {
	c := &Change{}
	if err := c.compareServers(p, t); err != nil {
		return nil, err
	}
	c.Items = append(c.Items, p.Lost...)
	return c, nil
}

// IsEmpty reports whether applying the change would write nothing.
func (c *Change) IsEmpty() bool { return c.servers.Action == clientimport.None }

// Apply writes the change. After an error, the rest can be applied by comparing
// and applying the plan again.
func (c *Change) Apply(ctx context.Context) error {
	if c.servers.Action == clientimport.None {
		return nil
	}
	return c.servers.Apply(ctx)
}

// compareServers plans the servers to add to the user's servers file.
func (c *Change) compareServers(p *Plan, t Target) error {
	var all []clientimport.Definition
	for _, s := range p.Servers {
		all = append(all, s.Definition)
	}
	plan, err := clientimport.PlanDefinitions(t.ServersFile, t.Secrets, string(p.System), all)
	if err != nil {
		return err
	}
	c.servers, c.Unset, c.Notes = plan, plan.Unset, plan.Notes
	for i, s := range plan.Servers { // in the order of the definitions
		item := Item{Kind: Server, Name: s.Name, From: p.Servers[i].From, Outcome: Kept, New: s.State == clientimport.Added, Details: s.Problems}
		if s.State == clientimport.Skipped {
			item.Outcome = Lost
		} else if s.As != s.Name {
			item.Details = append(item.Details, "named "+s.As+", because another server has its name")
		}
		for _, m := range plan.Secrets {
			if m.Server == s.As || m.Server == s.Name {
				item.Details = append(item.Details, m.Where+" is now the secret "+m.Secret)
			}
		}
		if item.Outcome == Kept && len(item.Details) > 0 {
			item.Outcome = Changed
		}
		c.Items = append(c.Items, item)
	}
	return nil
}

// Names returns the names of the new items of a kind, for the audit log.
func (c *Change) Names(k Kind) string {
	var names []string
	for _, i := range c.Items {
		if i.Kind == k && i.New {
			names = append(names, i.Name)
		}
	}
	return strings.Join(names, " ")
}
