package hub_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/store"
)

// limit sets the limits of the hub.
func (c *groupHub) limit(t testing.TB, s quota.Settings) {
	t.Helper()
	is := responseRecorder[struct{ Generation int64 }](t, c.root, "/settings/quotas")
	c.root.send(t, "PUT", "/api/v1/settings/quotas", map[string]any{"user": s.User, "group": s.Group, "overrides": append([]quota.Override{}, s.Overrides...), "generation": is.Generation}).want(t, 200)
}

// wantQuota checks that a limit refused a request.
func (r reply) wantQuota(t testing.TB, in string, m quota.Measure, limit int64) {
	t.Helper()
	r.wantProblem(t, 403, "quota")
	var p api.Problem
	r.into(t, &p)
	if q := p.Quota; q == nil || string(q.Namespace) != in || q.Measure != m || q.Limit != limit || q.Used+q.Added <= limit || !strings.Contains(p.Next, "delete") {
		t.Errorf("got %s", r.body)
	}
}

// tally returns how many requests succeeded; a limit refused the others.
func tally(t testing.TB, answers []reply, in string, m quota.Measure, limit int64) int {
	t.Helper()
	added := 0
	for _, r := range answers {
		if r.status < 300 {
			added++
			continue
		}
		r.wantQuota(t, in, m, limit)
	}
	return added
}

// Each way to store something counts toward the quota of its user or group, and
// concurrent requests do not exceed it together.
func TestQuotas(t *testing.T) {
	eachCrew(t, func(t *testing.T, c *groupHub) {
		own := "user:" + c.ids["developer"]
		answers := make([]reply, 6)
		atOnce := func(send func(i int) (reply, error)) {
			var sending sync.WaitGroup
			for i := range answers {
				sending.Go(func() {
					var err error
					if answers[i], err = send(i); err != nil {
						t.Error(err)
					}
				})
			}
			sending.Wait()
		}
		c.limit(t, quota.Settings{User: quota.Amounts{Bytes: 60_000, Skills: 3, Sessions: 2}, Group: quota.Amounts{Bytes: 30_000}})

		packages := make([]typed, len(answers))
		for i := range packages {
			packages[i] = zipped(t, fmt.Sprint("skill-", i), noise(10_000))
		}
		atOnce(func(i int) (reply, error) { return c.node.send(c.developer, "POST", "/api/v1/skills", packages[i]) })
		if n := tally(t, answers, own, quota.Bytes, 60_000); n != 2 {
			t.Errorf("%d skills of 20,000 bytes were stored", n)
		}
		small := c.developer.upload(t, "default", "small", "text")
		c.developer.send(t, "POST", "/api/v1/skills", zipped(t, "another", "text")).wantQuota(t, own, quota.Skills, 3)
		atOnce(func(int) (reply, error) {
			return c.node.send(c.developer, "POST", "/api/v1/sessions", map[string]any{})
		})
		if n := tally(t, answers, own, quota.Sessions, 2); n != 2 {
			t.Errorf("%d conversations were stored", n)
		}
		var session string
		for _, r := range answers {
			if r.status < 300 {
				session = r.header.Get("Location")
			}
		}

		text := noise(10_000)
		refused := zipped(t, "small", text)
		c.developer.send(t, "POST", "/api/v1/skills/"+small+"/versions", refused).wantQuota(t, own, quota.Bytes, 60_000)
		hash := sha256.Sum256(skillFiles("small", text)["SKILL.md"].Data)
		if _, err := c.DB().Blobs.Size(t.Context(), hex.EncodeToString(hash[:])); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a refused file was stored: %v", err)
		}
		plain := c.developer.with("Content-Type", "application/octet-stream")
		plain.send(t, "PUT", session+"/files/a", text+text).wantQuota(t, own, quota.Bytes, 60_000)
		plain.send(t, "PUT", session+"/files/a", text[:9000]).want(t, 204)
		plain.send(t, "PUT", session+"/files/a", text[:9001]).want(t, 204)
		plain.send(t, "PUT", session+"/files/b", text[:12_000]).wantQuota(t, own, quota.Bytes, 60_000)
		document := "apiVersion: loadout/v1\nkind: %s\nmetadata:\n  name: small\n  description: d\nspec:\n  %s: " + text + "\n"
		c.developer.apply(t, "", fmt.Sprintf(document, "Ghost", "systemPrompt")).wantQuota(t, own, quota.Bytes, 60_000)
		c.developer.apply(t, "?dry_run=true", fmt.Sprintf(document, "Ghost", "systemPrompt")).wantQuota(t, own, quota.Bytes, 60_000)
		c.developer.apply(t, "", fmt.Sprintf(document, "Skill", "prompt")).wantQuota(t, own, quota.Bytes, 60_000)
		c.developer.send(t, "DELETE", session, nil).want(t, 204)
		draft := func(text string) map[string]any {
			return map[string]any{"draft": files(file("SKILL.md", "---\nname: tides\ndescription: Reads tide tables.\n---\n"), file("table", text))}
		}
		c.developer.send(t, "POST", "/api/v1/sessions", draft(noise(20_000))).wantQuota(t, own, quota.Bytes, 60_000)
		c.developer.send(t, "POST", "/api/v1/sessions", draft("x")).want(t, 201)

		c.developer.upload(t, "team", "skill-0", noise(10_000))
		c.another.send(t, "POST", "/api/v1/skills?namespace=team", zipped(t, "skill-1", noise(10_000))).wantQuota(t, c.in, quota.Bytes, 30_000)
		c.limit(t, quota.Settings{Group: quota.Amounts{Bytes: 30_000}, Overrides: []quota.Override{{Namespace: store.Namespace(c.in), Limits: quota.Amounts{Bytes: 50_000}}}})
		c.another.upload(t, "team", "skill-1", noise(10_000))
		c.developer.upload(t, "default", "another", noise(10_000))
	})
}

// Messages and secrets count too: one account cannot store more than its limit in
// them, and deleting a conversation makes space again.
func TestQuotasOfMessagesAndSecrets(t *testing.T) {
	eachCrew(t, func(t *testing.T, c *groupHub) {
		own := "user:" + c.ids["developer"]
		c.limit(t, quota.Settings{User: quota.Amounts{Bytes: 60_000}})
		begin := func() string {
			t.Helper()
			return c.developer.send(t, "POST", "/api/v1/sessions", map[string]any{}).want(t, 201).header.Get("Location")
		}
		text := map[string]string{"text": noise(10_000)} // 20,000 characters
		one, two := begin(), begin()
		c.developer.send(t, "POST", one+"/messages", text).want(t, 202)
		for _, session := range []string{one, two} {
			c.developer.send(t, "POST", session+"/messages", text).wantQuota(t, own, quota.Bytes, 60_000)
		}
		var used struct{ Used quota.Amounts }
		c.developer.send(t, "GET", "/api/v1/usage/storage", nil).want(t, 200).into(t, &used)
		if used.Used.Bytes < 40_000 {
			t.Errorf("%d bytes are counted", used.Used.Bytes)
		}
		c.developer.send(t, "POST", one+"/cancel", nil).want(t, 204)
		c.developer.send(t, "PUT", "/api/v1/secrets/big", map[string]string{"value": text["text"]}).wantQuota(t, own, quota.Bytes, 60_000)
		c.developer.send(t, "DELETE", one, nil).want(t, 204)
		c.developer.send(t, "PUT", "/api/v1/secrets/big", map[string]string{"value": text["text"]}).want(t, 204)
		c.developer.send(t, "PUT", "/api/v1/secrets/big", map[string]string{"value": text["text"]}).want(t, 204)
		c.developer.send(t, "POST", two+"/messages", text).wantQuota(t, own, quota.Bytes, 60_000)
		c.developer.send(t, "DELETE", "/api/v1/secrets/big", nil).want(t, 204)
		c.developer.send(t, "POST", two+"/messages", text).want(t, 202)
	})
}

// Users see what they store, and its limits; members what their group stores.
func TestStorageOfAccount(t *testing.T) {
	c := newGroupHub(t, "")
	type amounts struct{ Bytes, Skills, Sessions int64 }
	type answer struct {
		Namespace    string
		Used, Limits amounts
	}
	c.developer.upload(t, "team", "tides", noise(500))
	c.developer.send(t, "POST", "/api/v1/sessions", map[string]any{}).want(t, 201)
	wantSame(t, "own", responseRecorder[answer](t, c.developer, "/usage/storage"),
		answer{"user:" + c.ids["developer"], amounts{Sessions: 1}, amounts{2_000_000_000, 2000, 10_000}})
	team := responseRecorder[answer](t, c.reporter, "/usage/storage?namespace="+c.in)
	if team.Used.Skills != 1 || team.Used.Bytes < 1000 || team.Used.Bytes > 4000 || team.Limits != (amounts{2_000_000_000, 2000, 0}) {
		t.Errorf("the group stores %+v", team)
	}
	wantSame(t, "before anything is set", responseRecorder[struct{ User, Group amounts }](t, c.root, "/settings/quotas"),
		struct{ User, Group amounts }{amounts{2_000_000_000, 2000, 10_000}, amounts{2_000_000_000, 2000, 0}})
	for _, body := range []string{
		`{"user": {"bytes": -1, "skills": 0, "sessions": 0}, "group": {"bytes": 0, "skills": 0, "sessions": 0}, "generation": 0}`,
		`{"user": {"bytes": 0, "skills": 0, "sessions": 0}, "group": {"bytes": 0, "skills": 0, "sessions": 0}, "generation": 0, "overrides": [{"namespace": "group:none", "limits": {"bytes": 0, "skills": 0, "sessions": 0}}]}`,
		`{"user": {"bytes": 0, "skills": 0, "sessions": 0}, "group": {"bytes": 0, "skills": 0, "sessions": 0}, "generation": 0, "overrides": [{"namespace": "team", "limits": {"bytes": 0, "skills": 0, "sessions": 0}}]}`,
	} {
		c.root.send(t, "PUT", "/api/v1/settings/quotas", body).wantProblem(t, 422, "invalid")
	}
}

// The limits of a user or group that was deleted since do not prevent changes.
func TestQuotasOfDeletedOwners(t *testing.T) {
	c := newGroupHub(t, "")
	single := quota.Amounts{Skills: 7}
	s := quota.Settings{User: single, Overrides: []quota.Override{{Namespace: store.Namespace("user:" + c.ids["developer"]), Limits: single}, {Namespace: store.Namespace(c.in), Limits: single}}}
	c.limit(t, s)
	c.root.send(t, "DELETE", "/api/v1/users/"+c.ids["developer"], nil).want(t, 204)
	c.root.send(t, "DELETE", "/api/v1/groups/"+strings.TrimPrefix(c.in, "group:"), nil).want(t, 204)
	c.limit(t, s)
	unknown := map[string]any{"user": single, "group": single, "generation": 2, "overrides": []quota.Override{{Namespace: "user:none", Limits: single}}}
	c.root.send(t, "PUT", "/api/v1/settings/quotas", unknown).wantProblem(t, 422, "invalid")
	s.Overrides = nil
	c.limit(t, s)
	s.Overrides = []quota.Override{{Namespace: store.Namespace(c.in), Limits: single}}
	again := map[string]any{"user": single, "group": single, "generation": 3, "overrides": s.Overrides}
	c.root.send(t, "PUT", "/api/v1/settings/quotas", again).wantProblem(t, 422, "invalid")
}

// A hub for one user has no quotas until the user sets some.
func TestSingleUserHubHasNoQuotas(t *testing.T) {
	n := start(t, hub.Options{})
	me := n.anybody()
	wantSame(t, "limits", responseRecorder[struct{ Limits quota.Amounts }](t, me, "/usage/storage").Limits, quota.Amounts{})
	me.send(t, "PUT", "/api/v1/settings/quotas", map[string]any{"user": quota.Amounts{Skills: 1}, "group": quota.Amounts{}, "generation": 0}).want(t, 200)
	me.upload(t, "default", "tides", "text")
	me.send(t, "POST", "/api/v1/skills", zipped(t, "another", "text")).wantQuota(t, "user:local", quota.Skills, 1)
}
