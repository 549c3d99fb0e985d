package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// MeterEntry counts a conversation's turns, calls and tokens. It is either an
// increment for [Meter.Add] or a total from [Meter.Sum].
type MeterEntry struct {
	Date      time.Time // the day in UTC
	Owner     string    // a user id
	Namespace Namespace // namespace of the agent; "" for the default agent
	Agent     string    // name of the agent in the conversation
	Model     string

	Turns, Loads, Calls, Errors          int64
	Input, Output, CacheRead, CacheWrite int64
	Unreported                           int64 // model responses without token counts
}

// counterFields returns pointers to the counters in column order.
func (s *MeterEntry) counterFields() []*int64 {
	return []*int64{&s.Turns, &s.Loads, &s.Calls, &s.Errors, &s.Input, &s.Output, &s.CacheRead, &s.CacheWrite, &s.Unreported}
}

const meterCounts = "turns, loads, calls, errors, input, output, cache_read, cache_write, untold"

// Add adds the counters of another entry to s.
func (s *MeterEntry) Add(other MeterEntry) {
	for i, n := range other.counterFields() {
		*s.counterFields()[i] += *n
	}
}

// Tokens returns the total number of tokens read and written.
func (s *MeterEntry) Tokens() int64 { return s.Input + s.Output + s.CacheRead + s.CacheWrite }

// Meter stores the usage in conversations by day, user, agent and model.
type Meter struct{ c conn }

// Add adds each entry to the day of its Date. If it fails, it adds no entries. It
// only inserts rows, so that it never waits for another node; see [DB.MergeUsage].
func (t Meter) Add(ctx context.Context, all ...MeterEntry) error {
	err := t.c.inTransaction(ctx, func(c conn) error {
		for _, s := range all {
			args := s.values()
			_, err := c.exec(ctx, "INSERT INTO meter_pending ("+meterColumns+") VALUES ("+placeholders(1, len(args))+")", args...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record usage of conversations: %w", err)
	}
	return nil
}

const meterColumns = "day, owner, namespace, agent, model, " + meterCounts

// values returns the values of the columns.
func (s *MeterEntry) values() []any {
	out := []any{dayNumber(s.Date), s.Owner, s.Namespace, s.Agent, s.Model}
	for _, n := range s.counterFields() {
		out = append(out, *n)
	}
	return out
}

// mergeMeter moves up to limit pending entries to their totals and returns how
// many it moved.
func (c conn) mergeMeter(ctx context.Context, limit int) (int, error) {
	moved, err := execReturning[meterSum](ctx, c, "DELETE FROM meter_pending WHERE id IN (SELECT id FROM meter_pending ORDER BY id LIMIT $1 "+c.db.dialect.skipLocked+
		") RETURNING day, owner, namespace, agent, model, "+meterCounts, limit)
	if err != nil {
		return 0, err
	}
	sums := map[MeterEntry]*MeterEntry{} // by their keys
	for _, m := range moved {
		key := MeterEntry{Date: m.Date, Owner: m.Owner, Namespace: m.Namespace, Agent: m.Agent, Model: m.Model}
		if sums[key] == nil {
			sums[key] = &MeterEntry{Date: m.Date, Owner: m.Owner, Namespace: m.Namespace, Agent: m.Agent, Model: m.Model}
		}
		sums[key].Add(m.MeterEntry)
	}
	// A fixed order prevents deadlocks between nodes.
	all := slices.SortedFunc(maps.Values(sums), func(a, b *MeterEntry) int {
		return cmp.Or(a.Date.Compare(b.Date), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Model, b.Model))
	})
	for _, s := range all {
		args := s.values()
		_, err := c.exec(ctx, "INSERT INTO meter ("+meterColumns+") VALUES ("+placeholders(1, len(args))+`)
			ON CONFLICT (day, owner, namespace, agent, model) DO UPDATE SET turns = meter.turns + excluded.turns, loads = meter.loads + excluded.loads,
			calls = meter.calls + excluded.calls, errors = meter.errors + excluded.errors, input = meter.input + excluded.input, output = meter.output + excluded.output,
			cache_read = meter.cache_read + excluded.cache_read, cache_write = meter.cache_write + excluded.cache_write, untold = meter.untold + excluded.untold`, args...)
		if err != nil {
			return 0, err
		}
	}
	return len(moved), nil
}

// GroupBy is the column by which totals are grouped.
type GroupBy string

// Columns for grouping.
const (
	ByDay   GroupBy = "day"
	ByModel GroupBy = "model"
	ByUser  GroupBy = "user"
	ByAgent GroupBy = "agent"
)

// MeterQuery selects entries and specifies how to group their totals.
type MeterQuery struct {
	GroupBy   GroupBy
	Since     time.Time // first day to include
	Owner     string    // a user id; "" for all
	Namespace Namespace // namespace of the agents; "" for all
}

// meterSum is a result row with the total of a group: its key, model and
// counters.
type meterSum struct{ MeterEntry }

// meterRows selects the totals and the pending entries.
const meterRows = "(SELECT " + meterColumns + " FROM meter UNION ALL SELECT " + meterColumns + " FROM meter_pending)"

// MaxSums is the maximum number of totals that [Meter.Sum] returns.
const MaxSums = 10_000

// Sum returns up to [MaxSums] totals, one for each model and value of
// q.GroupBy. With [ByDay], the oldest day comes first; otherwise, the totals
// are sorted by tokens in descending order.
func (t Meter) Sum(ctx context.Context, q MeterQuery) ([]MeterEntry, error) {
	keys := map[GroupBy]string{
		ByDay: "m.day, '', '', ''", ByModel: "CAST(0 AS BIGINT), '', '', ''",
		ByUser: "CAST(0 AS BIGINT), m.owner, '', ''", ByAgent: "CAST(0 AS BIGINT), '', m.namespace, m.agent",
	}[q.GroupBy]
	groups := map[GroupBy]string{ByDay: "m.day, m.model", ByModel: "m.model", ByUser: "m.owner, m.model", ByAgent: "m.namespace, m.agent, m.model"}[q.GroupBy]
	if keys == "" {
		return nil, fmt.Errorf("sum usage of conversations: %w: cannot group by %.40q", ErrInvalid, q.GroupBy)
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
	found, err := queryAll[meterSum](ctx, t.c, "SELECT "+keys+", m.model"+sums+" FROM "+meterRows+" m WHERE "+where+" GROUP BY "+groups+" ORDER BY "+order+fmt.Sprintf(" LIMIT %d", MaxSums), args...)
	if err != nil {
		return nil, fmt.Errorf("sum usage of conversations: %w", err)
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
	for _, n := range s.counterFields() {
		out = append(out, n)
	}
	return out
}
