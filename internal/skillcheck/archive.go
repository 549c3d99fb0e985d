package skillcheck

import (
	"errors"
	"io"

	"github.com/loadout-dev/loadout/skill"
)

// Archive holds the result of inspecting a skill archive.
type Archive struct {
	// Problems lists the reasons for rejecting the archive, or the problems of
	// a skill that can be loaded anyway.
	Problems []skill.Refusal
	// Skill and Manifest are nil if the archive is rejected.
	Skill    *skill.Skill
	Manifest skill.Manifest
}

// InspectArchive validates an archive as a hub validates an upload: its size,
// entries and paths, and the skill in it. It does not unpack the archive.
func InspectArchive(r io.ReaderAt, size int64, name string, anyFolder bool) (*Archive, error) {
	b, err := skill.OpenZIP(r, size, name, skill.Limits{AllowFolderMismatch: anyFolder})
	if refused, ok := errors.AsType[*skill.RefusedError](err); ok {
		return &Archive{Problems: refused.Refusals}, nil
	}
	if err != nil {
		return nil, err
	}
	out := &Archive{}
	refuse := func(r skill.Refusal) { out.Problems = append(out.Problems, r) }
	s, ds, err := skill.Parse(b.FS, b.Folder)
	if err != nil {
		refuse(skill.Refusal{Entry: skill.FileName, Code: "damaged", Message: "cannot unpack: " + err.Error()})
		return out, nil
	}
	for _, d := range ds {
		if d.Severity == skill.Error {
			refuse(skill.Refusal{Entry: skill.FileName, Code: d.Code, Message: d.Message})
		}
	}
	if s == nil || !ds.Loads() {
		return out, nil
	}
	m, _, err := skill.ReadManifest(b.FS)
	if err != nil {
		refuse(skill.Refusal{Code: "damaged", Message: err.Error()})
		return out, nil
	}
	out.Skill, out.Manifest = s, m
	return out, nil
}
