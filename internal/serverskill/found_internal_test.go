package serverskill

import (
	"fmt"
	"strings"
	"testing"
)

// Skills that were requested by URI are forgotten when their entries exceed the memory
// limit, however few they are.
func TestFoundSkillsAreBoundedByMemory(t *testing.T) {
	s := &Source{entries: map[string]*Entry{}, found: map[string]*Entry{}}
	for i := range 20 {
		s.addFound(&Entry{URI: fmt.Sprintf("skill://docs/%d/SKILL.md", i), Frontmatter: []byte(strings.Repeat("x", 1<<20))})
	}
	if n := len(s.found); n != 7 || n != len(s.entries) || s.memory > maxFoundMemory {
		t.Errorf("%d entries in %d bytes are known, %d in all", n, s.memory, len(s.entries))
	}
	for dir := range s.found {
		s.forgetFound(dir)
	}
	if s.memory != 0 {
		t.Errorf("%d bytes remain", s.memory)
	}
}
