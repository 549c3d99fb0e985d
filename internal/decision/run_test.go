package decision_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/policy"
)

func request() decision.RunRequest {
	return decision.RunRequest{Principal: robot, Subject: digestOf("a"), Name: "pdf", Origin: "user", Enabled: true}
}

// approve is the hint of a denial that an approval resolves.
const approve = "approve it after a review"

func TestForRun(t *testing.T) {
	csv := func(d string) []policy.Need { return []policy.Need{{Name: "csv", Digest: digestOf(d)}} }
	approved := func(change ...func(*policy.Grant)) []policy.Grant {
		g := newGrant(digestOf("a"))
		for _, f := range change {
			f(&g)
		}
		return []policy.Grant{g}
	}
	for name, tt := range map[string]struct {
		grants []policy.Grant
		change func(*decision.RunRequest)
		allow  bool
		code   string
		reason string // in it
		next   string
	}{
		"nothing approved":            {code: decision.NotApproved, reason: "not approved", next: approve},
		"approved":                    {grants: approved(), allow: true, code: decision.Granted, reason: "person ann"},
		"disabled though approved":    {grants: approved(), change: func(q *decision.RunRequest) { q.Enabled = false }, code: "disabled", reason: "disabled", next: "enable it in the configuration"},
		"disabled though bundled":     {change: func(q *decision.RunRequest) { q.Enabled, q.Bundled = false, true }, code: "disabled", reason: "disabled", next: "enable it in the configuration"},
		"disabled though typed":       {change: func(q *decision.RunRequest) { q.Enabled, q.ByUser, q.Principal = false, true, ann }, code: "disabled", reason: "disabled", next: "enable it in the configuration"},
		"bundled":                     {change: func(q *decision.RunRequest) { q.Bundled = true }, allow: true, code: "bundled", reason: "bundled with"},
		"a person types":              {change: func(q *decision.RunRequest) { q.ByUser, q.Principal = true, ann }, allow: true, code: "typed", reason: "started by"},
		"an agent types":              {change: func(q *decision.RunRequest) { q.ByUser = true }, code: decision.NotApproved, reason: "not approved", next: approve},
		"a byte changed":              {grants: approved(), change: func(q *decision.RunRequest) { q.Subject = digestOf("b") }, code: decision.Changed, reason: "changed since it was approved (was sha256:aaaaaaaaaaaa, is sha256:bbbbbbbbbbbb)", next: approve},
		"another origin of the name":  {grants: approved(), change: func(q *decision.RunRequest) { q.Subject, q.Origin = digestOf("b"), "git" }, code: decision.NotApproved, reason: "not approved", next: approve},
		"approved for another":        {grants: approved(func(g *policy.Grant) { g.Principal = ann }), code: decision.NotApproved, reason: "not approved", next: approve},
		"approved in another session": {grants: approved(func(g *policy.Grant) { g.Scope, g.Session = policy.ForSession, "s1" }), change: func(q *decision.RunRequest) { q.Session = "s2" }, code: decision.NotApproved, reason: "not approved", next: approve},
		"approved in the session":     {grants: approved(func(g *policy.Grant) { g.Scope, g.Session = policy.ForSession, "s1" }), change: func(q *decision.RunRequest) { q.Session = "s1" }, allow: true, code: decision.Granted, reason: "person ann"},
		"approved, but not to run":    {grants: approved(func(g *policy.Grant) { g.Permissions.Run = false }), code: decision.NotApproved, reason: "not to run", next: approve},
		"with the same needs":         {grants: approved(func(g *policy.Grant) { g.Needs = csv("c") }), change: func(q *decision.RunRequest) { q.Needs = csv("c") }, allow: true, code: decision.Granted, reason: "person ann"},
		"a need changed":              {grants: approved(func(g *policy.Grant) { g.Needs = csv("c") }), change: func(q *decision.RunRequest) { q.Needs = csv("d") }, code: decision.Changed, reason: "changed since it was approved: dependency csv (sha256:dddddddddddd) was not approved", next: approve},
		"a need more":                 {grants: approved(), change: func(q *decision.RunRequest) { q.Needs = csv("c") }, code: decision.Changed, reason: "changed since it was approved: dependency csv (sha256:cccccccccccc) was not approved", next: approve},
		"a need less":                 {grants: approved(func(g *policy.Grant) { g.Needs = csv("c") }), code: decision.Changed, reason: "changed since it was approved: dependency csv (sha256:cccccccccccc) was removed", next: approve},
		"no digest":                   {grants: approved(), change: func(q *decision.RunRequest) { q.Subject = "" }, code: "malformed", reason: "invalid digest"},
		"no digest though bundled":    {change: func(q *decision.RunRequest) { q.Subject, q.Bundled = "", true }, code: "malformed", reason: "invalid digest"},
		"no principal":                {grants: approved(), change: func(q *decision.RunRequest) { q.Principal = policy.Principal{} }, code: "malformed", reason: "unknown kind of principal"},
		"an ask that is none":         {grants: approved(), change: func(q *decision.RunRequest) { q.Requested.Network = []string{"a/b"} }, code: "malformed", reason: "host pattern"},
		"a name for the shell":        {change: func(q *decision.RunRequest) { q.Name = "pdf; rm -rf ~" }, code: decision.NotApproved, reason: "not approved", next: approve},
		"a name that is an option":    {change: func(q *decision.RunRequest) { q.Name = "--all" }, code: decision.NotApproved, reason: "not approved", next: approve},
	} {
		t.Run(name, func(t *testing.T) {
			s := policy.NewMemoryStore()
			for _, g := range tt.grants {
				_, err := s.Put(t.Context(), g)
				try(t, err)
			}
			q := request()
			if tt.change != nil {
				tt.change(&q)
			}
			before, _, _ := s.List(t.Context())
			d := decision.ForRun(t.Context(), s, q)
			if (d.Effect == policy.Allow) != tt.allow || d.Code != tt.code || !strings.Contains(d.Reason, tt.reason) || d.Hint != tt.next {
				t.Errorf("decided %+v\nwant allow %v, %s, %q, next %q", d, tt.allow, tt.code, tt.reason, tt.next)
			}
			if (d.Effect == policy.Allow) != d.Effective.Run {
				t.Errorf("effect is %v, and running is effective: %v", d.Effect, d.Effective.Run)
			}
			after, _, _ := s.List(t.Context())
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("deciding changed the grants:\n%s", diff)
			}
		})
	}
}

func TestRunGetsRequestedAndApprovedPermissions(t *testing.T) {
	s := policy.NewMemoryStore()
	g := newGrant(digestOf("a"))
	g.Permissions = policy.Permissions{Run: true, Network: []string{"*.example.com", "unasked.example"}, Secrets: []string{"KEY", "UNASKED"}, WorkspaceWrite: true}
	_, err := s.Put(t.Context(), g)
	try(t, err)
	q := request()
	q.Requested = policy.Permissions{Network: []string{"api.example.com:443", "evil.example"}, Secrets: []string{"KEY", "OTHER"}, Unsandboxed: true, HostNetwork: true}
	d := decision.ForRun(t.Context(), s, q)
	if want := (policy.Permissions{Run: true, Network: []string{"api.example.com:443"}, Secrets: []string{"KEY"}}); d.Effect != policy.Allow || !cmp.Equal(d.Effective, want) {
		t.Errorf("%s with %+v, want allow with %+v", d.Effect, d.Effective, want)
	}
	if want := []string{"network evil.example", "secret OTHER", "running without a sandbox", "the network of the host"}; !cmp.Equal(d.Denied, want) {
		t.Errorf("denied %q, want %q", d.Denied, want)
	}
	for _, what := range d.Denied {
		if !strings.Contains(d.Reason, what) {
			t.Errorf("the reason %q does not name %s", d.Reason, what)
		}
	}
	if d.Hint != approve || d.Grant == nil || d.Grant.Name != "pdf" {
		t.Errorf("next %q, grant %+v", d.Hint, d.Grant)
	}
}

func TestExpiredApprovalIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := policy.NewMemoryStore()
		g := newGrant(digestOf("a"))
		g.Expires = time.Now().Add(time.Hour)
		_, err := s.Put(t.Context(), g)
		try(t, err)
		time.Sleep(time.Hour - 1)
		if d := decision.ForRun(t.Context(), s, request()); d.Effect != policy.Allow {
			t.Errorf("before it expires: %+v", d)
		}
		time.Sleep(time.Nanosecond)
		if d := decision.ForRun(t.Context(), s, request()); d.Effect != policy.Deny || d.Code != decision.Expired || d.Grant == nil {
			t.Errorf("when it expired: %+v", d)
		}
	})
}

// faulty is a store with configurable results.
type faulty struct {
	policy.Store
	find, list error
	grant      *policy.Grant
	problems   []policy.Problem
}

func (f *faulty) Find(context.Context, policy.Principal, policy.Digest, string) (*policy.Grant, error) {
	return f.grant, f.find
}

func (f *faulty) List(context.Context) ([]policy.Grant, []policy.Problem, error) {
	return nil, f.problems, f.list
}

func TestForRunTrustsNoFaultyStore(t *testing.T) {
	broken := errors.New("disk\x1b on fire")
	other := newGrant(digestOf("b"))
	for name, r := range map[string]policy.Store{
		"finding fails":       &faulty{find: broken},
		"listing fails":       &faulty{find: policy.ErrNotGranted, list: broken},
		"it finds another":    &faulty{grant: &other},
		"it finds no grant":   &faulty{},
		"both are impossible": &faulty{find: broken, list: broken, grant: &other},
	} {
		d := decision.ForRun(t.Context(), r, request())
		if d.Effect != policy.Deny || d.Code != decision.Unreadable || !strings.HasPrefix(d.Reason, "cannot read grants: ") || strings.Contains(d.Reason, "\x1b") {
			t.Errorf("%s: decided %+v", name, d)
		}
	}
}

func TestRecordContainsDecision(t *testing.T) {
	s := policy.NewMemoryStore()
	g := newGrant(digestOf("a"))
	g.Permissions.Network = []string{"example.com"}
	g, err := s.Put(t.Context(), g)
	try(t, err)
	q := request()
	q.Session, q.Requested = "s1", policy.Permissions{Network: []string{"example.com", "example.org"}, Unsandboxed: true}
	got := decision.ForRun(t.Context(), s, q).Record(q)
	want := policy.Record{Principal: robot, Action: "run", Subject: q.Subject, Name: "pdf", Decision: policy.Allow,
		Reason: "approved by person ann, but not network example.org, running without a sandbox",
		Details: map[string]string{"code": "granted", "origin": "user", "session": "s1", "network": "example.com",
			"denied": "network example.org, running without a sandbox", "grant": g.ID}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
	q.Subject = digestOf("b")
	if got := decision.ForRun(t.Context(), s, q).Record(q); got.Decision != policy.Deny || got.Details["code"] != "changed" {
		t.Errorf("the record of a refusal is %+v", got)
	}
}

// Every permission of a run is recorded, and each one that is missing is listed.
func TestRecordContainsAllPermissions(t *testing.T) {
	s := policy.NewMemoryStore()
	g := newGrant(digestOf("a"))
	all := policy.Permissions{Run: true, Network: []string{"example.com"}, Secrets: []string{"KEY"}, WorkspaceWrite: true, Unsandboxed: true, HostNetwork: true}
	g.Permissions = all
	_, err := s.Put(t.Context(), g)
	try(t, err)
	q := request()
	q.Requested = all
	d := decision.ForRun(t.Context(), s, q)
	if d.Effect != policy.Allow || len(d.Denied) > 0 || d.Hint != "" || strings.Contains(d.Reason, "but not") || d.Grant == nil {
		t.Errorf("decided %+v", d)
	}
	for key, want := range map[string]string{"workspace_write": "true", "unsandboxed": "true", "host_network": "true", "network": "example.com", "secrets": "KEY"} {
		if got := d.Record(q).Details[key]; got != want {
			t.Errorf("%s is recorded as %q, want %q", key, got, want)
		}
	}
	q.Principal = ann
	d = decision.ForRun(t.Context(), s, q)
	if want := []string{"running scripts", "network example.com", "secret KEY", "writing to the workspace", "running without a sandbox", "the network of the host"}; !cmp.Equal(d.Denied, want) {
		t.Errorf("denied %q, want %q", d.Denied, want)
	}
	r := d.Record(q)
	for _, key := range []string{"workspace_write", "unsandboxed", "host_network", "network", "secrets", "grant"} {
		if v, ok := r.Details[key]; ok {
			t.Errorf("a refusal records %s as %q", key, v)
		}
	}
}

// A run that is refused names the grant that was close.
func TestRefusalNamesTheGrant(t *testing.T) {
	for name, change := range map[string]func(*policy.Grant, *decision.RunRequest){
		"other needs": func(_ *policy.Grant, q *decision.RunRequest) {
			q.Needs = []policy.Need{{Name: "csv", Digest: digestOf("c")}}
		},
		"not to run":   func(g *policy.Grant, _ *decision.RunRequest) { g.Permissions.Run = false },
		"other digest": func(_ *policy.Grant, q *decision.RunRequest) { q.Subject = digestOf("b") },
	} {
		s := policy.NewMemoryStore()
		g, q := newGrant(digestOf("a")), request()
		change(&g, &q)
		stored, err := s.Put(t.Context(), g)
		try(t, err)
		if d := decision.ForRun(t.Context(), s, q); d.Effect != policy.Deny || d.Grant == nil || d.Grant.ID != stored.ID {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// Only grants of the same principal, name and origin explain a refusal.
func TestOtherGrantsExplainNoRefusal(t *testing.T) {
	for name, change := range map[string]func(*policy.Grant){
		"for a tool":        func(g *policy.Grant) { g.Permissions = policy.Permissions{Call: true} },
		"another principal": func(g *policy.Grant) { g.Principal = ann },
		"another name":      func(g *policy.Grant) { g.Name = "csv" },
		"another origin":    func(g *policy.Grant) { g.Origin = "git" },
	} {
		s := policy.NewMemoryStore()
		g := newGrant(digestOf("b"))
		change(&g)
		_, err := s.Put(t.Context(), g)
		try(t, err)
		if d := decision.ForRun(t.Context(), s, request()); d.Code != decision.NotApproved || d.Grant != nil || d.Reason != "not approved" {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestUnreadableGrantsAreMentioned(t *testing.T) {
	s := &faulty{find: policy.ErrNotGranted, problems: []policy.Problem{{}, {}}}
	if d := decision.ForRun(t.Context(), s, request()); d.Code != decision.NotApproved || !strings.Contains(d.Reason, "; 2 grants are unreadable, the first: ") {
		t.Errorf("decided %+v", d)
	}
	s.problems = s.problems[:1]
	if d := decision.ForRun(t.Context(), s, request()); !strings.Contains(d.Reason, "; 1 grants are unreadable") {
		t.Errorf("decided %+v", d)
	}
}

// An expired approval of another version explains nothing but the change.
func TestExpiredApprovalOfAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := policy.NewMemoryStore()
		g := newGrant(digestOf("b"))
		g.Expires = time.Now().Add(time.Hour)
		_, err := s.Put(t.Context(), g)
		try(t, err)
		time.Sleep(2 * time.Hour)
		if d := decision.ForRun(t.Context(), s, request()); d.Effect != policy.Deny || d.Code != decision.Changed {
			t.Errorf("decided %+v", d)
		}
	})
}
