package chat_test

import (
	"errors"
	"io"
	"testing"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// Every method checks permissions itself: the owner may, others get not found, a token
// needs the scope, and admins may only stop a turn.
func TestAuthority(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	e := node(t, db, setupFixture{}, func(o *chat.Options) { o.Sharing = &chat.Sharing{} })
	reader, talker := ada.LimitedTo(account.ScopeRead), ada.LimitedTo(account.ScopeChat)
	const (
		yes = iota
		hidden
		scope
		signIn
		refused
	)
	verdict := func(err error) int {
		var denied *account.DeniedError
		switch {
		case errors.Is(err, store.ErrNotFound), errors.Is(err, approval.ErrNotFound):
			return hidden
		case errors.As(err, &denied) && denied.SignIn:
			return signIn
		case errors.As(err, &denied) && denied.Scopes != 0:
			return scope
		case errors.As(err, &denied):
			return refused
		case err == nil:
			return yes
		}
		t.Errorf("unexpected: %v", err)
		return -1
	}
	for _, tt := range []struct {
		name                          string
		do                            func(p account.Principal, id string) error
		owner, reads, chats, isOthers int
		admins                        int
	}{
		{"Get", func(p account.Principal, id string) error { _, err := e.Get(t.Context(), p, id); return err }, yes, yes, yes, hidden, refused},
		{"Say", func(p account.Principal, id string) error {
			_, err := e.SendMessage(t.Context(), p, id, chat.Message{Text: "x"})
			return err
		}, yes, scope, yes, hidden, refused},
		{"Compact", func(p account.Principal, id string) error { _, err := e.Compact(t.Context(), p, id); return err }, yes, scope, yes, hidden, refused},
		{"Switch", func(p account.Principal, id string) error { _, err := e.Switch(t.Context(), p, id, 0); return err }, yes, scope, yes, hidden, refused},
		{"Cancel", func(p account.Principal, id string) error { return e.Cancel(t.Context(), p, id) }, yes, scope, yes, hidden, yes},
		{"Watch", func(p account.Principal, id string) error {
			for _, err := range e.Watch(t.Context(), p, id, 0) {
				return err
			}
			return nil
		}, yes, yes, yes, hidden, refused},
		{"Told", func(p account.Principal, id string) error {
			for _, err := range e.ReadEvents(t.Context(), p, id, 0, false) {
				return err
			}
			return nil
		}, yes, yes, yes, hidden, refused},
		{"Attend", func(p account.Principal, id string) error {
			for _, err := range e.WatchAsClient(t.Context(), p, id, 0) {
				return err
			}
			return nil
		}, yes, scope, yes, hidden, refused},
		{"Skills", func(p account.Principal, id string) error { _, err := e.ActiveSkills(t.Context(), p, id); return err }, yes, yes, yes, hidden, refused},
		{"Load", func(p account.Principal, id string) error {
			_, err := e.Load(t.Context(), p, id, "tides", "")
			return err
		}, yes, scope, yes, hidden, refused},
		{"Unload", func(p account.Principal, id string) error {
			_, err := e.Unload(t.Context(), p, id, "ships", false)
			return err
		}, yes, scope, yes, hidden, refused},
		{"PreviewShare", func(p account.Principal, id string) error {
			_, err := e.PreviewShare(t.Context(), p, id, chat.ShareOptions{})
			return err
		}, yes, scope, yes, hidden, refused},
		{"CreateShare", func(p account.Principal, id string) error {
			if preview, err := e.PreviewShare(t.Context(), ada, id, chat.ShareOptions{}); err == nil {
				_, err = e.CreateShare(t.Context(), p, id, chat.ShareRequest{Digest: preview.Digest})
				return err
			}
			_, err := e.CreateShare(t.Context(), p, id, chat.ShareRequest{})
			return err
		}, yes, scope, yes, hidden, refused},
		{"History", func(p account.Principal, id string) error {
			_, err := e.History(t.Context(), p, id, 0, 0)
			return err
		}, yes, yes, yes, hidden, refused},
		{"Spent", func(p account.Principal, id string) error { _, err := e.ModelUsage(t.Context(), p, id); return err }, yes, yes, yes, hidden, refused},
		{"Export", func(p account.Principal, id string) error {
			return e.Export(t.Context(), p, id, chat.JSONL, io.Discard)
		}, yes, yes, yes, hidden, refused},
		{"Files", func(p account.Principal, id string) error { _, err := e.Files(t.Context(), p, id); return err }, yes, yes, yes, hidden, refused},
		{"ReadFile", func(p account.Principal, id string) error {
			_, err := e.ReadFile(t.Context(), p, id, "there")
			return err
		}, yes, yes, yes, hidden, refused},
		{"WriteFile", func(p account.Principal, id string) error {
			return e.WriteFile(t.Context(), p, id, "there", nil)
		}, yes, scope, yes, hidden, refused},
		{"DeleteFile", func(p account.Principal, id string) error { return e.DeleteFile(t.Context(), p, id, "there") }, yes, scope, yes, hidden, refused},
		{"Rename", func(p account.Principal, id string) error { return e.Rename(t.Context(), p, id, "x") }, yes, scope, yes, hidden, refused},
		{"Change", func(p account.Principal, id string) error { return e.Change(t.Context(), p, id, chat.Change{}) }, yes, scope, yes, hidden, refused},
		{"Folders", func(p account.Principal, _ string) error { _, err := e.Folders(t.Context(), p); return err }, yes, yes, yes, yes, yes},
		{"Answer", func(p account.Principal, id string) error {
			return e.AnswerApproval(t.Context(), p, id+".q", approval.Answer{Outcome: approval.Accepted})
		}, yes, scope, yes, hidden, refused},
		{"List", func(p account.Principal, _ string) error {
			_, _, err := e.List(t.Context(), p, p.User, chat.ListOptions{})
			return err
		}, yes, yes, yes, yes, yes},
		{"Begin", func(p account.Principal, _ string) error { _, err := e.Create(t.Context(), p, "", ""); return err }, yes, scope, yes, yes, yes},
		{"Asks", func(p account.Principal, _ string) error { _, err := e.ListApprovals(t.Context(), p); return err }, yes, scope, yes, yes, yes},
		{"Delete", func(p account.Principal, id string) error { return e.Delete(t.Context(), p, id) }, yes, scope, yes, hidden, refused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, who := range []struct {
				name string
				p    account.Principal
				want int
			}{
				{"nobody", account.Principal{}, signIn}, {"bob", bob, tt.isOthers}, {"an admin", admin, tt.admins},
				{"a token to read", reader, tt.reads}, {"a token to chat", talker, tt.chats}, {"the owner", ada, tt.owner},
			} {
				id := begin(t, e)
				if err := e.WriteFile(t.Context(), ada, id, "there", nil); err != nil {
					t.Fatal(err)
				}
				if _, err := e.Load(t.Context(), ada, id, "ships", ""); err != nil {
					t.Fatal(err)
				}
				put(t, approval.NewQueue(chat.Asks(e)), question(id, "q"))
				if got := verdict(tt.do(who.p, id)); got != who.want {
					t.Errorf("%s: %d, want %d", who.name, got, who.want)
				}
			}
		})
	}
	if _, _, err := e.List(t.Context(), bob, "ada", chat.ListOptions{}); err == nil {
		t.Error("bob lists what is ada's")
	}
}

// The audit log contains every change and every refusal, but no messages.
func TestAudit(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	e := node(t, db, setupFixture{})
	id := begin(t, e)
	end(t, e, id, say(t, e, id, "a secret word"))
	if err := e.Rename(t.Context(), ada, id, "x"); err != nil {
		t.Fatal(err)
	}
	if err := e.Cancel(t.Context(), ada, id); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Get(t.Context(), bob, id); err == nil {
		t.Error("bob may")
	}
	put(t, approval.NewQueue(chat.Asks(e)), question(id, "q"))
	if err := e.AnswerApproval(t.Context(), ada, id+".q", approval.Answer{Outcome: approval.Declined}); err != nil {
		t.Fatal(err)
	}
	if err := e.Delete(t.Context(), ada, id); err != nil {
		t.Fatal(err)
	}
	records, err := db.Audit.List(t.Context(), store.AuditQuery{Subject: "session/" + id})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"session.delete ada allowed", "ask.answer ada allowed", "session.read bob denied", "session.cancel ada allowed",
		"session.rename ada allowed", "session.message ada allowed", "session.begin ada allowed"}
	for i, r := range records {
		if got := r.Action + " " + r.Actor + " " + r.Decision; i >= len(want) || got != want[i] {
			t.Errorf("record %d is %q", i, got)
		}
	}
	if len(records) != len(want) {
		t.Errorf("%d records, want %d", len(records), len(want))
	}
}
