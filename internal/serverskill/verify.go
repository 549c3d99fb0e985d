package serverskill

import (
	"bytes"
	"fmt"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

// MismatchError reports that content from a server does not match the entry of
// its skill. The content was not used.
type MismatchError struct {
	URI        string // of the file
	What       string // "size", "digest", or the field of the frontmatter
	Want, Got  string // empty for a field of the frontmatter
	InMetadata bool   // What is a field of the frontmatter
}

func (e *MismatchError) Error() string {
	if e.InMetadata {
		return fmt.Sprintf("verify %s: %s in its frontmatter is not as the server listed it", short(e.URI), e.What)
	}
	return fmt.Sprintf("verify %s: %s mismatch: want %s, got %s", short(e.URI), e.What, e.Want, e.Got)
}

// Verify returns a [*MismatchError] unless data is the listed content of the
// file.
func (r Resource) Verify(data []byte) error {
	if int64(len(data)) != r.Size {
		return &MismatchError{URI: r.URI, What: "size", Want: fmt.Sprint(r.Size), Got: fmt.Sprint(len(data))}
	}
	if got := skillfile.Hash(data); got != r.SHA256 {
		return &MismatchError{URI: r.URI, What: "digest", Want: r.SHA256, Got: got}
	}
	return nil
}

// VerifyFrontmatter returns a [*MismatchError] unless the frontmatter of a
// SKILL.md equals that of the entry, field by field.
func (e *Entry) VerifyFrontmatter(data []byte) error {
	s, _ := skill.ParseBytes(data, "", e.Name)
	if s == nil {
		return &MismatchError{URI: e.URI, What: "the YAML", InMetadata: true}
	}
	field, err := s.CompareFrontmatter(e.Frontmatter)
	switch {
	case err != nil:
		return &MismatchError{URI: e.URI, What: "the YAML", InMetadata: true}
	case field != "":
		return &MismatchError{URI: e.URI, What: field, InMetadata: true}
	}
	return nil
}

// Change is a difference between two entries of a skill.
type Change struct {
	Path string // of a file; "" for the frontmatter
	Kind string // added, removed or changed
}

// Compare returns the files that differ between two entries of a skill, and
// whether the frontmatter does.
func (e *Entry) Compare(now *Entry) []Change {
	var out []Change
	if !bytes.Equal(e.Frontmatter, now.Frontmatter) {
		out = append(out, Change{"", "changed"})
	}
	for _, r := range e.Resources {
		switch other, ok := now.Find(r.Path); {
		case !ok:
			out = append(out, Change{r.Path, "removed"})
		case other != r:
			out = append(out, Change{r.Path, "changed"})
		}
	}
	for _, r := range now.Resources {
		if _, ok := e.Find(r.Path); !ok {
			out = append(out, Change{r.Path, "added"})
		}
	}
	return out
}
