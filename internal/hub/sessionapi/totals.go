package sessionapi

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/llm"
)

// SumJSON is the total usage of several conversations.
type SumJSON struct {
	Turns      int64    `json:"turns"`
	Loads      int64    `json:"loads" doc:"Number of skill loads"`
	Calls      int64    `json:"calls" doc:"Number of tool calls, without loading and unloading skills"`
	Errors     int64    `json:"errors" doc:"Failed or denied calls"`
	Input      *int64   `json:"input,omitempty" doc:"Tokens read and not cached; like the other counts absent if unknown"`
	Output     *int64   `json:"output,omitempty" doc:"Tokens written"`
	CacheRead  *int64   `json:"cache_read,omitempty"`
	CacheWrite *int64   `json:"cache_write,omitempty"`
	Unreported int64    `json:"untold,omitempty" doc:"Model answers without token counts, which are in no sum"`
	Cost       *float64 `json:"cost,omitempty" doc:"In US dollars; absent if no price is known"`
	Unpriced   int64    `json:"unpriced,omitempty" doc:"Tokens of models without a known price, not included in cost"`
}

// totalJSON is the usage of one day, model, user or agent.
type totalJSON struct {
	Day       string `json:"day,omitempty" format:"date" doc:"In UTC"`
	Model     string `json:"model,omitempty" doc:"As vendor:name; absent for MCP clients, whose model is unknown"`
	User      string `json:"user,omitempty" doc:"ID"`
	UserName  string `json:"user_name,omitempty" doc:"Absent if the user was deleted"`
	Agent     string `json:"agent,omitempty" doc:"As in sessions; absent for the default agent"`
	Namespace string `json:"namespace,omitempty" doc:"Namespace of the agent"`
	SumJSON
}

type totalsJSON struct {
	By    string      `json:"by"`
	Since string      `json:"since" format:"date" doc:"First day"`
	Total SumJSON     `json:"total" doc:"Total of all items, including omitted ones"`
	Items []totalJSON `json:"items" nullable:"false" doc:"Days in order, otherwise most tokens first"`
	More  bool        `json:"more,omitempty" doc:"Whether items were omitted"`
}

func (h *Handlers) totalsAPI() {
	api.Add(h.Server, api.Operation("get-usage-totals", "GET", "/usage/totals", "Get the consumption of conversations: your own; for administrators all, for maintainers of a group those with its agents"), h.getTotals)
}

func (h *Handlers) getTotals(ctx context.Context, in *struct {
	api.UsageDays
	By        string `query:"by" enum:"day,model,user,agent" default:"day"`
	Namespace string `query:"namespace" maxLength:"150" doc:"Only conversations with agents of this namespace: default for your own, public, the name of a group, user:ID or group:ID"`
	User      string `query:"user" maxLength:"64" doc:"Only conversations of this user: an ID, or me"`
}) (*api.Body[totalsJSON], error) {
	p := account.FromContext(ctx)
	q := chat.TotalsQuery{By: store.GroupBy(in.By), Since: in.Since()}
	if in.User != "" {
		q.User = api.UserID(p, in.User)
	}
	var err error
	if in.Namespace != "" {
		if q.In, err = h.Agents.ResolveNamespace(ctx, p, in.Namespace); err != nil {
			return nil, err
		}
	}
	found, err := h.Chat.Totals(ctx, p, q)
	if err != nil {
		return nil, err
	}
	out := totalsJSON{By: in.By, Since: q.Since.Format(time.DateOnly)}
	out.Items, out.Total = h.totals(found, q.By)
	if len(out.Items) > store.MaxPage {
		out.Items, out.More = out.Items[:store.MaxPage], true
	}
	return api.BodyOf(out, h.nameUsers(ctx, out.Items))
}

// totals returns the sum of each group of entries and the overall sum.
func (h *Handlers) totals(found []store.MeterEntry, by store.GroupBy) ([]totalJSON, SumJSON) {
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
		h.addEntry(&items[i].SumJSON, s)
		h.addEntry(&total, s)
	}
	total.normalizeTokens()
	for i := range items {
		items[i].normalizeTokens()
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

// parts returns pointers to the token counts. A count is nil if it is unknown.
func (s *SumJSON) parts() []**int64 {
	return []**int64{&s.Input, &s.Output, &s.CacheRead, &s.CacheWrite}
}

// normalizeTokens sets missing token counts to 0, or removes all of them if they are
// unknown, because 0 would be wrong.
func (s *SumJSON) normalizeTokens() {
	unknown := s.Unreported > 0 && s.tokens() == 0
	for _, part := range s.parts() {
		switch {
		case unknown:
			*part = nil
		case *part == nil:
			*part = new(int64)
		}
	}
}

// addEntry adds an entry for one model to a sum.
func (h *Handlers) addEntry(to *SumJSON, s store.MeterEntry) {
	for _, n := range []struct {
		to *int64
		by int64
	}{{&to.Turns, s.Turns}, {&to.Loads, s.Loads}, {&to.Calls, s.Calls}, {&to.Errors, s.Errors}, {&to.Unreported, s.Unreported}} {
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

// cost returns the cost of the tokens that a model used, and whether the
// model's price is known.
func (h *Handlers) cost(model string, u llm.Usage) (float64, bool) {
	price, known := h.Price(model)
	if !known {
		return 0, false
	}
	cost, _ := price.Cost(u)
	return cost, true
}

// nameUsers looks up the users in items and sets their names.
func (h *Handlers) nameUsers(ctx context.Context, items []totalJSON) error {
	var ids []string
	for _, i := range items {
		if i.User != "" {
			ids = append(ids, i.User)
		}
	}
	users, err := h.Users.GetMany(ctx, ids)
	if err != nil {
		return err
	}
	for i := range items {
		items[i].UserName = users[items[i].User].Name
	}
	return nil
}
