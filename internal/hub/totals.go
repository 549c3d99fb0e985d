package hub

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
)

// SumJSON is what conversations took.
type SumJSON struct {
	Turns      int64    `json:"turns"`
	Loads      int64    `json:"loads" doc:"Of skills"`
	Calls      int64    `json:"calls" doc:"Of tools, but for loading and unloading"`
	Errors     int64    `json:"errors" doc:"Calls that failed, or were not allowed"`
	Input      *int64   `json:"input,omitempty" doc:"Tokens that were read anew and not kept; like the others not there where models took some and told none"`
	Output     *int64   `json:"output,omitempty" doc:"Tokens that were written"`
	CacheRead  *int64   `json:"cache_read,omitempty"`
	CacheWrite *int64   `json:"cache_write,omitempty"`
	Untold     int64    `json:"untold,omitempty" doc:"Answers of models that told no tokens, which are not known and in no sum"`
	Cost       *float64 `json:"cost,omitempty" doc:"In US dollars, of what has a price; not there where nothing has"`
	Unpriced   int64    `json:"unpriced,omitempty" doc:"Tokens of models whose price is not known, which cost has not"`
}

// totalJSON is what was taken on a day, or of a model, by a user, or with an agent.
type totalJSON struct {
	Day       string `json:"day,omitempty" format:"date" doc:"In UTC"`
	Model     string `json:"model,omitempty" doc:"As vendor:name; not there for what MCP clients took, by whose models nobody knows"`
	User      string `json:"user,omitempty" doc:"An id"`
	UserName  string `json:"user_name,omitempty" doc:"Not there where he is gone"`
	Agent     string `json:"agent,omitempty" doc:"As in sessions; not there where it is nobody in particular"`
	Namespace string `json:"namespace,omitempty" doc:"Of the agent"`
	SumJSON
}

type totalsJSON struct {
	By    string      `json:"by"`
	Since string      `json:"since" format:"date" doc:"The first day"`
	Total SumJSON     `json:"total" doc:"Of all items, also those that are left out"`
	Items []totalJSON `json:"items" nullable:"false" doc:"Days in their order, else those with most tokens first"`
	More  bool        `json:"more,omitempty" doc:"There are more items than are told"`
}

func (h *Hub) totalsAPI(api huma.API) {
	add(h, api, operation("get-usage-totals", "GET", "/usage/totals", "What conversations took: yours; for administrators those of all, and for maintainers of a group those with its agents"), h.getTotals)
}

func (h *Hub) getTotals(ctx context.Context, in *struct {
	UsageDays
	By        string `query:"by" enum:"day,model,user,agent" default:"day"`
	Namespace string `query:"namespace" maxLength:"150" doc:"Only conversations with agents there: default is your own, public is everybody's, else the name of a group, user:ID or group:ID"`
	User      string `query:"user" maxLength:"64" doc:"Only those of a user: an id, or me"`
}) (*body[totalsJSON], error) {
	p := account.FromContext(ctx)
	q := chat.TotalsQuery{By: store.By(in.By), Since: in.since()}
	if in.User != "" {
		q.User = userID(p, in.User)
	}
	var err error
	if in.Namespace != "" {
		if q.In, err = h.kinds.Namespace(ctx, p, in.Namespace); err != nil {
			return nil, err
		}
	}
	found, err := h.chat.Totals(ctx, p, q)
	if err != nil {
		return nil, err
	}
	out := totalsJSON{By: in.By, Since: q.Since.Format(time.DateOnly)}
	out.Items, out.Total = h.totals(found, q.By)
	if len(out.Items) > store.MaxPage {
		out.Items, out.More = out.Items[:store.MaxPage], true
	}
	return answered(out, h.nameUsers(ctx, out.Items))
}

// totals puts together what was taken by several models.
func (h *Hub) totals(found []store.Spent, by store.By) ([]totalJSON, SumJSON) {
	type key struct{ day, model, user, in, agent string }
	at := map[key]int{}
	items, total := []totalJSON{}, SumJSON{}
	for _, s := range found {
		item := totalJSON{User: s.Owner, Agent: s.Agent, Namespace: string(s.Namespace)}
		if !s.Date.IsZero() {
			item.Day = s.Date.Format(time.DateOnly)
		}
		if by == store.ByModel {
			item.Model = s.Model
		}
		k := key{item.Day, item.Model, item.User, item.Namespace, item.Agent}
		i, there := at[k]
		if !there {
			i = len(items)
			at[k], items = i, append(items, item)
		}
		h.spend(&items[i].SumJSON, s)
		h.spend(&total, s)
	}
	total.told()
	for i := range items {
		items[i].told()
	}
	slices.SortStableFunc(items, func(a, b totalJSON) int {
		if a.Day != b.Day {
			return cmp.Compare(a.Day, b.Day)
		}
		if a.Day != "" {
			return 0
		}
		return cmp.Compare(b.tokens(), a.tokens())
	})
	return items, total
}

func (s *SumJSON) tokens() (n int64) {
	for _, part := range s.parts() {
		if *part != nil {
			n += **part
		}
	}
	return n
}

// parts are the tokens, each nil where none is known.
func (s *SumJSON) parts() []**int64 {
	return []**int64{&s.Input, &s.Output, &s.CacheRead, &s.CacheWrite}
}

// told leaves out tokens of which nothing is known, as 0 would say that there were none.
func (s *SumJSON) told() {
	unknown := s.Untold > 0 && s.tokens() == 0
	for _, part := range s.parts() {
		switch {
		case unknown:
			*part = nil
		case *part == nil:
			*part = new(int64)
		}
	}
}

// spend adds what one model took.
func (h *Hub) spend(to *SumJSON, s store.Spent) {
	for _, n := range []struct {
		to *int64
		by int64
	}{{&to.Turns, s.Turns}, {&to.Loads, s.Loads}, {&to.Calls, s.Calls}, {&to.Errors, s.Errors}, {&to.Untold, s.Untold}} {
		*n.to += n.by
	}
	for i, n := range []int64{s.Input, s.Output, s.CacheRead, s.CacheWrite} {
		sum, part := n, to.parts()[i]
		if *part != nil {
			sum += **part
		}
		*part = &sum
	}
	cost, known := h.cost(s.Model, llm.Usage{Input: int(s.Input), Output: int(s.Output), CacheRead: int(s.CacheRead), CacheWrite: int(s.CacheWrite)})
	switch {
	case s.Tokens() == 0:
	case !known:
		to.Unpriced += s.Tokens()
	case to.Cost == nil:
		to.Cost = &cost
	default:
		sum := *to.Cost + cost
		to.Cost = &sum
	}
}

// cost is what a usage of a model costs, where its price is known.
func (h *Hub) cost(model string, u llm.Usage) (float64, bool) {
	if h.opts.Price == nil {
		return 0, false
	}
	price, known := h.opts.Price(model)
	if !known {
		return 0, false
	}
	cost, _ := price.Cost(u)
	return cost, true
}

// nameUsers adds the names of users.
func (h *Hub) nameUsers(ctx context.Context, items []totalJSON) error {
	var ids []string
	for _, i := range items {
		if i.User != "" {
			ids = append(ids, i.User)
		}
	}
	users, err := h.db.Users.Some(ctx, ids)
	if err != nil {
		return err
	}
	for i := range items {
		items[i].UserName = users[items[i].User].Name
	}
	return nil
}
