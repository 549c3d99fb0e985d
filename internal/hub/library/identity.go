package library

// Identified is a source of a library, which knows skills of the database by the
// directories that they have in it. The sources of [Library.Sources] and [Library.Bound]
// are.
type Identified interface {
	// SkillID is the id of the skill in a directory of the source, "" where there is none.
	// It waits for nothing.
	SkillID(dir string) string
}

var (
	_ Identified = (*shelfSource)(nil)
	_ Identified = (*boundSource)(nil)
)

// SkillID implements [Identified].
func (s *shelfSource) SkillID(dir string) string {
	shelf := s.l.shelf
	shelf.mu.Lock()
	defer shelf.mu.Unlock()
	if sh := shelf.shelf[s.in]; sh != nil && sh.byName[dir] != nil {
		return sh.byName[dir].id
	}
	return ""
}

// SkillID implements [Identified].
func (s *boundSource) SkillID(dir string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.known {
		if key.name == dir {
			return key.id
		}
	}
	return ""
}

// Namespace is whose skills the source has.
func (s *shelfSource) Namespace() Namespace { return s.in }
