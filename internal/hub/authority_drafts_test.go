package hub_test

import (
	"io/fs"
	"maps"
	"testing"
	"testing/fstest"
)

// Drafts are what rows send to the operations on skills that are being written.

func aDraft(s *scene) any { return s.draft(s.name("new"), nil) }

func aDraftOfTheGroup(s *scene) any {
	return s.draft(s.name("new"), map[string]any{"namespace": "group:" + s.group})
}

func aDraftOfTheUser(s *scene) any {
	return s.draft(s.name("new"), map[string]any{"namespace": "user:" + s.victim})
}

func aDraftOfTheSkill(s *scene) any {
	return s.draft(s.name("skill"), map[string]any{"skill_id": s.skill().ID})
}

func aDraftOfTheirSkill(s *scene) any {
	return s.draft(s.name("skill"), map[string]any{"skill_id": theirSkill(s)["skill"]})
}

func aTrial(s *scene) any             { return map[string]any{"draft": aDraft(s)} }
func aTrialOfTheirSkill(s *scene) any { return map[string]any{"draft": aDraftOfTheirSkill(s)} }

// asking is a draft with something that is searched for.
func asking(draft func(*scene) any) func(*scene) any {
	return func(s *scene) any {
		out := draft(s).(map[string]any)
		out["queries"] = []string{"what it does"}
		return out
	}
}

func (s *scene) draft(name string, more map[string]any) map[string]any {
	out := map[string]any{"files": draftOf(s.t, skillFiles(name, "Do it."))}
	maps.Copy(out, more)
	return out
}

// draftOf are files as operations on drafts take them.
func draftOf(t testing.TB, files fstest.MapFS) []map[string]any {
	t.Helper()
	var out []map[string]any
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, map[string]any{"path": path, "text": string(files[path].Data)})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
