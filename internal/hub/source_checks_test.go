package hub_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/remote/remotetest"
	"github.com/loadout-dev/loadout/internal/store"
)

// sourceStatus is the last check of the source of a skill.
type sourceStatus struct {
	Checked, FailedSince time.Time
	Error, Newest        string
}

// statusOf returns the last check that the page of a skill shows to c, or nil.
func statusOf(t testing.TB, c caller, skill string) *sourceStatus {
	t.Helper()
	var s struct{ SourceStatus *sourceStatus }
	c.send(t, "GET", "/api/v1/skills/"+skill, nil).want(t, 200).into(t, &s)
	return s.SourceStatus
}

// attentionOn returns the skills that need the attention of c, with the reasons.
func attentionOn(t testing.TB, c caller) []string {
	t.Helper()
	var list struct {
		Items []struct {
			Name      string
			Attention []string
		}
	}
	c.send(t, "GET", "/api/v1/skills?attention=true", nil).want(t, 200).into(t, &list)
	var out []string
	for _, s := range list.Items {
		out = append(out, fmt.Sprint(s.Name, s.Attention))
	}
	return out
}

func (n *node) checkSources(t testing.TB) {
	t.Helper()
	if _, err := n.Library().CheckSources(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// failedBefore makes the checks of a skill's source fail for some time already.
func (n *node) failedBefore(t testing.TB, skill string, ago time.Duration) {
	t.Helper()
	old := store.SourceCheck{SkillID: skill, Checked: time.Now().Add(-ago), Error: "of old"}
	for _, err := range []error{n.DB().SourceChecks.Delete(t.Context(), skill), n.DB().SourceChecks.Record(t.Context(), old)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A source that fails for two intervals needs the attention of the users who may change
// the skill, until a check succeeds. They see the error and can start a check.
func TestFailedSource(t *testing.T) {
	importers(t, func(t *testing.T, n *node) {
		root := n.signIn(t, "root", secret)
		_, ada := n.newUser(t, root, "ada")
		g := remotetest.NewGit(t)
		g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "One.")})
		pdf := importResult(t, ada, "/api/v1/skills/import", map[string]string{"source": g.URL}).Created[0].ID
		if s := statusOf(t, ada, pdf); s != nil {
			t.Errorf("the source was not checked, but its check is %+v", s)
		}

		g.Forbid(true)
		n.checkSources(t)
		s := statusOf(t, ada, pdf)
		if s == nil || s.FailedSince.IsZero() || s.Error != "open "+g.URL+": "+g.Host()+" requires a credential and none is configured" {
			t.Errorf("the check is %+v", s)
		}
		wantEqual(t, attentionOn(t, ada), []string(nil)) // a single failure needs no attention

		n.failedBefore(t, pdf, 11*time.Hour)
		n.checkSources(t)
		wantEqual(t, attentionOn(t, ada), []string(nil))
		n.failedBefore(t, pdf, 12*time.Hour)
		n.checkSources(t)
		wantEqual(t, attentionOn(t, ada), []string{"pdf[source-failed]"})
		if s := statusOf(t, ada, pdf); time.Since(s.FailedSince) < 12*time.Hour || time.Since(s.Checked) > time.Hour || s.Error == "of old" {
			t.Errorf("the check is %+v", s)
		}

		var now sourceStatus
		ada.send(t, "POST", "/api/v1/skills/"+pdf+"/check", nil).want(t, 200).into(t, &now)
		if time.Since(now.FailedSince) < 12*time.Hour || now.Error == "" {
			t.Errorf("a check now returns %+v", now)
		}
		again := ada.send(t, "POST", "/api/v1/skills/"+pdf+"/check", nil)
		again.wantProblem(t, 429, "too_often")
		if again.header.Get("Retry-After") == "" {
			t.Errorf("Retry-After is missing: %+v", again.header)
		}

		g.Forbid(false)
		n.checkSources(t)
		if s := statusOf(t, ada, pdf); s == nil || !s.FailedSince.IsZero() || s.Error != "" {
			t.Errorf("the check is %+v", s)
		}
		wantEqual(t, attentionOn(t, ada), []string(nil))

		n.failedBefore(t, pdf, 12*time.Hour)
		ada.send(t, "PATCH", "/api/v1/skills/"+pdf, map[string]bool{"pinned": true}).want(t, 200)
		wantEqual(t, attentionOn(t, ada), []string(nil))
		ada.send(t, "POST", "/api/v1/skills/"+pdf+"/check", nil).wantProblem(t, 422, "invalid")
		// A check from before the pin says nothing about the source now.
		ada.send(t, "PATCH", "/api/v1/skills/"+pdf, map[string]bool{"pinned": false}).want(t, 200)
		if s := statusOf(t, ada, pdf); s != nil {
			t.Errorf("after the pin, the check is %+v", s)
		}
		wantEqual(t, attentionOn(t, ada), []string(nil))
	})
}

// A newer commit needs attention until an update, also after its notification was seen.
func TestSeenNotificationKeepsUpdateAvailable(t *testing.T) {
	importers(t, func(t *testing.T, n *node) {
		root := n.signIn(t, "root", secret)
		_, ada := n.newUser(t, root, "ada")
		g := remotetest.NewGit(t)
		g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "One.")})
		pdf := importResult(t, ada, "/api/v1/skills/import", map[string]string{"source": g.URL}).Created[0].ID
		commit := g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "Two.")})
		n.checkSources(t)
		for _, notice := range notices(t, ada, "?unseen=true") {
			ada.send(t, "POST", "/api/v1/notices/"+notice.ID+"/seen", nil).want(t, 204)
		}
		wantEqual(t, attentionOn(t, ada), []string{"pdf[source]"})
		if s := statusOf(t, ada, pdf); s == nil || s.Newest != commit {
			t.Errorf("the check is %+v, want the commit %s", s, commit)
		}
		importResult(t, ada, "/api/v1/skills/update", map[string]string{})
		wantEqual(t, attentionOn(t, ada), []string(nil))
		if s := statusOf(t, ada, pdf); s != nil {
			t.Errorf("the check before the update is %+v", s)
		}
	})
}

// Without the user who imported a skill, no credential is used. The error says so, and
// another user's update makes the source work again.
func TestSourceOfDisabledUser(t *testing.T) {
	importers(t, func(t *testing.T, n *node) {
		const token = "tok-3n-of-the-host"
		root := n.signIn(t, "root", secret)
		adaID, ada := n.newUser(t, root, "ada")
		bobID, bob := n.newUser(t, root, "bob")
		_, eve := n.newUser(t, root, "eve")
		group := root.send(t, "POST", "/api/v1/groups", map[string]string{"name": "team"}).want(t, 201).text(t, "id")
		for _, id := range []string{adaID, bobID} {
			root.send(t, "PUT", "/api/v1/groups/"+group+"/members/"+id, map[string]string{"role": "maintainer"}).want(t, 204)
		}
		g := remotetest.NewGit(t)
		g.Commit(map[string]string{"pdf/SKILL.md": skillText("pdf", "One.")})
		g.Private(token)
		name := "git_127_0_0_1___" + g.Host()[strings.Index(g.Host(), ":")+1:]
		for _, c := range []caller{ada, bob} {
			c.send(t, "PUT", "/api/v1/secrets/"+name, map[string]string{"value": token}).want(t, 204)
		}
		pdf := importResult(t, ada, "/api/v1/skills/import", map[string]string{"source": g.URL, "namespace": "team"}).Created[0].ID
		n.checkSources(t)
		if s := statusOf(t, bob, pdf); s == nil || s.Error != "" {
			t.Errorf("the check is %+v", s)
		}
		root.send(t, "PATCH", "/api/v1/users/"+adaID, map[string]bool{"disabled": true}).want(t, 200)
		n.checkSources(t)
		s := statusOf(t, bob, pdf)
		if s == nil || !strings.Contains(s.Error, "deleted or disabled") || strings.Contains(s.Error, "3n") {
			t.Errorf("the check is %+v", s)
		}
		eve.send(t, "POST", "/api/v1/skills/"+pdf+"/check", nil).wantProblem(t, 404, "not_found")

		wantEqual(t, importResult(t, bob, "/api/v1/skills/update", map[string]any{"namespace": "team", "ids": []string{pdf}}).texts(),
			map[string][]string{"skipped": {"pdf: already up to date"}})
		n.checkSources(t)
		if s := statusOf(t, bob, pdf); s == nil || s.Error != "" {
			t.Errorf("with another user's credential, the check is %+v", s)
		}
	})
}
