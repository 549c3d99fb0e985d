package hub_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// A conversation is its owner's alone. An administrator may know of it, and end what runs.
var authorityOfSessions = []row{
	// operation, on what                    nobody out rep dev mai own adm
	{"list-sessions", "", ofTheOwner, nil, "401 404 404 404 404 404 403", "403 any"},
	{"list-sessions", "of oneself", nil, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"search-sessions", "", aQuery, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"begin-session", "", nil, aSession, "401 201 201 201 201 201 201", "201 chat"},
	{"begin-session", "with a draft", nil, aTrial, "401 201 201 201 201 201 201", "201 chat"},
	{"begin-session", "with a draft of a user's skill", nil, aTrialOfTheirSkill, "401 404 404 404 404 404 201", "201 chat"},
	{"begin-session", "with an agent of the group", nil, anAgentOfTheGroup, "401 422 403 201 201 201 201", "403 any"},
	{"get-session", "", theirSession, nil, "401 404 404 404 404 404 403", "403 any"},
	{"get-session", "of oneself", mySession, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"change-session", "", theirSession, aTitle, "401 404 404 404 404 404 403", "403 any"},
	{"change-session", "of oneself", mySession, aTitle, "401 200 200 200 200 200 200", "200 chat"},
	{"change-session", "to a Model of the group", mySession, aModelOfTheGroup, "401 422 200 200 200 200 403", "200 chat"},
	{"begin-session", "with a Model of the group", nil, aModelOfTheGroup, "401 422 201 201 201 201 403", "201 chat"},
	{"change-session", "organized", theirSession, anOrganization, "401 404 404 404 404 404 403", "403 any"},
	{"change-session", "of oneself, organized", mySession, anOrganization, "401 200 200 200 200 200 200", "200 chat"},
	{"change-session", "into a folder of another user", mySession, theFolderOfAnother, "401 422 422 422 422 422 422", "422 chat"},
	{"list-folders", "", nil, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"create-folder", "", nil, aFolderName, "401 201 201 201 201 201 201", "201 chat"},
	{"rename-folder", "", theirFolder, aFolderName, "401 404 404 404 404 404 404", "404 chat"},
	{"rename-folder", "of oneself", myFolder, aFolderName, "401 204 204 204 204 204 204", "204 chat"},
	{"delete-folder", "", theirFolder, nil, "401 404 404 404 404 404 404", "404 chat"},
	{"delete-folder", "of oneself", myFolder, nil, "401 204 204 204 204 204 204", "204 chat"},
	{"delete-session", "", theirSession, nil, "401 404 404 404 404 404 403", "403 any"},
	{"delete-session", "of oneself", mySession, nil, "401 204 204 204 204 204 204", "204 chat"},
	{"say", "", theirSession, aMessage, "401 404 404 404 404 404 403", "403 any"},
	{"say", "of oneself", mySession, aMessage, "401 202 202 202 202 202 202", "202 chat"},
	{"get-history", "", theirSession, nil, "401 404 404 404 404 404 403", "403 any"},
	{"get-history", "of oneself", mySession, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"list-session-events", "", theirSession, nil, "401 404 404 404 404 404 403", "403 any"},
	{"list-session-events", "of oneself", mySession, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"watch-session", "", theirSession, nil, "401 404 404 404 404 404 403", "403 any"},
	{"watch-session", "of oneself", myEvents, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"watch-session", "of oneself, to act", myRequests, nil, "401 200 200 200 200 200 200", "200 chat"},
	{"cancel-session", "", theirSession, nil, "401 404 404 404 404 404 204", "204 chat admin"},
	{"cancel-session", "of oneself", mySession, nil, "401 204 204 204 204 204 204", "204 chat admin"},
	{"compact-session", "", theirSession, nil, "401 404 404 404 404 404 403", "403 any"},
	{"compact-session", "of oneself", mySession, nil, "401 202 202 202 202 202 202", "202 chat"},
	{"branch-session", "", theirSession, aBranch, "401 404 404 404 404 404 403", "403 any"},
	{"branch-session", "of oneself", mySession, aBranch, "401 202 202 202 202 202 202", "202 chat"},
	{"get-session-usage", "", theirSession, nil, "401 404 404 404 404 404 403", "403 any"},
	{"get-session-usage", "of oneself", mySession, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"list-session-skills", "", theirSession, nil, "401 404 404 404 404 404 403", "403 any"},
	{"list-session-skills", "of oneself", mySession, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"load-session-skill", "", theirSession, aSkillName, "401 404 404 404 404 404 403", "403 any"},
	{"load-session-skill", "of oneself, but there is none", mySession, aSkillName, "401 200 200 200 200 200 200", "200 chat"},
	{"unload-session-skill", "", theirSession, nil, "401 404 404 404 404 404 403", "403 any"},
	{"unload-session-skill", "of oneself, but it is not in force", mySession, nil, "401 409 409 409 409 409 409", "409 chat"},
	{"list-session-files", "", theirSession, nil, "401 404 404 404 404 404 403", "403 any"},
	{"list-session-files", "of oneself", mySession, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"read-session-file", "", theirSession, nil, "401 404 404 404 404 404 403", "403 any"},
	{"read-session-file", "of oneself", mySession, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"write-session-file", "", theirSession, aFile, "401 404 404 404 404 404 403", "403 any"},
	{"write-session-file", "of oneself", mySession, aFile, "401 204 204 204 204 204 204", "204 chat"},
	{"delete-session-file", "", theirSession, nil, "401 404 404 404 404 404 403", "403 any"},
	{"delete-session-file", "of oneself", mySession, nil, "401 204 204 204 204 204 204", "204 chat"},
	{"read-session-image", "", theirSession, nil, "401 404 404 404 404 404 403", "403 any"},
	{"read-session-image", "of oneself", mySession, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"say", "with an image", mySession, anImage, "401 202 202 202 202 202 202", "202 chat"},
	{"say", "with an image of another user", theirSession, anImage, "401 404 404 404 404 404 403", "403 any"},
	{"export-session", "", theirSession, nil, "401 404 404 404 404 404 403", "403 any"},
	{"export-session", "of oneself", mySession, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"preview-share", "", theirSession, nil, "401 404 404 404 404 404 403", "403 any"},
	{"preview-share", "of oneself", mySession, nil, "401 200 200 200 200 200 200", "200 chat"},
	{"share-session", "", theirSession, aShare, "401 404 404 404 404 404 403", "403 any"},
	{"share-session", "of oneself, with another digest", mySession, aShare, "401 409 409 409 409 409 409", "409 chat"},
	{"list-shares", "", ofTheOwner, nil, "401 404 404 404 404 404 200", "200 read chat"},
	{"list-shares", "of oneself", nil, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"list-shares", "of all users", ofAll, nil, "401 403 403 403 403 403 200", "200 read chat"},
	{"revoke-share", "", theirShare, nil, "401 404 404 404 404 404 204", "204 chat admin"},
	{"revoke-share", "of oneself", myShare, nil, "401 204 204 204 204 204 204", "204 chat admin"},
	{"get-shared", "", theirShare, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"get-shared", "with anyone who has the link", theirLink, nil, "200 200 200 200 200 200 200", "200 any"},
	{"get-shared-file", "", theirShare, nil, "401 200 200 200 200 200 200", "200 read chat"},
	{"get-shared-file", "with anyone who has the link", theirLink, nil, "200 200 200 200 200 200 200", "200 any"},
	{"open-socket", "without opening one", nil, nil, "401 426 426 426 426 426 426", "426 read chat"},

	{"list-asks", "of oneself", nil, nil, "401 200 200 200 200 200 200", "200 chat"},
	{"answer-ask", "", theirSession, anAnswer, "401 404 404 404 404 404 403", "403 any"},
	{"answer-ask", "of oneself", mySession, anAnswer, "401 204 204 204 204 204 204", "204 chat"},
	{"respond", "", nil, theirResponse, "401 404 404 404 404 404 403", "403 any"},
	{"respond", "of oneself", nil, myResponse, "401 200 200 200 200 200 200", "200 chat"},
}

func ofTheOwner(s *scene) map[string]string { return map[string]string{"?owner": s.victim} }

func aQuery(*scene) map[string]string { return map[string]string{"?q": "tides"} }

func theirSession(s *scene) map[string]string { return s.talkOf(s.victim) }
func mySession(s *scene) map[string]string    { return s.talkOf(s.actor()) }

func myEvents(s *scene) map[string]string {
	p := mySession(s)
	p["?follow"] = "false"
	return p
}

func myRequests(s *scene) map[string]string {
	p := mySession(s)
	p["?attend"] = "true&follow=false"
	return p
}

func ofAll(*scene) map[string]string { return map[string]string{"?owner": "all"} }

func theirShare(s *scene) map[string]string { return s.shareOf(s.victim, chat.Members) }
func theirLink(s *scene) map[string]string  { return s.shareOf(s.victim, chat.WithLink) }
func myShare(s *scene) map[string]string    { return s.shareOf(s.actor(), chat.Members) }

// shareOf shares a conversation of a user.
func (s *scene) shareOf(user string, a chat.Audience) map[string]string {
	s.t.Helper()
	ctx, chats := s.t.Context(), s.node.Chat()
	p := account.Principal{User: account.UserID(user), Scopes: account.AllScopes}
	c := must(chats.Create(ctx, p, "", "Tides"))(s.t)
	if err := chats.WriteFile(ctx, p, c.ID, "dot.gif", dot); err != nil {
		s.t.Fatal(err)
	}
	o := chat.ShareOptions{Files: []string{"dot.gif"}}
	digest := must(chats.PreviewShare(ctx, p, c.ID, o))(s.t).Digest
	made := must(chats.CreateShare(ctx, p, c.ID, chat.ShareRequest{ShareOptions: o, Digest: digest, Audience: a}))(s.t)
	return map[string]string{"share": made.ID, "link": made.Link, "ref": hashOf(dot)}
}

func theirFolder(s *scene) map[string]string { return s.folderOf(s.victim) }
func myFolder(s *scene) map[string]string    { return s.folderOf(s.actor()) }

// folderOf creates a folder of a user.
func (s *scene) folderOf(user string) map[string]string {
	s.t.Helper()
	p := account.Principal{User: account.UserID(user), Scopes: account.AllScopes}
	return map[string]string{"folder": must(s.node.Chat().CreateFolder(s.t.Context(), p, store.NewID()))(s.t).ID}
}

func aFolderName(*scene) any { return map[string]string{"name": "Tides"} }
func anOrganization(*scene) any {
	return map[string]any{"pinned": true, "archived": true, "folder": ""}
}
func theFolderOfAnother(s *scene) any {
	return map[string]any{"folder": theirFolder(s)["folder"]}
}

func aShare(*scene) any   { return map[string]string{"digest": "sha256:none"} }
func aSession(*scene) any { return map[string]string{"title": "Tides"} }

// anAgentOfTheGroup is an agent that is not saved.
func anAgentOfTheGroup(s *scene) any {
	in := "group:" + s.group
	return map[string]string{"agent": "Ghost/" + in + "/pilot", "documents": "{kind: Ghost, metadata: {name: pilot, namespace: \"" + in + "\"}}"}
}

// aModelOfTheGroup selects a Model of the group.
func aModelOfTheGroup(s *scene) any {
	owner := s.asOwner()
	owner.send(s.t, "POST", "/api/v1/apply", aModel(s)).want(s.t, 200)
	var out struct{ Items []struct{ Name, ID string } }
	owner.send(s.t, "GET", "/api/v1/models", nil).want(s.t, 200).into(s.t, &out)
	for _, m := range out.Items {
		if m.Name == "one" {
			return map[string]string{"model": m.ID}
		}
	}
	s.t.Fatal("the group has no Model")
	return nil
}

// dot is an image.
var dot = []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;")

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func anImage(*scene) any    { return map[string]any{"images": []map[string]string{{"path": "dot.gif"}}} }
func aTitle(*scene) any     { return map[string]string{"title": "Tides"} }
func aMessage(*scene) any   { return map[string]string{"text": "hello"} }
func aBranch(*scene) any    { return map[string]int{"after": 0} }
func aSkillName(*scene) any { return map[string]string{"name": "nothing"} }
func aFile(*scene) any      { return "high water" }
func anAnswer(*scene) any   { return map[string]string{"outcome": "declined"} }

func theirResponse(s *scene) any { return aResponse(theirSession(s)) }
func myResponse(s *scene) any    { return aResponse(mySession(s)) }
func aResponse(to map[string]string) any {
	return map[string]any{"request_id": to["ask"], "success": true}
}

// actor returns the ID of the acting user, or any user's ID if not signed in.
func (s *scene) actor() string {
	u, err := s.node.DB().Users.ByName(s.t.Context(), s.name("actor"))
	if err != nil {
		return s.reporter
	}
	return u.ID
}

// talkOf creates a conversation of a user with a file and a pending request.
func (s *scene) talkOf(user string) map[string]string {
	s.t.Helper()
	ctx, chats := s.t.Context(), s.node.Chat()
	p := account.Principal{User: account.UserID(user), Scopes: account.AllScopes}
	c := must(chats.Create(ctx, p, "", "Tides"))(s.t)
	for name, data := range map[string][]byte{"notes/tides.txt": []byte("high water"), "dot.gif": dot} {
		if err := chats.WriteFile(ctx, p, c.ID, name, data); err != nil {
			s.t.Fatal(err)
		}
	}
	return map[string]string{"image": hashOf(dot), "session": c.ID, "path": "notes/tides.txt", "name": "nothing", "ask": s.node.ask(s.t, c.ID, user)}
}

// ask submits a request to a user without a turn that waits for it.
func (n *node) ask(t testing.TB, session, user string) (id string) {
	t.Helper()
	id = session + ".request"
	data, err := json.Marshal(approval.Request{ID: id, Kind: approval.KindAction, Session: session, Principal: policy.Principal{Kind: policy.UserPrincipal, ID: user}, Message: "render"})
	if err == nil {
		err = n.DB().ApprovalRequests.Add(t.Context(), store.ApprovalRequest{ID: id, Session: session, Principal: policy.UserPrincipal + ":" + user, Data: data})
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}
