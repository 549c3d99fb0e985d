package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Spent is what conversations took: added to what is kept, or summed up.
type Spent struct {
	Date      time.Time // the day in UTC
	Owner     string    // the user
	Namespace Namespace // of the agent, "" where it is nobody in particular
	Agent     string    // as a conversation names it
	Model     string

	Turns, Loads, Calls, Errors          int64
	Input, Output, CacheRead, CacheWrite int64
	Untold                               int64 // answers of models whose tokens nobody told
}

// counts are the numbers, in the order of their columns.
func (s *Spent) counts() []*int64 {
	return []*int64{&s.Turns, &s.Loads, &s.Calls, &s.Errors, &s.Input, &s.Output, &s.CacheRead, &s.CacheWrite, &s.Untold}
}

const meterCounts = "turns, loads, calls, errors, input, output, cache_read, cache_write, untold"

// Add adds the numbers of another one.
func (s *Spent) Add(other Spent) {
	for i, n := range other.counts() {
		*s.counts()[i] += *n
	}
}

// Tokens are all of a model that were read and written.
func (s *Spent) Tokens() int64 { return s.Input + s.Output + s.CacheRead + s.CacheWrite }

// Meter keeps what conversations take, by day, user, agent and model.
type Meter struct{ c conn }

// Add adds what was taken, all or nothing, to the days of its times.
func (t Meter) Add(ctx context.Context, all ...Spent) error {
	all = slices.Clone(all)
	// In one order, so that two that add do not wait for each other.
	slices.SortFunc(all, func(a, b Spent) int {
		return cmp.Or(a.Date.Compare(b.Date), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Model, b.Model))
	})
	err := t.c.atomic(ctx, func(c conn) error {
		for _, s := range all {
			args := []any{dayOf(s.Date), s.Owner, s.Namespace, s.Agent, s.Model}
			for _, n := range s.counts() {
				args = append(args, *n)
			}
			_, err := c.exec(ctx, "INSERT INTO meter (day, owner, namespace, agent, model, "+meterCounts+") VALUES ("+places(1, len(args))+`)
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
		return fmt.Errorf("add what was spent: %w", err)
	}
	return nil
}

// By is what sums are of.
type By string

// What sums are of.
const (
	ByDay   By = "day"
	ByModel By = "model"
	ByUser  By = "user"
	ByAgent By = "agent"
)

// MeterQuery asks for sums.
type MeterQuery struct {
	By    By
	Since time.Time // its day, and those after it
	Owner string    // of this user; "" is of all
	In    Namespace // of agents there; "" is of all, and of none
}

// spentBy is a sum of one key and one model.
type spentBy struct{ Spent }

// MaxSums bounds the sums of one question.
const MaxSums = 10_000

// Sum returns what was taken, for each of what a query asks and each model: of days the
// oldest first, else what took most tokens first. There are at most [MaxSums].
func (t Meter) Sum(ctx context.Context, q MeterQuery) ([]Spent, error) {
	keys := map[By]string{
		ByDay: "m.day, '', '', ''", ByModel: "CAST(0 AS BIGINT), '', '', ''",
		ByUser: "CAST(0 AS BIGINT), m.owner, '', ''", ByAgent: "CAST(0 AS BIGINT), '', m.namespace, m.agent",
	}[q.By]
	groups := map[By]string{ByDay: "m.day, m.model", ByModel: "m.model", ByUser: "m.owner, m.model", ByAgent: "m.namespace, m.agent, m.model"}[q.By]
	if keys == "" {
		return nil, fmt.Errorf("sum up what was spent: %w: by %.40q", ErrInvalid, q.By)
	}
	where, args := "m.day >= $1", []any{dayOf(q.Since)}
	for _, only := range [][2]string{{"owner", q.Owner}, {"namespace", string(q.In)}} {
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
	if q.By == ByDay {
		order = groups
	}
	found, err := all[spentBy](ctx, t.c, "SELECT "+keys+", m.model"+sums+" FROM meter m WHERE "+where+" GROUP BY "+groups+" ORDER BY "+order+fmt.Sprintf(" LIMIT %d", MaxSums), args...)
	if err != nil {
		return nil, fmt.Errorf("sum up what was spent: %w", err)
	}
	out := make([]Spent, len(found))
	for i, s := range found {
		if out[i] = s.Spent; q.By != ByDay {
			out[i].Date = time.Time{}
		}
	}
	return out, nil
}

func (s *spentBy) fields() []any {
	out := []any{(*date)(&s.Date), &s.Owner, &s.Namespace, &s.Agent, &s.Model}
	for _, n := range s.counts() {
		out = append(out, n)
	}
	return out
}
