package hub_test

import (
	"github.com/loadout-dev/loadout/internal/store"
)

// The skill that rows are about was uploaded to the group by an owner of it.
var authorityOfVersions = []row{
	// operation, on what                    nobody out rep dev mai own adm
	{"list-versions", "", theSkill, nil, "401 404 200 200 200 200 200", "200 read chat"},
	{"add-version", "", theSkill, anotherPackage, "401 404 403 403 201 201 201", "201 write"},
	{"add-version", "of a user's skill", theirSkill, anotherPackage, "401 404 404 404 404 404 201", "201 write"},
	{"get-version", "", theSkill, nil, "401 404 200 200 200 200 200", "200 read chat"},
	{"delete-version", "", twoVersions, nil, "401 404 403 403 204 204 204", "204 write"},
	{"use-version", "", approvedOfTwo, nil, "401 404 403 403 204 204 204", "204 write"},
	{"get-manifest", "", theSkill, nil, "401 404 200 200 200 200 200", "200 read chat"},
	{"get-findings", "", theSkill, nil, "401 404 200 200 200 200 200", "200 read chat"},
	{"get-diff", "", currentOfTwo, nil, "401 404 200 200 200 200 200", "200 read chat"},
	{"get-package", "", theSkill, nil, "401 404 200 200 200 200 200", "200 read"},
	{"get-package", "of a published skill", thePublicSkill, nil, "401 200 200 200 200 200 200", "200 read"},
	{"get-package", "of a user's skill", theirSkill, nil, "401 404 404 404 404 404 200", "200 read"},
	{"get-file", "", itsFile, nil, "401 404 200 200 200 200 200", "200 read chat"},
	{"review-version", "", theVersion, decideApproval, "401 404 403 403 204 204 204", "204 review"},
	{"list-comments", "", theVersion, nil, "401 404 403 200 200 200 200", "200 read chat"},
	{"list-comments", "of a user's skill", theirVersion, nil, "401 404 404 404 404 404 200", "200 read chat"},
	{"add-comment", "", theVersion, aComment, "401 404 403 201 201 201 201", "201 write review"},
	{"add-comment", "of a user's skill", theirVersion, aComment, "401 404 404 404 404 404 201", "201 write review"},
	{"change-comment", "of another user", theComment, aComment, "401 404 403 403 403 403 403", "403 write review"},
	{"delete-comment", "of another user", theComment, nil, "401 404 403 403 204 204 204", "204 review"},
	{"resolve-comment", "", theComment, resolved, "401 404 403 200 200 200 200", "200 write review"},
	{"get-review", "", theVersion, nil, "401 404 403 200 200 200 200", "200 read chat"},
	{"dismiss-changes", "", theChangeRequest, aReason, "401 404 403 403 403 204 204", "204 review"},
	{"list-viewed-files", "", theVersion, nil, "401 404 403 200 200 200 200", "200 read chat"},
	{"set-viewed-file", "", theVersion, viewed, "401 404 403 204 204 204 204", "204 write review"},
	{"list-held-tools", "", theSkill, nil, "401 404 200 200 200 200 200", "200 read chat"},
	{"accept-skill-tools", "", theSkill, toolsOfTheSkill, "401 404 403 403 200 200 200", "200 review"},
	{"list-reviews", "", nil, nil, "401 403 403 403 200 200 200", "200 review"},
	{"list-reviews", "of the group", ofTheGroup, nil, "401 404 403 403 200 200 200", "200 review"},
}

func anotherPackage(s *scene) any { return zipped(s.t, s.name("skill"), "Do it otherwise.") }

func theVersion(s *scene) map[string]string {
	return map[string]string{"skill": s.skill().ID, "version": "1"}
}

// twoVersions is the older one of two.
func twoVersions(s *scene) map[string]string {
	s.anotherVersion()
	return theVersion(s)
}

// approvedOfTwo is the older one of two, which was approved.
func approvedOfTwo(s *scene) map[string]string {
	s.t.Helper()
	if err := s.node.DB().Versions.SetReview(s.t.Context(), s.skill().ID, s.skill().Digest, store.Approved, s.owner, ""); err != nil {
		s.t.Fatal(err)
	}
	return twoVersions(s)
}

func currentOfTwo(s *scene) map[string]string {
	s.anotherVersion()
	return theSkill(s)
}

func itsFile(s *scene) map[string]string {
	return map[string]string{"skill": s.skill().ID, "version": "1", "path": "scripts/run.sh"}
}

func decideApproval(s *scene) any {
	return map[string]string{"decision": string(store.Approved), "digest": s.skill().Digest}
}

// anotherVersion adds a version to the skill of the group.
func (s *scene) anotherVersion() {
	s.t.Helper()
	s.as(s.owner).send(s.t, "POST", "/api/v1/skills/"+s.skill().ID+"/versions", anotherPackage(s)).want(s.t, 201)
}

func theirVersion(s *scene) map[string]string {
	return map[string]string{"skill": theirSkill(s)["skill"], "version": "1"}
}

func aComment(*scene) any { return map[string]string{"text": "Why?"} }

func resolved(*scene) any { return map[string]bool{"resolved": true} }

func viewed(*scene) any { return map[string]any{"path": "SKILL.md", "viewed": true} }

func aReason(*scene) any { return map[string]string{"reason": "It is agreed."} }

// theChangeRequest is a request to change the skill of the group.
func theChangeRequest(s *scene) map[string]string {
	s.t.Helper()
	r := must(s.node.DB().ChangeRequests.Add(s.t.Context(), store.ChangeRequest{SkillID: s.skill().ID, Number: 1, Reviewer: s.victim, Note: "No."}))(s.t)
	return map[string]string{"skill": s.skill().ID, "request": r.ID}
}

// theComment is one of an owner of the group.
func theComment(s *scene) map[string]string {
	s.t.Helper()
	r := s.as(s.owner).send(s.t, "POST", "/api/v1/skills/"+s.skill().ID+"/versions/1/comments", aComment(s)).want(s.t, 201)
	return map[string]string{"skill": s.skill().ID, "comment": r.text(s.t, "comment")}
}
