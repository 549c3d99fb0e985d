package agentapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/auth"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

func TestTrialErrors(t *testing.T) {
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errTrial)
	c := &upstream.Config{Name: "wiki"}
	long := strings.Repeat("x", trialErrors)
	for _, tt := range []struct {
		name string
		ctx  context.Context
		err  error
		want string
	}{
		{"over", over, errors.New("cut"), "no answer within 15 s"},
		{"not found", t.Context(), fmt.Errorf("dial: %w", &net.DNSError{Name: "wiki.example", Server: "10.0.0.1"}), `connect to server "wiki": host "wiki.example" not found: check the spelling and try again`},
		{"short enough", t.Context(), errors.New(long), long},
		{"too long", t.Context(), errors.New(long + "y"), long + "…"},
		{"cut in a character", t.Context(), errors.New(long[1:] + "é"), long[1:] + "…"},
	} {
		if got := trialError(tt.ctx, c, tt.err); got != tt.want {
			t.Errorf("%s: %.300q (%d bytes)", tt.name, got, len(got))
		}
	}
}

func TestAddSignInStatus(t *testing.T) {
	for back, want := range map[string]string{"": "/servers?signin=done", "/chat": "/chat?signin=done", "/chat?a=b": "/chat?a=b&signin=done", "%zz": "/servers?signin=done"} {
		if got := addSignInStatus(back, "done"); got != want {
			t.Errorf("%q: %q, want %q", back, got, want)
		}
	}
}

func TestRedirectURL(t *testing.T) {
	for _, tt := range []struct {
		public, host string
		ok           bool
	}{
		{"", "localhost", true}, {"", "localhost:8484", true}, {"", "127.0.0.1:8484", true}, {"", "[::1]:8484", true}, {"", "[::1]", true}, {"", "192.0.2.1", false}, {"", "hub.example:8484", false},
		{"https://hub.example", "192.0.2.1", true},
	} {
		h := &Handlers{Server: &api.Server{Options: api.Options{Public: tt.public}}}
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = tt.host
		got, err := h.redirectURL(r)
		if (err == nil) != tt.ok || tt.ok && !strings.HasSuffix(got, "/servers/callback") {
			t.Errorf("%+v: %q, %v", tt, got, err)
		}
	}
}

func TestBrowserCookie(t *testing.T) {
	for _, secure := range []bool{false, true} {
		h := &Handlers{Gate: &auth.Gate{Secure: secure}}
		r := httptest.NewRequest("GET", "/", nil)
		first := h.browserCookie(r)
		if first.Secure != secure || strings.HasPrefix(first.Name, "__Host-") != secure || !first.HttpOnly || first.MaxAge != 600 || len(first.Value) < 40 {
			t.Errorf("cookie %+v", first)
		}
		r.AddCookie(first)
		if again := h.browserCookie(r); again.Value != first.Value {
			t.Error("a browser gets another cookie for its second sign-in")
		}
		short := httptest.NewRequest("GET", "/", nil)
		first.Value = first.Value[1:]
		short.AddCookie(first)
		if again := h.browserCookie(short); again.Value == first.Value {
			t.Error("a value of another length is kept")
		}
	}
}

func TestPendingTools(t *testing.T) {
	definition := func(server, tool, digest string, accepted bool) store.ToolDefinition {
		return store.ToolDefinition{Server: server, Tool: tool, Digest: digest, Accepted: accepted, Definition: json.RawMessage(`"` + digest + `"`)}
	}
	got := pendingTools([]store.ToolDefinition{
		definition("s", "a", "1", true), definition("s", "a", "2", false), definition("s", "a", "3", false), definition("s", "b", "4", false), definition("t", "a", "5", false),
	})
	var all []string
	for _, p := range got {
		all = append(all, fmt.Sprintf("%s %s %s<-%s", p.Name, p.Digest, p.New, p.Old))
	}
	if text := strings.Join(all, "; "); text != `a 2 "2"<-"1"; a 3 "3"<-"1"; b 4 "4"<-; a 5 "5"<-` {
		t.Error(text)
	}
}

func TestServerState(t *testing.T) {
	for want, s := range map[string]agents.Server{
		serverReady:    {Review: store.Approved},
		serverDisabled: {Review: store.Rejected, Config: &upstream.Config{Disabled: true}},
		serverRejected: {Review: store.Rejected},
		serverPending:  {Review: store.Pending},
	} {
		if s.Config == nil {
			s.Config = &upstream.Config{Name: "s", Command: "run"}
		}
		if got := serverState(s); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestFirstError(t *testing.T) {
	ds := skill.Diagnostics{{Severity: skill.Warning, Message: "odd"}, {Severity: skill.Error, Message: "bad", Fix: "mend it"}, {Severity: skill.Error, Message: "worse"}}
	if got := firstError(ds); got != "bad; mend it" {
		t.Error(got)
	}
	if got := firstError(ds[:1]); got != "" {
		t.Error(got)
	}
}

func TestReferencedProblem(t *testing.T) {
	other := errors.New("other")
	if err := referencedProblem(other); err != other {
		t.Error(err)
	}
	if err := referencedProblem(nil); err != nil {
		t.Error(err)
	}
	by := []agents.Referrer{{Kind: "Bot", Name: "lead"}, {Kind: "Bot", Name: "writer", Namespace: "crew"}}
	for hidden, want := range map[int]string{0: `Ghost "plan" is referenced by Bot "lead", Bot "writer"`, 1: `Ghost "plan" is referenced by Bot "lead", Bot "writer", 1 of others`} {
		p, _ := errors.AsType[*api.Problem](referencedProblem(&agents.ReferencedError{Kind: "Ghost", Name: "plan", By: by, Hidden: hidden}))
		if p == nil || p.Detail != want || p.References.Hidden != hidden || p.References.Visible[0].Namespace != "default" || p.References.Visible[1].Namespace != "crew" {
			t.Errorf("%+v", p)
		}
	}
}
