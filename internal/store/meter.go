package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MeterEntry counts what conversations consumed, as an addition or as a sum.
type MeterEntry struct {
	Date      time.Time // the day in UTC
	Owner     string    // a user id
	Namespace Namespace // of the agent; "" for the default agent
	Agent     string    // as the conversation names it
	Model     string

	Turns, Loads, Calls, Errors          int64
	Input, Output, CacheRead, CacheWrite int64
	Unreported                           int64 // model answers without token counts
}

// counts returns pointers to the numbers in the order of their columns.
func (s *MeterEntry) counts() []*int64 {
	return []*int64{&s.Turns, &s.Loads, &s.Calls, &s.Errors, &s.Input, &s.Output, &s.CacheRead, &s.CacheWrite, &s.Unreported}
}

const meterCounts = "turns, loads, calls, errors, input, output, cache_read, cache_write, untold"

// Add adds the numbers of another entry.
func (s *MeterEntry) Add(other MeterEntry) {
	for i, n := range other.counts() {
		*s.counts()[i] += *n
	}
}

// Tokens returns the total of all tokens read and written.
func (s *MeterEntry) Tokens() int64 { return s.Input + s.Output + s.CacheRead + s.CacheWrite }

// Meter stores the consumption of conversations by day, user, agent and model.
type Meter struct{ c conn }

// Add adds entries to the days of their dates, all or none.
func (t Meter) Add(ctx context.Context, all ...MeterEntry) error {
	all = slices.Clone(all)
	// A fixed order keeps concurrent calls from deadlocks.
	slices.SortFunc(all, func(a, b MeterEntry) int {
		return cmp.Or(a.Date.Compare(b.Date), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Model, b.Model))
	})
	err := t.c.atomic(ctx, func(c conn) error {
		for _, s := range all {
			args := []any{dayNumber(s.Date), s.Owner, s.Namespace, s.Agent, s.Model}
			for _, n := range s.counts() {
				args = append(args, *n)
			}
			_, err := c.exec(ctx, "INSERT INTO meter (day, owner, namespace, agent, model, "+meterCounts+") VALUES ("+placeholders(1, len(args))+`)
				ON CONFLICT (day, owner, namespace, agent, model) DO UPDATE SET turns = meter.turns + excluded.turns, loads = meter.loads + excluded.loads,
				calls = meter.calls + excluded.calls, errors = meter.errors + excluded.errors, input = meter.input + excluded.input, output = meter.output + excluded.output,
				cache_read = meter.cache_read + excluded.cache_read, cache_write = meter.cache_write + excluded.cache_write, untold = meter.untold + excluded.untold`, args...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("add consumption: %w", err)
	}
	return nil
}

// GroupBy is the key by which sums are grouped.
type GroupBy string

// The grouping keys.
const (
	ByDay   GroupBy = "day"
	ByModel GroupBy = "model"
	ByUser  GroupBy = "user"
	ByAgent GroupBy = "agent"
)

// MeterQuery selects and groups sums.
type MeterQuery struct {
	GroupBy   GroupBy
	Since     time.Time // this day and later ones
	Owner     string    // a user id; "" for all
	Namespace Namespace // of agents; "" for all
}

// meterSum is the sum for one key and one model.
type meterSum struct{ MeterEntry }

// MaxSums limits the sums of one query.
const MaxSums = 10_000

// Sum returns the consumption for each key and model, at most [MaxSums]. Days
// are sorted from the oldest; other keys by tokens, the most first.
func (t Meter) Sum(ctx context.Context, q MeterQuery) ([]MeterEntry, error) {
	keys := map[GroupBy]string{
		ByDay: "m.day, '', '', ''", ByModel: "CAST(0 AS BIGINT), '', '', ''",
		ByUser: "CAST(0 AS BIGINT), m.owner, '', ''", ByAgent: "CAST(0 AS BIGINT), '', m.namespace, m.agent",
	}[q.GroupBy]
	groups := map[GroupBy]string{ByDay: "m.day, m.model", ByModel: "m.model", ByUser: "m.owner, m.model", ByAgent: "m.namespace, m.agent, m.model"}[q.GroupBy]
	if keys == "" {
		return nil, fmt.Errorf("sum consumption: %w: unknown key %.40q", ErrInvalid, q.GroupBy)
	}
	where, args := "m.day >= $1", []any{dayNumber(q.Since)}
	for _, only := range [][2]string{{"owner", q.Owner}, {"namespace", string(q.Namespace)}} {
		if only[1] != "" {
			args = append(args, only[1])
			where += fmt.Sprintf(" AND m.%s = $%d", only[0], len(args))
		}
	}
	sums := ""
	for _, column := range strings.Split(meterCounts, ", ") {
		sums += ", CAST(sum(m." + column + ") AS BIGINT)"
	}
	order := "sum(m.input + m.output + m.cache_read + m.cache_write) DESC, sum(m.turns) DESC, " + groups
	if q.GroupBy == ByDay {
		order = groups
	}
	found, err := queryAll[meterSum](ctx, t.c, "SELECT "+keys+", m.model"+sums+" FROM meter m WHERE "+where+" GROUP BY "+groups+" ORDER BY "+order+fmt.Sprintf(" LIMIT %d", MaxSums), args...)
	if err != nil {
		return nil, fmt.Errorf("sum consumption: %w", err)
	}
	out := make([]MeterEntry, len(found))
	for i, s := range found {
		if out[i] = s.MeterEntry; q.GroupBy != ByDay {
			out[i].Date = time.Time{}
		}
	}
	return out, nil
}

func (s *meterSum) fields() []any {
	out := []any{(*date)(&s.Date), &s.Owner, &s.Namespace, &s.Agent, &s.Model}
	for _, n := range s.counts() {
		out = append(out, n)
	}
	return out
}
