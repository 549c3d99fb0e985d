package library

// SkillIdentifier is a catalog source that knows the hub IDs of its skills.
// [Library.Sources] and [Library.BoundSource] return such sources.
type SkillIdentifier interface {
	// SkillID returns the ID of the skill in a directory of the source, or "" if
	// there is none. It does not block.
	SkillID(dir string) string
}

var (
	_ SkillIdentifier = (*namespaceSource)(nil)
	_ SkillIdentifier = (*boundSource)(nil)
)

// Identify returns a [SkillIdentifier] for the skills that a namespace lists.
func (l *Library) Identify(n Namespace) SkillIdentifier { return &namespaceSource{l: l, in: n} }

// SkillID implements [SkillIdentifier].
func (s *namespaceSource) SkillID(dir string) string {
	shelf := s.l.index
	shelf.mu.Lock()
	defer shelf.mu.Unlock()
	if sh := shelf.namespaces[s.in]; sh != nil && sh.byName[dir] != nil {
		return sh.byName[dir].id
	}
	return ""
}

// SkillID implements [SkillIdentifier].
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

// Namespace returns the namespace of the source.
func (s *namespaceSource) Namespace() Namespace { return s.in }
