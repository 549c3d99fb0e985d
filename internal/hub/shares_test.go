package hub_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/store"
)

const foundSecret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"

// sharing is a hub with an owner of a conversation, another user and a share.
type sharing struct {
	*node
	root, ada, bob caller
	adaID, session string
	share, link    string
}

type shareAnswer struct{ ID, Link, Title, Session, Audience string }

// newSharing starts a hub on which ada has shared a conversation.
func newSharing(t *testing.T, o hub.Options, request map[string]any) *sharing {
	t.Helper()
	o.FirstAdmin, o.Accounts = &hub.FirstAdmin{Name: "root", Password: secret}, true
	s := &sharing{node: start(t, o)}
	talker(t, s.node)
	s.root = s.signIn(t, "root", secret)
	s.adaID, s.ada = s.newUser(t, s.root, "ada")
	_, s.bob = s.newUser(t, s.root, "bob")
	s.session = s.ada.send(t, "POST", "/api/v1/sessions", map[string]string{"title": "Tides"}).want(t, 201).text(t, "id")
	s.say(t, "high water?")
	made := s.shareWith(t, request)
	s.share, s.link = made.ID, made.Link
	return s
}

// say sends a message as ada, and waits for the end of its turn.
func (s *sharing) say(t *testing.T, text string) {
	t.Helper()
	s.ada.talk(t, "/api/v1/sessions/"+s.session, text)
}

type previewAnswer struct {
	Content  json.RawMessage
	Digest   string
	Redacted struct{ Stored, Recognized int }
}

func (s *sharing) preview(t *testing.T) (p previewAnswer) {
	t.Helper()
	s.ada.send(t, "GET", "/api/v1/sessions/"+s.session+"/share", nil).want(t, 200).into(t, &p)
	return p
}

// shareWith shares the conversation as previewed.
func (s *sharing) shareWith(t *testing.T, request map[string]any) (made shareAnswer) {
	t.Helper()
	body := map[string]any{"digest": s.preview(t).Digest}
	for name, value := range request {
		body[name] = value
	}
	s.ada.send(t, "POST", "/api/v1/sessions/"+s.session+"/share", body).want(t, 201).into(t, &made)
	return made
}

func (s *sharing) open(t *testing.T, c caller) reply {
	return c.send(t, "GET", "/api/v1/shared/"+s.link, nil)
}

// What is shared is exactly what the preview showed, and later messages do not change it.
func TestShareIsFrozen(t *testing.T) {
	s := newSharing(t, hub.Options{}, nil)
	var before, after struct{ Content json.RawMessage }
	r := s.open(t, s.bob).want(t, 200)
	r.into(t, &before)
	if got, want := string(before.Content), string(s.preview(t).Content); got != want {
		t.Errorf("shared %s, but the preview was %s", got, want)
	}
	if r.header.Get("X-Robots-Tag") != "noindex, nofollow" || r.header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", r.header)
	}
	for _, want := range []string{"high water?", "you said: high water?", `"title":"Tides"`} {
		if !strings.Contains(string(before.Content), want) {
			t.Errorf("%s lacks %s", before.Content, want)
		}
	}
	old := s.preview(t).Digest
	s.say(t, "and tomorrow?")
	s.ada.send(t, "PATCH", "/api/v1/sessions/"+s.session, map[string]string{"title": "Ships"}).want(t, 200)
	s.open(t, s.bob).want(t, 200).into(t, &after)
	if string(after.Content) != string(before.Content) {
		t.Errorf("the share is now %s", after.Content)
	}
	// What was not previewed is not shared.
	s.ada.send(t, "POST", "/api/v1/sessions/"+s.session+"/share", map[string]any{"digest": old}).wantProblem(t, 409, "preview_changed")
}

// A share contains no instructions, results, arguments or approvals.
func TestShareContainsOnlyWhatThePageShows(t *testing.T) {
	s := newSharing(t, hub.Options{}, nil)
	s.say(t, `call load_skill {"name":"tides"}`)
	s.say(t, `call find_tools {"query":"moon","other":"an argument"}`)
	var content struct {
		Messages []struct {
			Skills []string
			Calls  []struct{ Name, What string }
		}
	}
	text := string(s.preview(t).Content)
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	found := ""
	for _, m := range content.Messages {
		found += fmt.Sprint(m.Calls, m.Skills)
	}
	if !strings.Contains(found, "{find_tools moon}") || strings.Contains(found, "load_skill") || !strings.Contains(found, "[tides]") {
		t.Errorf("calls and skills %s in %s", found, text)
	}
	if strings.Contains(strings.ReplaceAll(text, `call find_tools {\"query\":\"moon\",\"other\":\"an argument\"}`, ""), "an argument") {
		t.Errorf("the share contains too much: %s", text)
	}
}

// Secrets are replaced before anything is stored: stored ones, and what looks like one.
func TestShareIsRedacted(t *testing.T) {
	s := newSharing(t, hub.Options{}, nil)
	stored := "the-harbour-master-knows"
	s.ada.send(t, "PUT", "/api/v1/secrets/harbour", map[string]string{"value": stored}).want(t, 204)
	s.say(t, "my secret is "+stored+" and my token "+foundSecret)
	s.ada.send(t, "PATCH", "/api/v1/sessions/"+s.session, map[string]string{"title": "About " + stored}).want(t, 200)
	p := s.preview(t)
	if p.Redacted.Stored != 3 || p.Redacted.Recognized != 2 { // title, message and answer
		t.Errorf("counts %+v", p.Redacted)
	}
	made := s.shareWith(t, nil)
	s.link = made.Link
	data := must(s.DB().Shares.Snapshot(t.Context(), made.ID))(t)
	list := s.ada.send(t, "GET", "/api/v1/shares", nil).want(t, 200).body
	for what, text := range map[string]string{"preview": string(p.Content), "snapshot": string(data), "share": s.open(t, s.bob).want(t, 200).body, "list": list} {
		if strings.Contains(text, stored) || strings.Contains(text, foundSecret) {
			t.Errorf("%s contains a secret: %s", what, text)
		}
	}
}

// Nobody can open a share that ended, and it looks like one that never was.
func TestEndedShares(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, s *sharing){
		"revoked":  func(t *testing.T, s *sharing) { s.ada.send(t, "DELETE", "/api/v1/shares/"+s.share, nil).want(t, 204) },
		"by admin": func(t *testing.T, s *sharing) { s.root.send(t, "DELETE", "/api/v1/shares/"+s.share, nil).want(t, 204) },
		"deleted": func(t *testing.T, s *sharing) {
			s.ada.send(t, "DELETE", "/api/v1/sessions/"+s.session, nil).want(t, 204)
		},
		"disabled": func(t *testing.T, s *sharing) {
			s.root.send(t, "PATCH", "/api/v1/users/"+s.adaID, map[string]bool{"disabled": true}).want(t, 200)
		},
		"user deleted": func(t *testing.T, s *sharing) {
			s.ada.send(t, "DELETE", "/api/v1/sessions/"+s.session, nil).want(t, 204)
			s.root.send(t, "DELETE", "/api/v1/users/"+s.adaID, nil).want(t, 204)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSharing(t, hub.Options{Sharing: hub.SharingLinks}, map[string]any{"audience": "link"})
			s.open(t, s.bob).want(t, 200)
			s.open(t, s.anybody()).want(t, 200)
			end(t, s)
			never := s.bob.send(t, "GET", "/api/v1/shared/"+strings.Repeat("A", 26), nil).want(t, 404)
			gone := s.open(t, s.bob).want(t, 404)
			same := func(r reply) string { return strings.ReplaceAll(r.body, r.header.Get("X-Request-Id"), "ID") }
			if same(gone) != same(never) {
				t.Errorf("%s, and one that never was %s", same(gone), same(never))
			}
			s.open(t, s.anybody()).want(t, 401)
		})
	}
}

// A share has a lifetime, which the hub limits.
func TestSharesExpire(t *testing.T) {
	s := newSharing(t, hub.Options{ShareDays: 7}, nil)
	share := must(s.DB().Shares.Get(t.Context(), s.share))(t)
	if days := share.Expires.Sub(share.Created).Hours() / 24; days < 6.9 || days > 7.1 { // the default of 30 days is too long here
		t.Errorf("lasts %v days", days)
	}
	s.ada.send(t, "POST", "/api/v1/sessions/"+s.session+"/share", map[string]any{"digest": s.preview(t).Digest, "days": 8}).wantProblem(t, 422, "invalid")
	old := must(s.DB().Shares.Create(t.Context(), store.Share{Link: strings.Repeat("B", 26), Session: s.session, Owner: s.adaID, Audience: "members", Expires: time.Now().Add(-time.Second)}, []byte("{}")))(t)
	s.bob.send(t, "GET", "/api/v1/shared/"+old.Link, nil).want(t, 404)
	if list := s.ada.send(t, "GET", "/api/v1/shares", nil).want(t, 200).body; strings.Contains(list, old.ID) || !strings.Contains(list, s.share) {
		t.Errorf("list %s", list)
	}
}

// Only signed-in users open a share, unless the hub permits links, and the owner chose one.
func TestAudiences(t *testing.T) {
	s := newSharing(t, hub.Options{}, nil)
	s.open(t, s.anybody()).want(t, 401)
	s.open(t, s.bob).want(t, 200)
	s.ada.send(t, "POST", "/api/v1/sessions/"+s.session+"/share", map[string]any{"digest": s.preview(t).Digest, "audience": "link"}).wantProblem(t, 403, "links_disabled")
	// A link that was permitted is not any more.
	link := must(s.DB().Shares.Create(t.Context(), store.Share{Link: strings.Repeat("C", 26), Session: s.session, Owner: s.adaID, Audience: "link", Expires: time.Now().Add(time.Hour)},
		must(s.DB().Shares.Snapshot(t.Context(), s.share))(t)))(t)
	s.anybody().send(t, "GET", "/api/v1/shared/"+link.Link, nil).want(t, 401)
	s.bob.send(t, "GET", "/api/v1/shared/"+link.Link, nil).want(t, 200)
}

// Administrators see that a share exists, but neither title nor link. The log has no link.
func TestSharesAreListedAndRecorded(t *testing.T) {
	s := newSharing(t, hub.Options{}, nil)
	for range 2 {
		s.open(t, s.bob).want(t, 200)
		s.open(t, s.ada).want(t, 200)
	}
	s.bob.send(t, "GET", "/shared/"+s.link, nil).want(t, 404)
	page := s.bob.with("Accept", "text/html").send(t, "GET", "/shared/"+s.link, nil).want(t, 200)
	if page.header.Get("X-Robots-Tag") != "noindex, nofollow" || page.header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("headers of the page: %v", page.header)
	}
	var all struct{ Items []shareAnswer }
	s.root.send(t, "GET", "/api/v1/shares?owner=all", nil).want(t, 200).into(t, &all)
	if len(all.Items) != 1 || all.Items[0] != (shareAnswer{ID: s.share, Audience: "members"}) {
		t.Errorf("the administrator sees %+v", all.Items)
	}
	s.ada.send(t, "GET", "/api/v1/shares", nil).want(t, 200).into(t, &all)
	if len(all.Items) != 1 || all.Items[0] != (shareAnswer{s.share, s.link, "Tides", s.session, "members"}) {
		t.Errorf("the owner sees %+v", all.Items)
	}
	s.bob.send(t, "DELETE", "/api/v1/shares/"+s.share, nil).want(t, 404)
	s.ada.send(t, "DELETE", "/api/v1/shares/"+s.share, nil).want(t, 204)
	records := must(s.DB().Audit.List(t.Context(), store.AuditQuery{Subject: "session/" + s.session}))(t)
	var actions []string
	for _, r := range records {
		if strings.HasPrefix(r.Action, "session.share") {
			actions = append(actions, r.Action)
		}
		if strings.Contains(string(r.Details), s.link) {
			t.Errorf("record %s has the link", r.Details)
		}
	}
	if got := strings.Join(actions, " "); got != "session.share.revoke session.share.view session.share session.share.preview" {
		t.Errorf("records %s", got)
	}
	if log := s.log.String(); strings.Contains(log, s.link) || !strings.Contains(log, "/shared/{link}") {
		t.Errorf("log:\n%s", log)
	}
}

// A hub of one user says that there is nobody to share with.
func TestShareWithoutAccounts(t *testing.T) {
	n := start(t, hub.Options{})
	id := n.anybody().send(t, "POST", "/api/v1/sessions", map[string]string{"title": "Tides"}).want(t, 201).text(t, "id")
	n.anybody().send(t, "GET", "/api/v1/sessions/"+id+"/share", nil).wantProblem(t, 409, "no_accounts")
	n.anybody().send(t, "POST", "/api/v1/sessions/"+id+"/share", map[string]string{"digest": "x"}).wantProblem(t, 409, "no_accounts")
}

// A user has a limited number of shares, and may not create many at once.
func TestSharesAreLimited(t *testing.T) {
	s := newSharing(t, hub.Options{}, nil)
	digest := s.preview(t).Digest
	for i := range 99 {
		must(s.DB().Shares.Create(t.Context(), store.Share{Link: fmt.Sprintf("%026d", i), Session: s.session, Owner: s.adaID, Audience: "members", Expires: time.Now().Add(time.Hour)}, []byte("{}")))(t)
	}
	s.ada.send(t, "POST", "/api/v1/sessions/"+s.session+"/share", map[string]any{"digest": digest}).wantProblem(t, 409, "too_many")
	var last reply
	for i := 0; i < 500 && last.status != http.StatusTooManyRequests; i++ {
		last = s.ada.send(t, "GET", "/api/v1/sessions/"+s.session+"/share", nil)
	}
	if last.status != http.StatusTooManyRequests || last.header.Get("Retry-After") == "" {
		t.Errorf("status %d, %v", last.status, last.header)
	}
}

// An operator can switch sharing off. Shares that exist cannot be opened, but listed and
// revoked.
func TestSharingCanBeSwitchedOff(t *testing.T) {
	o := hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true, Sharing: hub.SharingOff}
	s := &sharing{node: start(t, o)}
	talker(t, s.node)
	s.root = s.signIn(t, "root", secret)
	s.adaID, s.ada = s.newUser(t, s.root, "ada")
	_, s.bob = s.newUser(t, s.root, "bob")
	s.session = s.ada.send(t, "POST", "/api/v1/sessions", map[string]string{"title": "Tides"}).want(t, 201).text(t, "id")
	share := "/api/v1/sessions/" + s.session + "/share"
	s.ada.send(t, "GET", share, nil).wantProblem(t, 403, "sharing_disabled")
	s.ada.send(t, "POST", share, map[string]string{"digest": "x"}).wantProblem(t, 403, "sharing_disabled")
	if me := s.ada.send(t, "GET", "/api/v1/me", nil).want(t, 200).body; !strings.Contains(me, `"share":false`) {
		t.Errorf("the page is told %s", me)
	}
	old := must(s.DB().Shares.Create(t.Context(), store.Share{Link: strings.Repeat("D", 26), Session: s.session, Owner: s.adaID, Audience: "link", Expires: time.Now().Add(time.Hour)}, []byte(`{"version":1}`)))(t)
	s.link = old.Link
	s.open(t, s.bob).wantProblem(t, 403, "sharing_disabled")
	s.open(t, s.anybody()).want(t, 401)
	if list := s.ada.send(t, "GET", "/api/v1/shares", nil).want(t, 200).body; !strings.Contains(list, old.ID) {
		t.Errorf("the list lacks the share: %s", list)
	}
	s.ada.send(t, "DELETE", "/api/v1/shares/"+old.ID, nil).want(t, 204)
}

// A token that may only read must not pass links on.
func TestReadOnlyTokensSeeNoLinks(t *testing.T) {
	s := newSharing(t, hub.Options{Sharing: hub.SharingLinks}, map[string]any{"audience": "link"})
	for scope, want := range map[string]bool{"read": false, "chat": true} {
		token := s.ada.send(t, "POST", "/api/v1/tokens", map[string]any{"name": scope, "scopes": []string{scope}}).want(t, 201).text(t, "token")
		list := caller{node: s.node, token: token}.send(t, "GET", "/api/v1/shares", nil).want(t, 200).body
		if !strings.Contains(list, s.share) || strings.Contains(list, s.link) != want {
			t.Errorf("a token with the scope %s sees %s", scope, list)
		}
	}
}

// A stored secret that cannot be decrypted does not prevent a preview, which names it.
func TestUnreadableSecretsAreNamed(t *testing.T) {
	s := newSharing(t, hub.Options{}, nil)
	owner := string(store.UserNamespace(s.adaID))
	if err := s.DB().Secrets.Put(t.Context(), store.Secret{Owner: owner, Name: "LOST", Encrypted: []byte("damaged"), KeyID: "k"}); err != nil {
		t.Fatal(err)
	}
	var p struct {
		Digest    string
		Unchecked []struct{ Owner, Name string }
		Refused   bool
	}
	s.ada.send(t, "GET", "/api/v1/sessions/"+s.session+"/share", nil).want(t, 200).into(t, &p)
	if len(p.Unchecked) != 1 || p.Unchecked[0].Owner != owner || p.Unchecked[0].Name != "LOST" || p.Refused {
		t.Errorf("%+v", p)
	}
	s.ada.send(t, "POST", "/api/v1/sessions/"+s.session+"/share", map[string]string{"digest": p.Digest}).want(t, 201)
}

// A member of a group does not learn from a preview whether a message has a secret of
// the group. The audit log records each preview.
func TestGroupSecretsAreNotConfirmed(t *testing.T) {
	s := newSharing(t, hub.Options{}, nil)
	group := s.root.send(t, "POST", "/api/v1/groups", map[string]string{"name": "support"}).want(t, 201).text(t, "id")
	s.root.send(t, "PUT", "/api/v1/groups/"+group+"/members/"+s.adaID, map[string]string{"role": "reporter"}).want(t, 204)
	const value = "the-harbour-master-knows"
	s.root.send(t, "PUT", "/api/v1/groups/"+group+"/members/"+s.rootID(t), map[string]string{"role": "owner"})
	s.root.send(t, "PUT", "/api/v1/secrets/harbour?owner=group:"+group, map[string]string{"value": value}).want(t, 204)
	s.say(t, "is it "+value+"?")
	if p := s.preview(t); p.Redacted.Stored != 0 || !strings.Contains(string(p.Content), value) {
		t.Errorf("counts %+v in %s", p.Redacted, p.Content)
	}
	s.preview(t)
	list := s.root.send(t, "GET", "/api/v1/audit?action=session.share.preview", nil).want(t, 200).body
	if n := strings.Count(list, `"action":"session.share.preview"`); n != 3 || strings.Contains(list, value) { // with that of the share
		t.Errorf("%d previews in the audit log: %s", n, list)
	}
}

func (s *sharing) rootID(t *testing.T) string {
	t.Helper()
	var me struct{ User struct{ ID string } }
	s.root.send(t, "GET", "/api/v1/me", nil).want(t, 200).into(t, &me)
	return me.User.ID
}

// Images of messages go along unless the user opts out, and the files that the user
// chooses. What is shared does not change with the conversation, and ends with the share.
func TestSharedImagesAndFiles(t *testing.T) {
	s := newSharing(t, hub.Options{}, nil)
	at := "/api/v1/sessions/" + s.session
	notes := "token: " + foundSecret
	binary := "\x00\xff" + foundSecret
	for path, data := range map[string]string{"dot.gif": string(dot), "notes.txt": notes, "data.bin": binary, "other.txt": "not chosen"} {
		s.ada.with("Content-Type", "application/octet-stream").send(t, "PUT", at+"/files/"+path, data).want(t, 204)
	}
	s.ada.send(t, "POST", at+"/messages", map[string]any{"text": "see", "images": []map[string]string{{"path": "dot.gif"}}}).want(t, 202)
	s.say(t, "done?")
	type preview struct {
		Digest        string
		Size          int64
		MessageImages int `json:"message_images"`
		Content       struct {
			Messages []struct{ Images []struct{ Ref, Name string } }
			Files    []struct {
				Path, Ref string
				Checked   bool
				Redacted  int
			}
		}
	}
	look := func(query string) (p preview) {
		s.ada.send(t, "GET", at+"/share"+query, nil).want(t, 200).into(t, &p)
		return p
	}
	images := func(p preview) (n int) {
		for _, m := range p.Content.Messages {
			n += len(m.Images)
		}
		return n
	}
	if p := look("?message_images=false"); images(p) != 0 || p.MessageImages != 1 || len(p.Content.Files) != 0 {
		t.Errorf("without images: %+v", p)
	}
	p := look("?files=notes.txt&files=data.bin")
	if images(p) != 1 || len(p.Content.Files) != 2 || p.Content.Files[0].Checked || !p.Content.Files[1].Checked || p.Content.Files[1].Redacted != 1 {
		t.Fatalf("%+v", p)
	}
	s.ada.send(t, "GET", at+"/share?files=none.txt", nil).wantProblem(t, 422, "invalid")
	s.ada.send(t, "POST", at+"/share", map[string]any{"digest": p.Digest}).wantProblem(t, 409, "preview_changed") // without the files
	var made struct{ ID, Link string }
	s.ada.send(t, "POST", at+"/share", map[string]any{"digest": p.Digest, "files": []string{"notes.txt", "data.bin"}}).want(t, 201).into(t, &made)
	s.link = made.Link
	if share := must(s.DB().Shares.Get(t.Context(), made.ID))(t); share.Size != p.Size || p.Size < int64(len(dot)+len(binary)) {
		t.Errorf("size %d, and %d in the preview", share.Size, p.Size)
	}
	// Later changes do not matter.
	s.ada.send(t, "DELETE", at+"/files/notes.txt", nil).want(t, 204)
	s.ada.send(t, "DELETE", at+"/files/dot.gif", nil).want(t, 204)
	file := func(ref string) string { return "/api/v1/shared/" + s.link + "/files/" + ref }
	r := s.bob.send(t, "GET", file(p.Content.Files[1].Ref), nil).want(t, 200)
	if r.body != "token: •••" || !strings.HasPrefix(r.header.Get("Content-Disposition"), "attachment") {
		t.Errorf("the file is %q, %v", r.body, r.header)
	}
	if r := s.bob.send(t, "GET", file(p.Content.Files[0].Ref), nil).want(t, 200); r.body != binary {
		t.Errorf("the other file is %q", r.body)
	}
	image := file(hashOf(dot))
	if r := s.bob.send(t, "GET", image, nil).want(t, 200); r.header.Get("Content-Type") != "image/gif" || r.header.Get("Cache-Control") != "private, no-cache" {
		t.Errorf("the image has %v", r.header)
	}
	s.bob.send(t, "GET", file(strings.Repeat("0", 64)), nil).want(t, 404)
	s.anybody().send(t, "GET", image, nil).want(t, 401)
	if text := s.open(t, s.bob).want(t, 200).body; strings.Contains(text, foundSecret) || strings.Contains(text, "other.txt") {
		t.Errorf("shared %s", text)
	}
	// A page that is still open gets nothing any more.
	s.ada.send(t, "DELETE", "/api/v1/shares/"+made.ID, nil).want(t, 204)
	s.bob.send(t, "GET", image, nil).want(t, 404)
	s.open(t, s.bob).want(t, 404)
}

// Images and files in a share are limited together.
func TestSharedFilesAreLimited(t *testing.T) {
	s := newSharing(t, hub.Options{}, nil)
	at := "/api/v1/sessions/" + s.session
	for _, path := range []string{"a.bin", "b.bin", "c.bin"} {
		s.ada.with("Content-Type", "application/octet-stream").send(t, "PUT", at+"/files/"+path, strings.Repeat("\xff", 6<<20)+path).want(t, 204)
	}
	s.ada.send(t, "GET", at+"/share?files=a.bin&files=b.bin", nil).want(t, 200)
	s.ada.send(t, "GET", at+"/share?files=a.bin&files=b.bin&files=c.bin", nil).wantProblem(t, 422, "invalid")
}
