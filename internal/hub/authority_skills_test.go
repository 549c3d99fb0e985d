package hub_test

import (
	"bytes"
	"mime/multipart"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// The skill that rows are about was uploaded to the group by an owner of it.
var authorityOfSkills = []row{
	// operation, on what                    nobody out rep dev mai own adm
	{"list-skills", "", nil, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"list-skills", "of the group", ofTheGroup, nil, "401 404 200 200 200 200 200", "200 read chat"},
	{"list-skills", "of the group, also hidden ones", hiddenOfTheGroup, nil, "401 404 403 403 200 200 200", "200 write"},
	{"list-skill-sections", "", nil, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"list-skills", "of a user", ofTheUser, nil, "401 404 404 404 404 404 200", "200 read chat"},
	{"create-skill", "", nil, aPackage, "401 201 201 201 201 201 201", "201 write"},
	{"create-skill", "of the group", ofTheGroup, aPackage, "401 404 403 201 201 201 201", "201 write"},
	{"create-skill", "of a user", ofTheUser, aPackage, "401 404 404 404 404 404 201", "201 write"},
	{"create-skill", "of everybody", ofEverybody, aPackage, "401 403 403 403 403 403 201", "201 write"},
	{"get-skill", "", theSkill, nil, "401 404 200 200 200 200 200", "200 read chat"},
	{"get-skill", "hidden", theHiddenSkill, nil, "401 404 404 404 200 200 200", "200 read chat"},
	{"get-skill", "published", thePublicSkill, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"get-skill", "of a user", theirSkill, nil, "401 404 404 404 404 404 200", "200 read chat"},
	{"change-skill", "", theSkill, toHide, "401 404 403 403 200 200 200", "200 write"},
	{"change-skill", "published", thePublicSkill, toHide, "401 403 403 403 200 200 200", "200 write"},
	{"delete-skill", "", theSkill, nil, "401 404 403 403 200 200 200", "200 write"},
	{"delete-skill", "of a user", theirSkill, nil, "401 404 404 404 404 404 200", "200 write"},
	{"delete-skill", "that is in use", theSkillInUse, nil, "401 404 403 403 400 400 400", "400 write"},
	{"delete-skill", "that is in use, and what would keep it", drily, nil, "401 404 403 403 200 200 200", "200 write"},
	{"publish-skill", "to everybody", toEverybody, nil, "401 403 403 403 403 403 204", "204 write"},
	{"publish-skill", "to a group of one's own", toAnotherGroup, nil, "401 404 403 403 204 204 204", "204 write"},
	{"withdraw-skill", "", fromEverybody, nil, "401 403 403 403 200 200 200", "200 write"},
	{"list-references", "", theSkill, nil, "401 404 403 403 200 200 200", "200 write"},
	{"remove-references", "", theSkillInUse, nil, "401 404 403 403 200 200 200", "200 write"},
	{"remove-reference", "", theReference, nil, "401 404 403 403 204 204 204", "204 write"},
	{"search-skills", "", forSkills, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"check-draft", "", nil, aDraft, "401 200 200 200 200 200 200", "200 read chat"},
	{"check-draft", "for the group", nil, aDraftOfTheGroup, "401 404 200 200 200 200 200", "200 read chat"},
	{"check-draft", "for a user", nil, aDraftOfTheUser, "401 404 404 404 404 404 200", "200 read chat"},
	{"check-draft", "of a skill of the group", nil, aDraftOfTheSkill, "401 404 200 200 200 200 200", "200 read chat"},
	{"check-draft", "of a user's skill", nil, aDraftOfTheirSkill, "401 404 404 404 404 404 200", "200 read chat"},
	{"find-draft", "", nil, asking(aDraft), "401 200 200 200 200 200 200", "200 read chat"},
	{"find-draft", "for the group", nil, asking(aDraftOfTheGroup), "401 404 200 200 200 200 200", "200 read chat"},
	{"find-draft", "of a skill of the group", nil, asking(aDraftOfTheSkill), "401 404 200 200 200 200 200", "200 read chat"},
	{"find-draft", "of a user's skill", nil, asking(aDraftOfTheirSkill), "401 404 404 404 404 404 200", "200 read chat"},
	{"pack-draft", "", nil, aDraft, "401 200 200 200 200 200 200", "200 read chat"},
	{"pack-draft", "of a user's skill", nil, aDraftOfTheirSkill, "401 404 404 404 404 404 200", "200 read chat"},
	{"explain-skill", "", byName, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"resolve-skill", "", byID, nil, "401 404 200 200 200 200 200", "200 chat"},
	{"resolve-skill", "of a name of the group", byName, nil, "401 404 200 200 200 200 404", "200 chat"},
}

func hiddenOfTheGroup(s *scene) map[string]string {
	return map[string]string{"?namespace": "group:" + s.group + "&hidden=true"}
}
func ofEverybody(*scene) map[string]string { return map[string]string{"?namespace": "public"} }
func theSkill(s *scene) map[string]string {
	return map[string]string{"skill": s.skill().ID, "version": "current"}
}

func theHiddenSkill(s *scene) map[string]string {
	id := s.skill().ID
	s.do(s.node.DB().Skills.SetHidden(s.t.Context(), id, true))
	return map[string]string{"skill": id}
}

func thePublicSkill(s *scene) map[string]string {
	id := s.skill().ID
	s.do(s.node.DB().Skills.Publish(s.t.Context(), id, store.Public, s.owner))
	return map[string]string{"skill": id, "version": "current"}
}

func theirSkill(s *scene) map[string]string {
	return map[string]string{"skill": s.skillIn(store.UserNamespace(s.victim), s.victim).ID, "version": "current"}
}

// theSkillInUse creates a skill that is a default of a user.
func theSkillInUse(s *scene) map[string]string {
	id := s.skill().ID
	s.do(s.node.DB().Defaults.Put(s.t.Context(), store.Default{Namespace: store.UserNamespace(s.victim), SkillID: id, CreatedBy: s.victim}))
	return map[string]string{"skill": id}
}

func drily(s *scene) map[string]string {
	return map[string]string{"skill": theSkillInUse(s)["skill"], "?dry": "true"}
}

func theReference(s *scene) map[string]string {
	return map[string]string{"skill": theSkillInUse(s)["skill"], "kind": "Default", "reference": "user:" + s.victim}
}

func toEverybody(s *scene) map[string]string {
	return map[string]string{"skill": s.skill().ID, "namespace": "public"}
}

func fromEverybody(s *scene) map[string]string {
	return map[string]string{"skill": thePublicSkill(s)["skill"], "namespace": "public"}
}

// toAnotherGroup returns another group in which the acting user is a developer.
func toAnotherGroup(s *scene) map[string]string {
	g := must(s.node.DB().Groups.Create(s.t.Context(), store.Group{Name: s.name("other")}))(s.t)
	if actor, err := s.node.DB().Users.ByName(s.t.Context(), s.name("actor")); err == nil {
		s.do(s.node.DB().Groups.SetMember(s.t.Context(), store.Member{GroupID: g.ID, UserID: actor.ID, Role: store.Developer}))
	}
	return map[string]string{"skill": s.skill().ID, "namespace": "group:" + g.ID}
}

func forSkills(s *scene) map[string]string { return map[string]string{"?q": s.skill().Name} }
func byName(s *scene) map[string]string    { return map[string]string{"?name": s.skill().Name} }
func byID(s *scene) map[string]string      { return map[string]string{"?skill_id": s.skill().ID} }

func aPackage(s *scene) any { return zipped(s.t, s.name("new"), "Do it.") }

func toHide(*scene) any { return map[string]bool{"hidden": true} }

func (s *scene) do(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// as is a user with all scopes.
func (s *scene) as(user string) caller {
	text, _ := s.token(user, account.AllScopes)
	return caller{node: s.node, token: text}
}

// skill is a skill of the group, which an owner uploads the first time.
func (s *scene) skill() store.Skill { return s.skillIn(store.GroupNamespace(s.group), s.owner) }

func (s *scene) skillIn(in store.Namespace, by string) store.Skill {
	s.t.Helper()
	find := func() []store.Candidate {
		return must(s.node.DB().Skills.Find(s.t.Context(), s.name("skill"), []store.Namespace{in}))(s.t)
	}
	if len(find()) == 0 {
		s.as(by).send(s.t, "POST", "/api/v1/skills?namespace="+string(in), zipped(s.t, s.name("skill"), "Do it.", "scripts/run.sh", "#!/bin/sh\n")).want(s.t, 201)
	}
	return find()[0].Skill
}

// zipped is a package of a skill with a body, and further files by path and content, in
// a form.
func zipped(t testing.TB, name, text string, more ...string) typed {
	t.Helper()
	return inForm(t, name+".zip", zipOf(t, name, skillFiles(name, text, more...)))
}

func skillFiles(name, text string, more ...string) fstest.MapFS {
	files := fstest.MapFS{"SKILL.md": {Data: []byte("---\nname: " + name + "\ndescription: Does what " + name + " does.\n---\n" + text + "\n")}}
	for i := 0; i+1 < len(more); i += 2 {
		files[more[i]] = &fstest.MapFile{Data: []byte(more[i+1])}
	}
	return files
}

// zipOf returns an archive of files in one folder.
func zipOf(t testing.TB, folder string, files fstest.MapFS) string {
	t.Helper()
	var out bytes.Buffer
	if _, _, err := skill.WriteZIP(&out, files, folder); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// inForm is a form with a file.
func inForm(t testing.TB, fileName, data string) typed {
	t.Helper()
	var out bytes.Buffer
	form := multipart.NewWriter(&out)
	part := must(form.CreateFormFile("file", fileName))(t)
	if _, err := part.Write([]byte(data)); err != nil {
		t.Fatal(err)
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	return typed{form.FormDataContentType(), out.String()}
}
