package catalog

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// sourceSet holds the sources of a catalog, in order of preference. The set is
// immutable; the states of its sources are not.
type sourceSet struct {
	all      []*sourceState
	replaced chan struct{} // closed when the catalog has another set
}

// sourceState holds a source and the result of reading it. [Catalog.state]
// guards all fields but source.
type sourceState struct {
	source   Source
	listing  layered // result of the last successful read
	failed   error   // error of the last read, if it failed
	duration time.Duration
	pending  pending
}

// newSourceSet returns a set of sources. Sources that are also in before keep
// their states. before may be nil.
func newSourceSet(sources []Source, before *sourceSet) *sourceSet {
	set := &sourceSet{all: make([]*sourceState, len(sources)), replaced: make(chan struct{})}
	for i, src := range sources {
		if set.all[i] = before.find(src); set.all[i] == nil {
			set.all[i] = &sourceState{source: src}
		}
	}
	return set
}

// find returns the state of a source, or nil if the source is not in the set.
func (set *sourceSet) find(src Source) *sourceState {
	if set == nil || !reflect.ValueOf(src).Comparable() {
		return nil
	}
	i := slices.IndexFunc(set.all, func(s *sourceState) bool { return s.source.Origin() == src.Origin() })
	if i < 0 || !reflect.ValueOf(set.all[i].source).Comparable() || set.all[i].source != src {
		return nil
	}
	return set.all[i]
}

// checkLabels returns an error if the label of a source is invalid or not unique.
func checkLabels(sources []Source) error {
	origins := map[string]bool{}
	for _, s := range sources {
		if !isLabel(s.Origin()) {
			return fmt.Errorf("invalid skill source label %q: want lower-case letters, digits, dots and hyphens", s.Origin())
		}
		if origins[s.Origin()] {
			return fmt.Errorf("duplicate skill source label %s", s.Origin())
		}
		origins[s.Origin()] = true
	}
	return nil
}

// isLabel reports whether s is a valid source label. Labels are part of
// references and URIs.
func isLabel(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-'
	})
}

// Sources returns a new slice of the sources in order of preference.
func (c *Catalog) Sources() []Source {
	all := c.sources.Load().all
	out := make([]Source, len(all))
	for i, s := range all {
		out[i] = s.source
	}
	return out
}

// SetSources replaces the sources. Sources that were in the catalog before keep
// their skills. If sources were removed or reordered, SetSources publishes a
// snapshot, which has a problem for each new source. It then reads the new sources
// like [Catalog.Reload]. Before the first Reload, it reads nothing. It returns an error and changes nothing if a label is
// invalid or not unique. If ctx is done, it returns an error after it has replaced
// the sources.
func (c *Catalog) SetSources(ctx context.Context, sources []Source) error {
	if err := checkLabels(sources); err != nil {
		return err
	}
	c.state.Lock()
	before := c.sources.Load()
	now := newSourceSet(sources, before)
	c.sources.Store(now)
	close(before.replaced)
	read := c.started
	kept := slices.DeleteFunc(slices.Clone(now.all), func(s *sourceState) bool { return !slices.Contains(before.all, s) })
	if read && !slices.Equal(kept, before.all) && c.current.Load().Version > 0 {
		c.publish(c.build())
	}
	c.state.Unlock()
	added := slices.DeleteFunc(slices.Clone(now.all), func(s *sourceState) bool { return slices.Contains(before.all, s) })
	if !read || len(added) == 0 {
		return nil
	}
	return c.refresh(ctx, added)
}
