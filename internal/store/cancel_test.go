package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// Whichever statement of an operation fails, the operation fails. A read never
// returns a part of the rows as if they were all, and what a change reports as
// done can be read.
func TestOperationsFailWithTheirStatements(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	ctx := t.Context()
	user, other := newUser(t, db, "ada"), newUser(t, db, "bob")
	own := store.UserNamespace(user.ID)
	var group store.Group
	var skill store.Skill
	var kind store.Kind
	var session store.Session
	var lease store.Lease
	var version store.Version
	hash := []byte("0123456789abcdef0123456789abcdef")
	data := json.RawMessage(`{"a":1}`)
	page := store.Page{}
	change := func(name string, op func(ctx context.Context) error) {
		t.Helper()
		limittest.CancelAtEach(t, func(ctx context.Context) error {
			if err := op(ctx); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	// read checks that an operation returns some rows, and never a part of them.
	read := func(name string, op func(ctx context.Context) (any, error)) {
		t.Helper()
		want, err := op(ctx)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if b, _ := json.Marshal(want); len(b) < 3 || string(b) == "null" || string(b) == `[[],""]` || string(b) == `[null,""]` {
			t.Errorf("%s: nothing was stored: %s", name, b)
		}
		limittest.CancelAtEach(t, func(ctx context.Context) error {
			got, err := op(ctx)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(store.Snapshot{})); err == nil && diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			return err
		})
	}

	change("group", func(ctx context.Context) (err error) {
		group, err = db.Groups.Create(ctx, store.Group{Name: "team"})
		return err
	})
	change("member", func(ctx context.Context) error {
		return db.Groups.SetMember(ctx, store.Member{GroupID: group.ID, UserID: user.ID, Role: "owner"})
	})
	read("members", func(ctx context.Context) (any, error) {
		all, next, err := db.Groups.Members(ctx, group.ID, page)
		return []any{all, next}, err
	})
	read("groups", func(ctx context.Context) (any, error) {
		all, next, err := db.Groups.List(ctx, page)
		return []any{all, next}, err
	})
	read("groups of a user", func(ctx context.Context) (any, error) {
		all, next, err := db.Groups.ListByUser(ctx, user.ID, page)
		return []any{all, next}, err
	})
	read("memberships", func(ctx context.Context) (any, error) { return db.Groups.ListMemberships(ctx, user.ID) })
	read("owners", func(ctx context.Context) (any, error) {
		n, err := db.Groups.CountWithRole(ctx, group.ID, "owner")
		return []int64{n}, err
	})
	read("users", func(ctx context.Context) (any, error) {
		all, next, err := db.Users.List(ctx, page)
		return []any{all, next}, err
	})
	read("many users", func(ctx context.Context) (any, error) { return db.Users.GetMany(ctx, []string{user.ID, other.ID}) })
	change("identity", func(ctx context.Context) error {
		return db.Users.LinkIdentity(ctx, user.ID, "https://issuer.example.com", "ada")
	})
	read("user by identity", func(ctx context.Context) (any, error) {
		return db.Users.ByIdentity(ctx, "https://issuer.example.com", "ada")
	})

	change("skill", func(ctx context.Context) (err error) {
		skill, err = db.Skills.Create(ctx, store.Skill{Namespace: own, Name: "pdf", CreatedBy: user.ID})
		return err
	})
	var blobs []string
	change("blobs", func(ctx context.Context) (err error) {
		blobs, err = db.Blobs.Put(ctx, []byte("one"), []byte("two"))
		return err
	})
	read("blob", func(ctx context.Context) (any, error) { return db.Blobs.Read(ctx, blobs[0]) })
	read("size of a blob", func(ctx context.Context) (any, error) {
		n, err := db.Blobs.Size(ctx, blobs[0])
		m, err2 := db.Blobs.WriteTo(ctx, io.Discard, blobs[1])
		if err == nil {
			err = err2
		}
		return []int64{n, m}, err
	})
	files := []store.File{{Path: "SKILL.md", SHA256: blobs[0], Size: 3}, {Path: "run.sh", SHA256: blobs[1], Size: 3}}
	change("version", func(ctx context.Context) (err error) {
		version, err = db.Versions.Add(ctx, store.Version{SkillID: skill.ID, Digest: "sha256:1"}, files, data)
		return err
	})
	change("current", func(ctx context.Context) error { return db.Skills.SetCurrent(ctx, skill.ID, version.Number) })
	change("review", func(ctx context.Context) error {
		return db.Versions.SetReview(ctx, skill.ID, "sha256:1", store.Approved, other.ID, "Fine.", other.ID)
	})
	change("publish", func(ctx context.Context) error { return db.Skills.Publish(ctx, skill.ID, store.Public, user.ID) })
	read("listings", func(ctx context.Context) (any, error) { return db.Skills.Listings(ctx, skill.ID) })
	read("candidates", func(ctx context.Context) (any, error) {
		return db.Skills.Find(ctx, "pdf", []store.Namespace{own, store.Public})
	})
	read("skills", func(ctx context.Context) (any, error) {
		all, next, err := db.Skills.List(ctx, store.SkillQuery{Namespaces: []store.Namespace{own}})
		return []any{all, next}, err
	})
	read("changes", func(ctx context.Context) (any, error) { return db.Skills.Changes(ctx, 0) })
	read("many skills", func(ctx context.Context) (any, error) {
		all, in, err := db.Skills.GetMany(ctx, []string{skill.ID})
		return []any{all, in}, err
	})
	read("version by number", func(ctx context.Context) (any, error) { return db.Versions.Get(ctx, skill.ID, 1) })
	read("version by digest", func(ctx context.Context) (any, error) { return db.Versions.GetByDigest(ctx, skill.ID, "sha256:1") })
	read("versions by digest", func(ctx context.Context) (any, error) { return db.Versions.ListByDigest(ctx, "sha256:1") })
	read("versions", func(ctx context.Context) (any, error) { return db.Versions.List(ctx, skill.ID, 0, 10) })
	read("manifest", func(ctx context.Context) (any, error) { return db.Versions.Manifest(ctx, version.ID) })
	read("file", func(ctx context.Context) (any, error) { return db.Versions.File(ctx, version.ID, "run.sh") })
	read("findings", func(ctx context.Context) (any, error) { return db.Versions.Findings(ctx, version.ID) })
	change("rating", func(ctx context.Context) error {
		return db.Ratings.Put(ctx, store.Rating{SkillID: skill.ID, UserID: other.ID, Stars: 4})
	})
	read("ratings", func(ctx context.Context) (any, error) {
		all, next, err := db.Ratings.List(ctx, skill.ID, page)
		return []any{all, next}, err
	})
	read("scores", func(ctx context.Context) (any, error) { return db.Ratings.Scores(ctx, []string{skill.ID}) })
	read("all scores", func(ctx context.Context) (any, error) { return db.Ratings.All(ctx) })
	change("source check", func(ctx context.Context) error {
		return db.SourceChecks.Record(ctx, store.SourceCheck{SkillID: skill.ID, Newest: "abc"})
	})
	read("check of a source", func(ctx context.Context) (any, error) { return db.SourceChecks.Get(ctx, skill.ID) })
	read("open source checks", func(ctx context.Context) (any, error) { return db.SourceChecks.ListOpen(ctx, time.Now()) })
	change("default", func(ctx context.Context) error {
		return db.Defaults.Put(ctx, store.Default{Namespace: own, SkillID: skill.ID, CreatedBy: user.ID})
	})
	read("defaults", func(ctx context.Context) (any, error) { return db.Defaults.List(ctx, []store.Namespace{own}) })
	read("defaults of a skill", func(ctx context.Context) (any, error) { return db.Defaults.ListBySkill(ctx, skill.ID) })
	since := time.Now().Add(-24 * time.Hour)
	change("usage", func(ctx context.Context) error {
		return db.Usage.Add(ctx, store.SkillUsage{SkillID: skill.ID, Loads: 2, LastUsed: time.Now()})
	})
	change("merged usage", func(ctx context.Context) error { return db.MergeUsage(ctx, at(0)) })
	read("sum of usage", func(ctx context.Context) (any, error) { return db.Usage.Sum(ctx, []string{skill.ID}, since) })
	read("totals", func(ctx context.Context) (any, error) { return db.Usage.Totals(ctx, since) })
	read("days", func(ctx context.Context) (any, error) { return db.Usage.ListDays(ctx, skill.ID, since) })

	change("kind", func(ctx context.Context) (err error) {
		kind, err = db.Kinds.Create(ctx, store.Kind{Kind: "Ghost", Namespace: own, Name: "plan", Spec: data})
		return err
	})
	refs := []store.Reference{{Slot: "skills", ToKind: store.SkillKind, ToName: "pdf", ToID: skill.ID}}
	change("references", func(ctx context.Context) error { return db.Refs.Set(ctx, "Ghost", kind.ID, refs) })
	read("references from", func(ctx context.Context) (any, error) { return db.Refs.ListFrom(ctx, "Ghost", kind.ID) })
	read("references to", func(ctx context.Context) (any, error) {
		return db.Refs.ListTo(ctx, store.SkillKind, skill.ID, "pdf", 10)
	})
	read("kinds", func(ctx context.Context) (any, error) {
		all, next, err := db.Kinds.List(ctx, "Ghost", []store.Namespace{own}, page)
		return []any{all, next}, err
	})
	read("found kinds", func(ctx context.Context) (any, error) {
		return db.Kinds.Find(ctx, "Ghost", "plan", []store.Namespace{own})
	})
	read("kind by name", func(ctx context.Context) (any, error) { return db.Kinds.ByName(ctx, "Ghost", own, "plan") })

	change("session", func(ctx context.Context) (err error) {
		session, err = db.Sessions.Create(ctx, store.Session{Owner: user.ID, Data: data})
		return err
	})
	read("sessions", func(ctx context.Context) (any, error) {
		all, next, err := db.Sessions.List(ctx, store.SessionQuery{Owner: user.ID, Page: page})
		return []any{all, next}, err
	})
	change("events", func(ctx context.Context) error {
		_, err := db.Events.Append(ctx, session.ID, 0, store.Event{Kind: "a", Data: data}, store.Event{Kind: "b", Data: data})
		return err
	})
	change("more events", func(ctx context.Context) error {
		return db.Events.AppendAll(ctx, store.NewEvents{Stream: session.ID, After: 2, Events: []store.Event{{Kind: "c", Data: data}}}, store.NewEvents{Stream: "other", Events: []store.Event{{Kind: "d", Data: data}}})
	})
	read("stream", func(ctx context.Context) (any, error) { return db.Events.Read(ctx, session.ID, 0, 10) })
	read("last of each", func(ctx context.Context) (any, error) {
		return db.Events.LastOfEach(ctx, []string{session.ID, "other"})
	})
	change("attachment", func(ctx context.Context) error {
		return db.Attachments.Put(ctx, store.Attachment{Session: session.ID, Path: "a.txt", SHA256: strings.Repeat("a", 64), Size: 4}, []byte("text"))
	})
	read("attachments", func(ctx context.Context) (any, error) { return db.Attachments.List(ctx, session.ID) })
	read("attachment's data", func(ctx context.Context) (any, error) { return db.Attachments.Read(ctx, session.ID, "a.txt") })
	change("draft", func(ctx context.Context) error {
		return db.Drafts.Add(ctx, store.Draft{Session: session.ID, Name: "pdf", Digest: "sha256:1"}, []byte("zip"))
	})
	read("draft of a session", func(ctx context.Context) (any, error) { return db.Drafts.Get(ctx, session.ID) })
	read("package of a draft", func(ctx context.Context) (any, error) { return db.Drafts.Package(ctx, session.ID) })
	read("total of drafts", func(ctx context.Context) (any, error) { return db.Drafts.Total(ctx, user.ID) })
	change("snapshot", func(ctx context.Context) error {
		return db.Snapshots.Put(ctx, store.Snapshot{Session: session.ID, Position: 2, Format: 1, Data: []byte("x")})
	})
	read("last snapshot", func(ctx context.Context) (any, error) { return db.Snapshots.Last(ctx, session.ID, 5, 1) })
	change("approval request", func(ctx context.Context) error {
		return db.ApprovalRequests.Add(ctx, store.ApprovalRequest{ID: "r1", Session: session.ID, Principal: user.ID, Data: data})
	})
	read("pending requests", func(ctx context.Context) (any, error) { return db.ApprovalRequests.ListPending(ctx, session.ID) })
	read("requests for a user", func(ctx context.Context) (any, error) { return db.ApprovalRequests.ListPendingFor(ctx, user.ID) })
	change("answer", func(ctx context.Context) error {
		_, _, err := db.ApprovalRequests.Resolve(ctx, "r1", data)
		return err
	})
	read("answered request", func(ctx context.Context) (any, error) { return db.ApprovalRequests.Get(ctx, "r1") })

	change("secret", func(ctx context.Context) error {
		return db.Secrets.Put(ctx, store.Secret{Owner: user.ID, Name: "KEY", Encrypted: hash, KeyID: "k1"})
	})
	read("secrets", func(ctx context.Context) (any, error) { return db.Secrets.List(ctx, user.ID) })
	read("keys of secrets", func(ctx context.Context) (any, error) { return db.Secrets.KeyIDs(ctx) })
	change("setting", func(ctx context.Context) error {
		_, err := db.Settings.Set(ctx, store.Setting{Scope: "hub", Name: "a", Value: data})
		return err
	})
	read("settings", func(ctx context.Context) (any, error) { return db.Settings.List(ctx, "hub") })
	change("login", func(ctx context.Context) error {
		_, err := db.Logins.Create(ctx, store.Login{Hash: hash, UserID: user.ID, Expires: time.Now().Add(time.Hour)})
		return err
	})
	read("logins", func(ctx context.Context) (any, error) { return db.Logins.ListByUser(ctx, user.ID) })
	read("many logins", func(ctx context.Context) (any, error) { return db.Logins.GetMany(ctx, [][]byte{hash}) })
	var token store.Token
	change("token", func(ctx context.Context) (err error) {
		token, err = db.Tokens.Create(ctx, store.Token{UserID: user.ID, Name: "ci", Prefix: "lo_1", Hash: hash, Scopes: []string{"read"}})
		return err
	})
	read("tokens", func(ctx context.Context) (any, error) { return db.Tokens.ListByUser(ctx, user.ID) })
	read("many tokens", func(ctx context.Context) (any, error) { return db.Tokens.GetMany(ctx, []string{token.ID}) })
	change("audit record", func(ctx context.Context) error {
		return db.Audit.Append(ctx, store.AuditRecord{Actor: user.ID, Action: "skill.read", Subject: "x", Decision: "allowed"})
	})
	read("audit log", func(ctx context.Context) (any, error) {
		return db.Audit.List(ctx, store.AuditQuery{Actor: user.ID, Limit: 10})
	})
	change("grant", func(ctx context.Context) error {
		return db.Grants.Put(ctx, store.Grant{ID: "g1", Principal: user.ID, Subject: "s", Data: data})
	})
	read("grants", func(ctx context.Context) (any, error) { return db.Grants.List(ctx, user.ID, 0) })
	read("found grants", func(ctx context.Context) (any, error) { return db.Grants.Find(ctx, user.ID, "s", "", time.Now()) })
	read("grants by ID", func(ctx context.Context) (any, error) { return db.Grants.Get(ctx, []string{"g1"}) })
	change("meter", func(ctx context.Context) error {
		return db.Meter.Add(ctx, store.MeterEntry{Date: time.Now(), Owner: user.ID, Namespace: own, Model: "m", Turns: 1, Input: 5})
	})
	read("sum of the meter", func(ctx context.Context) (any, error) {
		return db.Meter.Sum(ctx, store.MeterQuery{GroupBy: store.ByModel, Since: since, Owner: user.ID})
	})
	change("notification", func(ctx context.Context) error {
		_, err := db.Notifications.Add(ctx, store.Notification{UserID: user.ID, Kind: "k", Subject: "s", Data: data})
		return err
	})
	read("notifications", func(ctx context.Context) (any, error) {
		all, next, err := db.Notifications.List(ctx, store.NotificationQuery{UserID: user.ID})
		return []any{all, next}, err
	})
	definition := store.ToolDefinition{Server: "srv", Tool: "t", Digest: "d1", Definition: data, OwnerID: skill.ID}
	change("tool", func(ctx context.Context) error { return db.ToolDefinitions.Add(ctx, definition) })
	read("digests of tools", func(ctx context.Context) (any, error) { return db.ToolDefinitions.Digests(ctx, "srv") })
	change("lease", func(ctx context.Context) (err error) {
		lease, err = db.Leases.Acquire(ctx, "turn", "node", time.Hour)
		return err
	})
	change("renewed lease", func(ctx context.Context) error {
		renewed, err := db.Leases.Renew(ctx, lease, time.Hour)
		if err == nil {
			lease = renewed
		}
		return err
	})
	change("checked lease", func(ctx context.Context) error { return db.Leases.Check(ctx, lease) })
	read("revisions", func(ctx context.Context) (any, error) { return db.Revisions(ctx) })
	read("bytes", func(ctx context.Context) (any, error) {
		bytes, err := db.Storage.Bytes(ctx, own)
		if err != nil {
			return nil, err
		}
		skills, err := db.Storage.Skills(ctx, own)
		if err != nil {
			return nil, err
		}
		sessions, err := db.Storage.Sessions(ctx, own)
		return []int64{bytes, skills, sessions}, err
	})
	read("check", func(ctx context.Context) (any, error) { return db.Check(ctx) })
	change("write check", func(ctx context.Context) error { return db.CheckWrite(ctx, "node") })

	change("released lease", func(ctx context.Context) error { return db.Leases.Release(ctx, lease) })
	change("deleted session", func(ctx context.Context) error { return db.Sessions.Delete(ctx, session.ID) })
	change("deleted skill", func(ctx context.Context) error { return db.Skills.Delete(ctx, skill.ID) })
	change("swept blobs", func(ctx context.Context) error {
		_, err := db.Blobs.Sweep(ctx, 0)
		return err
	})
	change("deleted user", func(ctx context.Context) error { return db.Users.Delete(ctx, other.ID) })
	change("deleted group", func(ctx context.Context) error { return db.Groups.Delete(ctx, group.ID) })
	for name, gone := range map[string]error{
		"session": func() error { _, err := db.Sessions.Get(ctx, session.ID); return err }(),
		"skill":   func() error { _, err := db.Skills.Get(ctx, skill.ID); return err }(),
		"user":    func() error { _, err := db.Users.Get(ctx, other.ID); return err }(),
		"group":   func() error { _, err := db.Groups.Get(ctx, group.ID); return err }(),
	} {
		if gone == nil {
			t.Errorf("the %s was not deleted, without an error", name)
		}
	}
}

// A change that reports that it was cancelled was not stored.
func TestCancelledChangeIsNotStored(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	for i := range 300 {
		name := fmt.Sprint("team", i)
		limittest.CancelAtEach(t, func(ctx context.Context) error {
			_, err := db.Groups.Create(ctx, store.Group{Name: name})
			return err
		})
	}
}
