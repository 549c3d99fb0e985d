package hub_test

import (
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

var authorityOfImports = []row{
	// operation, on what                    nobody out rep dev mai own adm
	{"look-at-source", "a place that none may name", nil, aFolder, "401 404 403 422 422 422 422", "422 write"},
	{"import-skills", "a place that none may name", nil, aFolder, "401 404 403 422 422 422 422", "422 write"},
	{"update-skills", "all of the group, which are none", nil, allOfTheGroup, "401 404 403 200 200 200 200", "200 write"},
	{"update-skills", "one that was uploaded", nil, aSkillOfGroup, "401 404 403 200 200 200 200", "200 write"},
	{"get-upgrade", "of one that was uploaded", theSkill, nil, "401 404 403 403 422 422 422", "422 write"},
	{"check-source", "of one that was uploaded", theSkill, nil, "401 404 403 403 422 422 422", "422 write"},
	{"check-source", "of one that was imported", importedSkill, nil, "401 404 403 403 200 200 200", "200 write"},

	{"migrate-source", "a place that none may name", nil, aFolderOfWegent, "401 404 403 422 422 422 422", "422 write"},
	{"migrate", "", fromWegent, anUpload, "401 200 200 200 200 200 200", "200 write"},
	{"migrate", "into the group", fromWegentIntoTheGroup, anUpload, "401 404 403 200 200 200 200", "200 write"},
	{"migrate", "for a user", fromWegentForTheUser, anUpload, "401 404 404 404 404 404 200", "200 write"},

	{"list-defaults", "of the group", ofTheGroup, nil, "401 404 200 200 200 200 200", "200 read chat"},
	{"list-defaults", "of oneself", nil, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"list-defaults", "of somebody else", ofTheUser, nil, "401 404 404 404 404 404 200", "200 read chat"},
	{"choose-defaults", "", nil, nil, "401 200 200 200 200 200 200", "200 chat"},
	{"set-default", "of the group", groupDefault, aDefault, "401 404 403 200 200 200 200", "200 write"},
	{"set-default", "of oneself, who is in the group but for the admin", theSkill, aDefault, "401 404 200 200 200 200 422", "200 write"},
	{"set-default", "of somebody else", defaultOfTheUser, aDefault, "401 404 404 404 404 404 403", "403 any"},
	{"remove-default", "of the group", groupDefault, nil, "401 404 403 204 204 204 204", "204 write"},

	{"list-ratings", "", theSkill, nil, "401 404 200 200 200 200 200", "200 read chat"},
	{"rate-skill", "of the group", theSkill, aRating, "401 404 204 204 204 204 204", "204 write"},
	{"rate-skill", "of one's own", ownSkill, aRating, "401 403 403 403 403 403 204", "204 write"},
	{"unrate-skill", "", ratedSkill, nil, "401 404 204 204 204 204 204", "204 write"},

	{"get-skill-usage", "", theSkill, nil, "401 404 200 200 200 200 200", "200 read"},
	{"list-usage", "of the group", ofTheGroup, nil, "401 404 200 200 200 200 200", "200 read"},
	{"list-usage", "of everybody", ofEverybody, nil, "401 403 403 403 403 403 200", "200 read"},
	{"list-usage", "of all that one may", nil, nil, "401 200 200 200 200 200 200", "200 read"},
	{"get-usage-totals", "", nil, nil, "401 200 200 200 200 200 200", "200 read"},
	{"get-usage-totals", "with agents of the group", ofTheGroup, nil, "401 404 200 200 200 200 200", "200 read"},
	{"get-usage-totals", "of another user", theirs, nil, "401 404 404 404 404 404 200", "200 read"},
	{"list-unused", "of the group", ofTheGroup, nil, "401 404 200 200 200 200 200", "200 read"},
	{"list-unused", "of everybody", ofEverybody, nil, "401 403 403 403 403 403 200", "200 read"},

	{"list-notices", "", nil, nil, "401 200 200 200 200 200 200", "200 read"},
	{"see-notice", "of somebody else", noticeOfTheUser, nil, "401 404 404 404 404 404 404", "404 read"},
	{"see-notice", "of oneself", noticeOfMine, nil, "401 204 204 204 204 204 204", "204 read"},

	{"get-skill-index", "", nil, nil, "401 200 200 200 200 200 200", "200 read"},
}

func fromWegent(*scene) map[string]string { return map[string]string{"?system": "wegent&apply=true"} }
func fromWegentIntoTheGroup(s *scene) map[string]string {
	return map[string]string{"?system": "wegent&apply=true&namespace=group:" + s.group}
}
func fromWegentForTheUser(s *scene) map[string]string {
	return map[string]string{"?system": "wegent&apply=true&namespace=user:" + s.victim}
}
func anUpload(s *scene) any {
	return archiveOf(s.t, map[string]string{s.name("new") + "/SKILL.md": "---\nname: " + s.name("new") + "\ndescription: Does it.\n---\nDo it.\n"})
}

func aFolder(s *scene) any {
	return map[string]string{"source": "./folder", "namespace": "group:" + s.group}
}
func aFolderOfWegent(s *scene) any {
	return map[string]string{"system": "wegent", "source": "./folder", "namespace": "group:" + s.group}
}
func allOfTheGroup(s *scene) any { return map[string]string{"namespace": "group:" + s.group} }
func aSkillOfGroup(s *scene) any {
	return map[string]any{"namespace": "group:" + s.group, "ids": []string{s.skill().ID}}
}
func aDefault(*scene) any { return map[string]bool{"forcePreload": true} }
func aRating(*scene) any  { return map[string]any{"stars": 4, "words": "It does what it says."} }

// importedSkill is a skill whose source no hub may read.
func importedSkill(s *scene) map[string]string {
	params := theSkill(s)
	source := []byte(`{"kind": "git", "url": "https://127.0.0.1/skills.git", "dir": ".", "by": "` + s.owner + `"}`)
	s.do(s.node.DB().Skills.Update(s.t.Context(), params["skill"], "", source))
	return params
}

func groupDefault(s *scene) map[string]string {
	id := s.skill().ID
	s.do(s.node.DB().Defaults.Put(s.t.Context(), store.Default{Namespace: store.GroupNamespace(s.group), SkillID: id}))
	return map[string]string{"skill": id, "?namespace": "group:" + s.group}
}

func defaultOfTheUser(s *scene) map[string]string {
	params := theSkill(s)
	params["?namespace"] = "user:" + s.victim
	return params
}

func ownSkill(s *scene) map[string]string {
	if s.asker() == "" {
		return theSkill(s)
	}
	return map[string]string{"skill": s.skillIn(store.UserNamespace(s.asker()), s.asker()).ID}
}

func ratedSkill(s *scene) map[string]string {
	params := theSkill(s)
	if user := s.asker(); user != "" {
		s.do(s.node.DB().Ratings.Put(s.t.Context(), store.Rating{SkillID: params["skill"], UserID: user, Stars: 3}))
	}
	return params
}

func noticeOfTheUser(s *scene) map[string]string {
	return map[string]string{"notice": s.notice(s.victim)}
}
func noticeOfMine(s *scene) map[string]string {
	if s.asker() == "" {
		return noticeOfTheUser(s)
	}
	return map[string]string{"notice": s.notice(s.asker())}
}

// asker returns the ID of the user who sends the request, "" if not signed in.
func (s *scene) asker() string {
	u, err := s.node.DB().Users.ByName(s.t.Context(), s.name("actor"))
	if err != nil {
		return ""
	}
	return u.ID
}

// notice tells a user of something, and returns its id.
func (s *scene) notice(user string) string {
	n := store.Notification{ID: s.name("notice"), UserID: user, Kind: library.VersionAdded, Subject: "pdf@2", Data: []byte(`{"name": "pdf", "number": 2}`)}
	_, err := s.node.DB().Notifications.Add(s.t.Context(), n)
	s.do(err)
	return n.ID
}
