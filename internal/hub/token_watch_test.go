package hub_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/store"
)

// endings lists the ways in which a token becomes invalid.
func endings(t *testing.T, n *node) map[string]func(store.Token) {
	again := func(change func(*store.Token)) func(store.Token) {
		return func(k store.Token) {
			err := n.DB().Tx(t.Context(), func(tx *store.Tx) error {
				if err := tx.Tokens.Delete(t.Context(), k.UserID, k.ID); err != nil {
					return err
				}
				change(&k)
				_, err := tx.Tokens.Create(t.Context(), k)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
	return map[string]func(store.Token){
		"withdrawn": func(k store.Token) {
			if err := n.DB().Tokens.Delete(t.Context(), k.UserID, k.ID); err != nil {
				t.Error(err)
			}
		},
		"expired":  again(func(k *store.Token) { k.Expires = time.Now().Add(-time.Second) }),
		"narrowed": again(func(k *store.Token) { k.Scopes = []string{"read"} }),
	}
}

// withToken returns a client with a new token of another user, and the stored token.
func (n *node) withToken(t *testing.T, name string) (caller, store.Token) {
	t.Helper()
	p, text := n.newcomer(t, name, account.AllScopes)
	rows := must(n.DB().Tokens.ListByUser(t.Context(), string(p.User)))(t)
	return caller{node: n, token: text}, rows[0]
}

func TestTokenRevocationEndsItsTurns(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, o hub.Options) {
		o.FirstAdmin, o.Accounts = &hub.FirstAdmin{Name: "root", Password: secret}, true
		n := start(t, o)
		talker(t, n)
		other, _ := n.withToken(t, "other")
		stays := other.begin(t)
		other.say(t, stays, "wait")
		for name, end := range endings(t, n) {
			t.Run(name, func(t *testing.T) {
				ada, token := n.withToken(t, "ada-"+name)
				p := must(n.People().SignIns.Principal(t.Context(), account.UserID(token.UserID)))(t)
				text, _, err := account.NewTokens(users.NewTokenStore(n.DB())).Create(t.Context(), p, "another", account.AllScopes, time.Hour)
				if err != nil {
					t.Fatal(err)
				}
				later := caller{node: n, token: text}
				session := ada.begin(t)
				turn, behind := ada.say(t, session, "wait"), ada.say(t, session, "hello")
				events, socket := ada.open(t, session+"/events?after=1000"), ada.socket(t)
				socket.answered(map[string]any{"type": "attach", "session": id(session), "after": 1000})
				later.until(t, session+"/events", func(e chat.Event) bool { return e.Type == chat.TurnStarted })
				end(token)
				if e, ok := events.next(); !ok || e.name != "problem" || !strings.Contains(e.data, "bad_token") {
					t.Errorf("who watches got %+v, %v", e, ok)
				}
				if m := socket.until(ofType("error")); m.Code != "bad_token" {
					t.Errorf("the socket got %+v", m)
				}
				want := "was revoked or has expired"
				if name == "narrowed" {
					want = "fewer scopes than before"
				}
				for _, input := range []int64{turn, behind} {
					all := later.until(t, session+"/events", func(e chat.Event) bool { return e.Type == chat.TurnEnded && e.Input == input })
					if got := all[len(all)-1]; got.Reason != chat.Failed || !strings.Contains(got.Text, want) {
						t.Errorf("input %d ended: %s %s", input, got.Reason, got.Text)
					}
				}
			})
		}
		if c := other.send(t, "GET", stays, nil).want(t, 200); !strings.Contains(c.body, `"busy":true`) {
			t.Errorf("what another one began is %s", c.body)
		}
		other.send(t, "POST", stays+"/cancel", nil).want(t, 204)
	})
}

// A call over MCP ends with the token of who calls, and says so.
func TestMCPCallEndsWithItsToken(t *testing.T) {
	t.Parallel()
	n, shop := withShop(t)
	for _, era := range eras {
		for name, end := range endings(t, n) {
			p, token := n.newcomer(t, era+name, account.ScopeMCP)
			cs := connectMCP(t, n.URL+"/mcp", token, era, nil)
			var calling sync.WaitGroup
			calling.Go(func() {
				res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_tool", Arguments: args{"name": "shop__wait"}})
				if err != nil || !res.IsError || !strings.Contains(textOfResult(res), "the token was revoked, has expired") {
					t.Errorf("%s, %s: what was called returned %v, %v", era, name, res, err)
				}
			})
			shop.begun(t)
			end(must(n.DB().Tokens.ListByUser(t.Context(), string(p.User)))(t)[0])
			calling.Wait()
		}
	}
}
