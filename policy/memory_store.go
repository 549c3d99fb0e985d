package policy

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
)

// NewMemoryStore returns an empty store that holds grants in memory only. It
// does not need to be closed.
func NewMemoryStore() Store { return NewStore(&memoryRows{rows: map[string]Row{}}) }

type memoryRows struct {
	mu   sync.Mutex
	rows map[string]Row // by ID
}

func (m *memoryRows) List(_ context.Context, ids []string) ([]Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ids == nil {
		return slices.Collect(maps.Values(m.rows)), nil
	}
	var rows []Row
	for _, id := range ids {
		if r, ok := m.rows[id]; ok {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

func (m *memoryRows) Put(_ context.Context, r Row) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows[r.ID] = r
	return nil
}

func (m *memoryRows) Delete(_ context.Context, r Row) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.rows[r.ID]; !ok || !bytes.Equal(old.Data, r.Data) {
		return false, nil
	}
	delete(m.rows, r.ID)
	return true, nil
}
