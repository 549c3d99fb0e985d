package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

// crew contains all kinds; documents come before those that they refer to.
const crew = `
kind: Team
metadata: {name: crew}
spec: {members: [{botRef: lead, role: leader}, {botRef: writer, prompt: "Be short."}]}
---
kind: Bot
metadata: {name: lead}
spec: {ghostRef: plan, modelRef: big}
---
kind: Bot
metadata: {name: writer, description: writes texts}
spec: {ghostRef: plan, skills: [prose]}
---
kind: Ghost
metadata: {name: plan}
spec: {systemPrompt: "You plan.", skills: [plans], mcpServers: [weather]}
---
kind: Model
metadata: {name: big}
spec: {vendor: openai, model: m-1, apiKey: "${{secrets.LLM}}"}
---
kind: MCPServer
metadata: {name: weather}
spec: {url: https://weather.example.com/mcp}
---
kind: Shell
metadata: {name: Chat}
`

// in is a text with its documents in a namespace.
func in(namespace, yaml string) string {
	return strings.ReplaceAll(yaml, "metadata: {", "metadata: {namespace: "+namespace+", ")
}

// Applying a document twice changes nothing. A changed document reports the difference,
// and the audit log contains each change with its author.
func TestApplyIsIdempotent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := newHub(t, db, nil)
		first := h.apply("developer", crew)
		wantEqual(t, said(first), `created Team/crew
created Bot/lead
created Bot/writer; 11:18 skill-missing
created Ghost/plan; 15:18 skill-missing
created Model/big
created MCPServer/weather
skipped Shell/Chat; 26:7 document-skipped
`)
		revisions, err := db.Revisions(t.Context())
		must(t, err)
		wantEqual(t, strings.Count(said(h.apply("developer", crew)), "unchanged"), 6)
		after, err := db.Revisions(t.Context())
		must(t, err)
		wantEqual(t, after, revisions)

		changed := h.apply("developer", strings.Replace(crew, "You plan.", "You plan ahead.", 1))
		wantEqual(t, changed.Changes[3].Outcome, agents.Updated)
		wantEqual(t, changed.Changes[3].Diff, []agents.FieldChange{{Path: "spec.systemPrompt", Old: `"You plan."`, New: `"You plan ahead."`}})

		log, err := db.Audit.List(t.Context(), store.AuditQuery{Actor: string(h.people["developer"].User), Limit: 100})
		must(t, err)
		wantEqual(t, len(log), 7)
		wantEqual(t, log[0].Subject+" "+log[0].Action+" "+log[0].Decision, "Ghost/plan kind.apply allowed")
	})
}

// The order of keys and the quoting of texts are no changes.
func TestApplyComparesValues(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	h.apply("outsider", head("Ghost")+"spec: {skills: [a, b], mcpServers: {s: {url: 'https://s.example.com', headers: {A: '1'}}}}")
	r := h.apply("outsider", `{"kind": "Ghost", "metadata": {"name": "x"}, "spec": {"mcp_servers": {"s": {"headers": {"A": "1"}, "url": "https://s.example.com"}}, "skills": "a,b"}}`)
	wantEqual(t, r.Changes[0].Outcome, agents.Unchanged)
	r = h.apply("outsider", head("Ghost")+"spec: {skills: [b, a], mcpServers: {s: {url: 'https://s.example.com', headers: {A.B: '1'}}}}")
	wantEqual(t, r.Changes[0].Diff, []agents.FieldChange{
		{Path: "spec.mcpServers.s.headers.A", Old: `"1"`}, {Path: "spec.mcpServers.s.headers.A.B", New: `"1"`},
		{Path: "spec.skills[0]", Old: `"a"`, New: `"b"`}, {Path: "spec.skills[1]", Old: `"b"`, New: `"a"`}})
}

// A key with a dot in it is another one than two keys.
func TestApplyDetectsEveryChange(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	h.apply("outsider", head("MCPServer")+"spec: {url: 'https://s.example.com', note: {a: {b: 1}}}")
	r := h.apply("outsider", head("MCPServer")+"spec: {url: 'https://s.example.com', note: {a.b: 1}}")
	wantEqual(t, r.Changes[0].Outcome, agents.Updated)
}

// If one document is invalid for any reason, no document is stored, and all errors are
// reported.
func TestApplyIsAtomic(t *testing.T) {
	for name, bad := range map[string]string{
		"unreadable":          "kind: 'Ghost\n",
		"wrong":               "kind: Ghost\nmetadata: {name: y}\nspec: {preload: [z]}\n",
		"no such Ghost":       "kind: Bot\nmetadata: {name: y}\nspec: {ghostRef: none}\n",
		"no such server":      "kind: Ghost\nmetadata: {name: y}\nspec: {mcpServers: [none]}\n",
		"no such namespace":   "kind: Ghost\nmetadata: {name: y, namespace: none}\n",
		"not allowed":         "kind: Ghost\nmetadata: {name: y, namespace: public}\n",
		"twice":               head("Ghost"),
		"private address":     "kind: Model\nmetadata: {name: y}\nspec: {vendor: openai, model: m, baseUrl: 'http://10.0.0.1/v1'}\n",
		"metadata service":    "kind: Ghost\nmetadata: {name: y}\nspec: {mcpServers: {a: {url: 'http://169.254.169.254/'}}}\n",
		"a skill as document": "kind: Skill\nmetadata: {name: y}\nspec: {description: d, prompt: p}\n",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, sqlite(t), nil)
			before, err := h.db.Revisions(t.Context())
			must(t, err)
			r := h.try("developer", head("Ghost")+"---\n"+head("Bot")+"spec: {ghostRef: x}\n---\n"+bad)
			if r.Committed || !r.HasRefused() || r.Changes[0].Outcome != agents.Created || r.Changes[2].Outcome != agents.Refused {
				t.Errorf("kept %v:\n%s", r.Committed, said(r))
			}
			after, err := h.db.Revisions(t.Context())
			must(t, err)
			wantEqual(t, after, before)
			_, err = h.Get(t.Context(), h.people["developer"], agents.GhostKind, "", "x")
			wantError(t, err, store.ErrNotFound)
		})
	}
}

// A dry run says what would be and does nothing.
func TestApplyDryRun(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	r, err := h.Apply(t.Context(), h.people["developer"], agents.Parse([]byte(crew), ""), true)
	must(t, err)
	if r.Committed || r.HasRefused() || r.Changes[0].Outcome != agents.Created || len(r.Changes[0].Diff) == 0 {
		t.Errorf("kept %v:\n%s", r.Committed, said(r))
	}
	_, err = h.Get(t.Context(), h.people["developer"], agents.TeamKind, "", "crew")
	wantError(t, err, store.ErrNotFound)
	log, err := h.db.Audit.List(t.Context(), store.AuditQuery{})
	must(t, err)
	wantEqual(t, len(log), 0)
}

// Of many who apply the same at once, one makes it and the others find it made.
func TestConcurrentApply(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := newHub(t, db, nil)
		var running sync.WaitGroup
		outcomes := make(chan agents.Outcome, 8)
		for range cap(outcomes) {
			running.Go(func() {
				r, err := h.Apply(t.Context(), h.people["developer"], agents.Parse([]byte(head("Ghost")), ""), false)
				if err != nil {
					t.Error(err)
					return
				}
				outcomes <- r.Changes[0].Outcome
			})
		}
		running.Wait()
		close(outcomes)
		count := map[agents.Outcome]int{}
		for o := range outcomes {
			count[o]++
		}
		wantEqual(t, count, map[agents.Outcome]int{agents.Created: 1, agents.Unchanged: 7})
	})
}

// All members of a group can resolve the references of its documents, so they cannot
// name private items of one user.
func TestApplyGroupReferences(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	h.apply("developer", head("Ghost"))
	bot := "kind: Bot\nmetadata: {name: b, namespace: team}\nspec: {ghostRef: {name: x, namespace: default}}\n"
	wantEqual(t, said(h.try("developer", bot)), "refused Bot/b; 2:18 ref-missing\n")
	h.apply("developer", in("team", head("Ghost")))
	h.apply("developer", bot)
	h.apply("reporter", head("Ghost")+"spec: {systemPrompt: of the reporter}")
	wantEqual(t, h.profile("reporter", agents.BotKind, "team", "b").SystemPrompt, "")
}

// A reader of a resource learns what else is allowed.
func TestGetReturnsAllowedActions(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	h.apply("maintainer", in("team", head("Ghost")))
	for who, want := range map[string][]account.Action{
		"reporter":   {account.KindUse},
		"developer":  {account.KindUse, account.KindApply},
		"maintainer": {account.KindUse, account.KindApply, account.KindDelete},
		"owner":      {account.KindUse, account.KindApply, account.KindDelete},
		"admin":      {account.KindApply, account.KindDelete},
	} {
		got, err := h.Get(t.Context(), h.people[who], agents.GhostKind, "team", "x")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Can, want) {
			t.Errorf("%s can %v, want %v", who, got.Can, want)
		}
	}
}

// The servers of the operator's own file can be named.
func TestApplyReferencesOperatorServers(t *testing.T) {
	h := newHub(t, sqlite(t), &agents.Options{Servers: []*upstream.Config{{Name: "mail", Command: "mail"}}})
	h.apply("reporter", head("Ghost")+"spec: {mcpServers: [mail]}")
	s := h.profile("reporter", agents.GhostKind, "", "x").Servers
	if len(s) != 1 || s[0].Owner != "" || s[0].NeedsSandbox() || !s[0].Usable() {
		t.Errorf("%+v", s)
	}
}

// A document that must be new is refused with all others if it would change an existing
// one.
func TestApplyOnlyNewDocuments(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	ghost := func(name, prompt string) string {
		return fmt.Sprintf("kind: Ghost\nmetadata: {name: %s}\nspec: {systemPrompt: %s}\n---\n", name, prompt)
	}
	h.apply("developer", ghost("x", "Old."))
	apply := func(yaml string) *agents.Result {
		docs := agents.Parse([]byte(yaml), "a.yaml")
		for _, d := range docs {
			d.MustBeNew = true
		}
		r, err := h.Apply(t.Context(), h.people["developer"], docs, false)
		must(t, err)
		return r
	}
	r := apply(ghost("y", "New.") + ghost("x", "New."))
	wantEqual(t, said(r), "created Ghost/y\nrefused Ghost/x; 6:18 document-exists\n")
	if r.Committed {
		t.Error("some documents were stored")
	}
	r = apply(ghost("y", "New.") + ghost("x", "Old."))
	wantEqual(t, said(r), "created Ghost/y\nunchanged Ghost/x\n")
}

// A saved agent gets a Bot with its name, also if another namespace has a Bot with this
// name. A new agent may not have a name that is taken there.
func TestBotOfASavedAgent(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	const ghost, bot = "kind: Ghost\nmetadata: {name: %[1]s}\nspec: {systemPrompt: Text.}\n---\n", "kind: Bot\nmetadata: {name: %[1]s}\nspec: {ghostRef: {name: %[1]s}}\n---\n"
	h.apply("developer", fmt.Sprintf(ghost, "old"))
	for _, name := range []string{"old", "fresh"} {
		h.apply("maintainer", in("team", fmt.Sprintf(ghost+bot, name)))
		docs := agents.Parse([]byte(fmt.Sprintf(ghost+bot, name)), "a.yaml")
		for _, d := range docs {
			d.MustBeNew = d.Kind == agents.BotKind || name == "fresh"
		}
		r, err := h.Apply(t.Context(), h.people["developer"], docs, true)
		must(t, err)
		if refused := strings.Contains(said(r), "refused Bot/"+name); refused != (name == "fresh") {
			t.Errorf("%s: %s", name, said(r))
		}
	}
}

// A dry run is not in the audit log, even if documents are denied.
func TestDryRunIsNotAudited(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	docs := agents.Parse([]byte("kind: Model\nmetadata: {name: gpt, namespace: team}\nspec: {vendor: demo}\n"), "a.yaml")
	for _, dry := range []bool{true, false} {
		r, err := h.Apply(t.Context(), h.people["developer"], docs, dry)
		must(t, err)
		log, err := h.db.Audit.List(t.Context(), store.AuditQuery{Actor: string(h.people["developer"].User), Limit: 10})
		must(t, err)
		if denied := len(log) > 0; !r.OnlyDenied() || denied == dry {
			t.Errorf("dry %v: %s, log %+v", dry, said(r), log)
		}
	}
}

// A deletion that is denied is audited, unless nothing was to be changed.
func TestDeniedDeletionIsAudited(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	h.apply("maintainer", in("team", head("Ghost")))
	for _, dry := range []bool{true, false} {
		_, err := h.ApplyAndDelete(t.Context(), h.people["developer"], nil, []agents.Deletion{{Kind: agents.GhostKind, Namespace: "team", Name: "x"}}, dry)
		if _, denied := errors.AsType[*account.DeniedError](err); !denied {
			t.Fatal(err)
		}
		log, err := h.db.Audit.List(t.Context(), store.AuditQuery{Actor: string(h.people["developer"].User), Limit: 10})
		must(t, err)
		if denied := len(log) == 1 && log[0].Action == string(account.KindDelete); denied == dry {
			t.Errorf("dry %v: log %+v", dry, log)
		}
	}
	_, err := h.Get(t.Context(), h.people["developer"], agents.GhostKind, "team", "x")
	must(t, err)
}

// Of documents that must be new, only those over a quota or a limit are refused.
func TestApplyRefusesWhatDoesNotFit(t *testing.T) {
	apply := func(h *hub, yaml string) string {
		docs := agents.Parse([]byte(yaml), "a.yaml")
		for _, d := range docs {
			d.MustBeNew = true
		}
		r, err := h.Apply(t.Context(), h.people["developer"], docs, true)
		must(t, err)
		return said(r)
	}
	ghost := "kind: Ghost\nmetadata: {name: %s}\nspec: {systemPrompt: %s}\n---\n"
	h := newHub(t, sqlite(t), &agents.Options{Quotas: quota.Quotas{Default: quota.Settings{User: quota.Amounts{Bytes: 2000}}}})
	h.apply("developer", fmt.Sprintf(ghost, "old", "Old."))
	wantEqual(t, apply(h, fmt.Sprintf(ghost, "large", strings.Repeat("x", 2000))+fmt.Sprintf(ghost, "old", "Old.")+fmt.Sprintf(ghost, "small", "x")),
		"refused Ghost/large; 2:18 document-quota\nunchanged Ghost/old\ncreated Ghost/small\n")
	var many strings.Builder
	for i := range 12 {
		fmt.Fprintf(&many, "kind: Ghost\nmetadata: {name: g%02d}\nspec: {skills: [", i)
		for n := range 350 {
			fmt.Fprintf(&many, "s%d, ", n)
		}
		many.WriteString("]}\n---\n")
	}
	got := apply(newHub(t, sqlite(t), nil), many.String())
	if n := strings.Count(got, "created "); n != 11 || !strings.Contains(got, "refused Ghost/g11; 46:18 document-many\n") {
		t.Errorf("%d are created: %.300s", n, got[strings.LastIndex(got, "created "):])
	}
}

// A document that must be new does not take precedence over a resource of another
// namespace or a server of the operator, unless its namespace already has it.
func TestApplyTakesNoPrecedence(t *testing.T) {
	h := newHub(t, sqlite(t), &agents.Options{Servers: []*upstream.Config{{Name: "mail", Command: "mail"}}})
	document := func(kind, name, in, at string) string {
		spec := map[string]string{
			agents.ServerKind: "url: 'https://" + at + ".example.com/mcp'", agents.ModelKind: "vendor: openai, model: x, baseUrl: 'https://" + at + ".example.com'",
			agents.GhostKind: "systemPrompt: " + at, agents.BotKind: "ghostRef: base, skills: [" + at + "]", agents.TeamKind: "members: [base], collaborationModel: " + at,
		}[kind]
		return fmt.Sprintf("kind: %s\nmetadata: {name: %s, namespace: %s}\nspec: {%s}\n---\n", kind, name, in, spec)
	}
	h.apply("admin", document(agents.GhostKind, "base", "public", "base")+document(agents.BotKind, "base", "public", "base"))
	kinds := []string{agents.ModelKind, agents.ServerKind, agents.GhostKind, agents.BotKind, agents.TeamKind}
	for _, kind := range kinds {
		h.apply("owner", document(kind, "ours", "team", "ours"))
		h.apply("admin", document(kind, "all", "public", "all"))
		h.apply("developer", document(kind, "mine", "default", "mine"))
	}
	for _, tt := range []struct {
		who, in string
		refused []string
	}{
		{"developer", "default", []string{"all", "mine", "ours"}},
		{"owner", "team", []string{"all", "ours"}},
		{"outsider", "default", []string{"all"}},
		{"admin", "public", []string{"all"}},
	} {
		for _, kind := range kinds {
			want := tt.refused
			if kind == agents.ServerKind {
				want = slices.Sorted(slices.Values(append(slices.Clone(want), "mail")))
			}
			var refused []string
			for _, name := range []string{"all", "mail", "mine", "new", "ours"} {
				docs := agents.Parse([]byte(document(kind, name, tt.in, "other")), "a.yaml")
				docs[0].MustBeNew = true
				r, err := h.Apply(t.Context(), h.people[tt.who], docs, true)
				must(t, err)
				if r.HasRefused() {
					refused = append(refused, name)
				}
			}
			if !slices.Equal(refused, want) {
				t.Errorf("%s, %s in %s: refused %q, want %q", tt.who, kind, tt.in, refused, want)
			}
		}
	}
}

// W7: a precise reference is stored as written and must exist. A name is resolved when
// it is used.
func TestW7References(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := newHub(t, db, nil)
		public, mine := h.upload(store.Public, "pdf", digestA), h.upload(h.of("reporter"), "pdf", "sha256:mine")
		ghost := head("Ghost") + "spec: {skills: [pdf], skill_refs: {pdf: {%s}}}"
		choice := func(ref string) agents.SkillChoice {
			t.Helper()
			h.apply("reporter", fmt.Sprintf(ghost, ref))
			return h.profile("reporter", agents.GhostKind, "", "x").Skills[0]
		}
		wantEqual(t, choice("").ID, mine.ID)
		wantEqual(t, choice("is_public: true").ID, public.ID)
		wantEqual(t, choice("namespace: public").ID, public.ID)
		wantEqual(t, choice("skill_id: "+public.ID+", content_hash: '"+digestA+"'"), agents.SkillChoice{Name: "pdf", ID: public.ID, In: store.Public, Digest: digestA})
		kept, err := db.Refs.ListTo(t.Context(), agents.SkillKind, public.ID, "pdf", 10)
		must(t, err)
		if len(kept) != 1 || kept[0].ToID != public.ID || kept[0].Digest != digestA {
			t.Errorf("kept %+v", kept)
		}
		for name, ref := range map[string]string{
			"no such id":      "skill_id: none",
			"of another name": "skill_id: " + h.upload(store.Public, "csv", "sha256:c").ID,
			"no such version": "is_public: true, content_hash: 'sha256:" + strings.Repeat("b", 64) + "'",
			"not for him":     "skill_id: " + h.upload(h.of("owner"), "pdf", "sha256:o").ID,
			"not there":       "namespace: team",
		} {
			if r := h.try("reporter", fmt.Sprintf(ghost, ref)); said(r) != "refused Ghost/x; 3:18 skill-ref\n" {
				t.Errorf("%s: %s", name, said(r))
			}
		}

		// References are resolved late: new items are found, and deleted ones are
		// reported.
		h.apply("reporter", head("Ghost")+"spec: {skills: [later]}")
		wantEqual(t, h.profile("reporter", agents.GhostKind, "", "x").Problems, []string{"skill later: not found or not permitted"})
		later := h.upload(h.team, "later", "sha256:l")
		wantEqual(t, h.profile("reporter", agents.GhostKind, "", "x").Skills[0].ID, later.ID)
	})
}

// W8: referrers are listed, one reference is removed, and the item stays.
func TestW8References(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := newHub(t, db, nil)
		h.apply("maintainer", in("team", crew))
		h.apply("reporter", "kind: Bot\nmetadata: {name: mine}\nspec: {ghostRef: plan}\n")
		id := func(name string) string {
			bot, err := h.Get(t.Context(), h.people["maintainer"], agents.BotKind, "team", name)
			must(t, err)
			return bot.ID
		}
		err := h.Delete(t.Context(), h.people["maintainer"], agents.GhostKind, "team", "plan", false)
		wantError(t, err, store.ErrReferenced)
		referenced, _ := errors.AsType[*agents.ReferencedError](err)
		wantEqual(t, referenced, &agents.ReferencedError{Kind: "Ghost", Name: "plan", Hidden: 1, By: []agents.Referrer{
			{Kind: "Bot", ID: id("lead"), Namespace: "team", Name: "lead", Slot: "ghostRef"}, {Kind: "Bot", ID: id("writer"), Namespace: "team", Name: "writer", Slot: "ghostRef"}}})
		// One of the same name that is nearer is meant by the other Bot from now on.
		h.apply("reporter", "kind: Ghost\nmetadata: {name: plan}\n")
		_, hidden, err := h.Referrers(t.Context(), h.people["maintainer"], agents.GhostKind, "team", "plan")
		must(t, err)
		wantEqual(t, hidden, 0)

		must(t, h.Delete(t.Context(), h.people["maintainer"], agents.TeamKind, "team", "crew", true))
		for _, what := range []string{"Team crew", "Bot writer", "Bot lead", "Ghost plan"} {
			kind, name, _ := strings.Cut(what, " ")
			must(t, h.Delete(t.Context(), h.people["maintainer"], kind, "team", name, false))
		}
		_, err = h.Get(t.Context(), h.people["maintainer"], agents.GhostKind, "team", "plan")
		wantError(t, err, store.ErrNotFound)

		s := h.upload(store.Public, "pdf", digestA)
		h.apply("developer", head("Ghost")+"spec: {skills: [a, pdf], preload: [pdf], skill_refs: {pdf: {skill_id: "+s.ID+"}}}")
		refs, err := db.Refs.ListTo(t.Context(), agents.SkillKind, s.ID, s.Name, 10)
		must(t, err)
		unbind := func(id string) error {
			return db.Tx(t.Context(), func(tx *store.Tx) error {
				k, err := tx.Kinds.Get(t.Context(), refs[0].FromID)
				if err != nil {
					return err
				}
				return h.UnbindSkill(t.Context(), tx, k, id, s.Name)
			})
		}
		wantError(t, unbind("another"), store.ErrNotFound)
		must(t, unbind(s.ID))
		wantError(t, unbind(s.ID), store.ErrNotFound)
		res, err := h.Get(t.Context(), h.people["developer"], agents.GhostKind, "", "x")
		must(t, err)
		b, err := res.Encode()
		must(t, err)
		wantEqual(t, string(b), `{"apiVersion":"loadout/v1","kind":"Ghost","metadata":{"name":"x"},"spec":{"skills":["a"]}}`)
	})
}

// A document of a skill becomes a SKILL.md, applied by who keeps skills, in the same
// transaction.
func TestApplySkill(t *testing.T) {
	var files []string
	opts := &agents.Options{ApplySkill: func(ctx context.Context, tx *store.Tx, p account.Principal, f agents.SkillFile) (agents.AppliedSkill, error) {
		if err := account.Check(p, account.SkillUpload, account.Resource{Owner: account.UserID(f.In.User()), Group: account.GroupID(f.In.Group())}); err != nil {
			return agents.AppliedSkill{}, err
		}
		files = append(files, string(f.Data))
		_, err := tx.Skills.Create(ctx, store.Skill{Namespace: f.In, Name: f.Name, CreatedBy: string(p.User)})
		return agents.AppliedSkill{Outcome: agents.Created}, err
	}}
	h := newHub(t, sqlite(t), opts)
	src := "kind: Ghost\nmetadata: {name: g}\nspec: {skills: [x]}\n---\napiVersion: agent.wecode.io/v1\n" + head("Skill")[len("apiVersion: loadout/v1\n"):] +
		"spec: {description: 'does: x', prompt: \"Do x.\\n\", version: 2, visible: true, mcpServers: {s: {url: 'https://s.example.com'}}}\n"
	wantEqual(t, said(h.try("reporter", strings.ReplaceAll(src, "name: x}", "name: x, namespace: team}"))), "created Ghost/g\nrefused Skill/x; 7:18 denied\n")
	wantEqual(t, said(h.apply("owner", src)), "created Ghost/g\ncreated Skill/x\n")
	wantEqual(t, files, []string{"---\nname: \"x\"\ndescription: \"does: x\"\nmcpServers: {\"s\":{\"url\":\"https://s.example.com\"}}\nversion: 2\n---\nDo x.\n"})
	s, err := h.db.Skills.Find(t.Context(), "x", []store.Namespace{h.of("owner")})
	if err != nil || len(s) != 1 {
		t.Errorf("%v %v", s, err)
	}

	opts.ApplySkill = func(context.Context, *store.Tx, account.Principal, agents.SkillFile) (agents.AppliedSkill, error) {
		return agents.AppliedSkill{Outcome: agents.Updated, Before: []byte("old"), Pending: 2}, nil
	}
	waits := newHub(t, sqlite(t), opts).apply("owner", src).Changes[1]
	if i := slices.IndexFunc(waits.Findings, func(d skill.Diagnostic) bool { return d.Code == "skill-pending" }); i < 0 || waits.Findings[i].Severity != skill.Warning || !strings.Contains(waits.Findings[i].Message, "version 2 is awaiting review") {
		t.Errorf("a skill that is awaiting review has the findings %v", waits.Findings)
	}
}

// TestRoles checks who may do what to whose items. An item that a user may not see is
// not found.
func TestRoles(t *testing.T) {
	people := []string{"owner", "maintainer", "developer", "reporter", "outsider", "admin", "nobody"}
	read := func(kind string) func(h *hub, who, where string) error {
		return func(h *hub, who, where string) error {
			_, err := h.Get(h.t.Context(), h.people[who], kind, where, "x")
			return err
		}
	}
	apply := func(yaml string) func(h *hub, who, where string) error {
		return func(h *hub, who, where string) error {
			r, err := h.Apply(h.t.Context(), h.people[who], agents.Parse([]byte(in(where, yaml)), ""), true)
			if err != nil || !r.HasRefused() {
				return err
			}
			if strings.Contains(said(r), "document-namespace") {
				return store.ErrNotFound
			}
			return errRefused
		}
	}
	remove := func(h *hub, who, where string) error {
		return h.Delete(h.t.Context(), h.people[who], agents.GhostKind, where, "x", true)
	}
	use := func(h *hub, who, where string) error {
		_, err := h.Profile(h.t.Context(), h.people[who], agents.GhostKind, where, "x")
		return err
	}
	secret := func(h *hub, who, where string) error {
		n, err := h.ResolveNamespace(h.t.Context(), h.people[who], where)
		if err != nil {
			return err
		}
		return h.Secrets().Set(h.t.Context(), h.people[who], agents.NamespaceOwner(n), "S", "v")
	}
	secrets := func(h *hub, who, where string) error {
		n, err := h.ResolveNamespace(h.t.Context(), h.people[who], where)
		if err != nil {
			return err
		}
		_, err = h.Secrets().List(h.t.Context(), h.people[who], agents.NamespaceOwner(n))
		return err
	}
	settings := func(h *hub, who, where string) error {
		_, err := h.SkillSettings(h.t.Context(), h.people[who], where)
		return err
	}
	set := func(h *hub, who, where string) error {
		old, err := h.SkillSettings(h.t.Context(), h.people[who], where)
		if err != nil {
			return err
		}
		return h.SetSkillSettings(h.t.Context(), h.people[who], where, old)
	}
	review := func(h *hub, who, where string) error {
		of := agents.Subject{Kind: agents.ServerKind, Namespace: where, Name: "x"}
		d, err := h.SubjectDigest(h.t.Context(), h.people[who], of)
		if err != nil {
			return err
		}
		return h.ReviewServer(h.t.Context(), h.people[who], of, d, store.Approved, "")
	}
	h := newHub(t, sqlite(t), nil)
	for _, who := range []string{"admin", "maintainer"} {
		where := map[string]string{"admin": "public", "maintainer": "team"}[who]
		h.apply(who, in(where, head("Ghost")+"---\n"+head("MCPServer")+"spec: {command: z}\n"))
	}
	h.apply("developer", head("Ghost"))
	mine := string(h.of("developer"))
	for _, tt := range []struct {
		action, where string
		do            func(h *hub, who, where string) error
		want          string // for each user: y, n, - for not found, ? for sign in
	}{
		{"read", "team", read(agents.GhostKind), "yyyy-y?"},
		{"read", "public", read(agents.GhostKind), "yyyyyy?"},
		{"read", mine, read(agents.GhostKind), "--y--y?"},
		{"use", "team", use, "yyyy-n?"},
		{"use", "public", use, "yyyyyy?"},
		{"use", mine, use, "--y--n?"},
		{"apply a Ghost", "team", apply(head("Ghost") + "spec: {expose: meta}"), "yyyn-y?"},
		{"apply a Ghost", "public", apply(head("Ghost") + "spec: {expose: meta}"), "nnnnny?"},
		{"apply a Ghost", mine, apply(head("Ghost")), "--y--y?"},
		{"apply a server", "team", apply(head("MCPServer") + "spec: {command: z}"), "yynn-y?"},
		{"apply a Model", "team", apply(head("Model") + "spec: {vendor: demo}"), "yynn-y?"},
		{"apply a Model", "public", apply(head("Model") + "spec: {vendor: demo}"), "nnnnny?"},
		{"delete", "team", remove, "yynn-y?"},
		{"delete", "public", remove, "nnnnny?"},
		{"delete", mine, remove, "--y--y?"},
		{"set a secret", "team", secret, "yynn-n?"},
		{"set a secret", "public", secret, "nnnnny?"},
		{"set a secret", mine, secret, "--y--n?"},
		{"list secrets", "team", secrets, "yynn-n?"},
		{"list secrets", mine, secrets, "--y--n?"},
		{"read settings", "hub", settings, "yyyyyy?"},
		{"read settings", "team", settings, "yyyy-y?"},
		{"change settings", "hub", set, "nnnnny?"},
		{"change settings", "team", set, "yynn-y?"},
		{"review a server", "team", review, "ynnn-y?"}, // not who applied it
		{"review a server", "public", review, "nnnnny?"},
	} {
		got := ""
		for _, who := range people {
			err := tt.do(h, who, tt.where)
			denied, _ := errors.AsType[*account.DeniedError](err)
			switch {
			case err == nil:
				got += "y"
			case errors.Is(err, store.ErrNotFound):
				got += "-"
			case denied != nil && denied.SignIn:
				got += "?"
			case denied != nil || errors.Is(err, errRefused):
				got += "n"
			default:
				t.Errorf("%s in %s by %s: %v", tt.action, tt.where, who, err)
			}
		}
		if got != tt.want {
			t.Errorf("%s in %s: %s, want %s", tt.action, tt.where, got, tt.want)
		}
	}
	log, err := h.db.Audit.List(t.Context(), store.AuditQuery{Actor: string(h.people["reporter"].User), Limit: 500})
	must(t, err)
	for _, r := range log {
		if r.Decision != "denied" {
			t.Errorf("the reporter was let %s %s", r.Action, r.Subject)
		}
	}
	if len(log) == 0 {
		t.Error("no refusal is in the audit log")
	}
}

var errRefused = errors.New("refused")

// A list contains what the user may see, in pages.
func TestList(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	h.apply("admin", in("public", strings.ReplaceAll(head("Ghost"), "name: x", "name: a")))
	h.apply("developer", in("team", strings.ReplaceAll(head("Ghost"), "name: x", "name: b")))
	h.apply("developer", strings.ReplaceAll(head("Ghost"), "name: x", "name: c"))
	all := func(who, where string) (names []string) {
		page := store.Page{Limit: 1}
		for {
			found, next, err := h.List(t.Context(), h.people[who], agents.GhostKind, where, page)
			must(t, err)
			for _, f := range found {
				names = append(names, f.Namespace+"/"+f.Name)
			}
			if next == "" {
				return names
			}
			page.After = next
		}
	}
	wantEqual(t, all("developer", ""), []string{"public/a", "team/b", "/c"})
	wantEqual(t, all("developer", "default"), []string{"/c"})
	wantEqual(t, all("reporter", ""), []string{"public/a", "team/b"})
	wantEqual(t, all("outsider", ""), []string{"public/a"})
	_, _, err := h.List(t.Context(), h.people["outsider"], agents.GhostKind, "team", store.Page{})
	wantError(t, err, store.ErrNotFound)
}

func TestStoredDocumentsRoundTrip(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	h.apply("maintainer", in("team", crew))
	for _, what := range []string{"Team crew", "Bot lead", "Bot writer", "Ghost plan", "Model big", "MCPServer weather"} {
		kind, name, _ := strings.Cut(what, " ")
		res, err := h.Get(t.Context(), h.people["maintainer"], kind, "team", name)
		must(t, err)
		b, err := res.Encode()
		must(t, err)
		if r := h.apply("maintainer", string(b)); r.Changes[0].Outcome != agents.Unchanged || !json.Valid(b) {
			t.Errorf("%s is %s: %s\n%+v", what, r.Changes[0].Outcome, b, r.Changes[0].Diff)
		}
	}
}

// A damaged document is reported, affects no others, and is repaired by applying it
// again.
func TestDamagedDocument(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	h.apply("reporter", head("Ghost")+"---\nkind: Ghost\nmetadata: {name: y}\n")
	res, err := h.Get(t.Context(), h.people["reporter"], agents.GhostKind, "", "x")
	must(t, err)
	_, err = h.db.Kinds.Update(t.Context(), res.ID, res.Generation, json.RawMessage(`{"spec": {"skills": 7}}`))
	must(t, err)
	_, err = h.Get(t.Context(), h.people["reporter"], agents.GhostKind, "", "x")
	wantError(t, err, store.ErrCorrupt)
	found, _, err := h.List(t.Context(), h.people["reporter"], agents.GhostKind, "", store.Page{})
	must(t, err)
	if len(found) != 2 || found[0].Findings.Loads() || found[0].Spec != nil || !found[1].Findings.Loads() || found[1].Spec == nil {
		t.Errorf("%+v", found)
	}
	wantEqual(t, h.apply("reporter", head("Ghost")).Changes[0].Outcome, agents.Updated)
	_, err = h.Get(t.Context(), h.people["reporter"], agents.GhostKind, "", "x")
	must(t, err)
}

// A token is limited to its scopes, whoever owns it.
func TestScopes(t *testing.T) {
	ctx := t.Context()
	h := newHub(t, sqlite(t), nil)
	h.apply("owner", head("Ghost"))
	own := agents.NamespaceOwner(h.of("owner"))
	for _, tt := range []struct {
		scope account.Scopes
		want  string // to read, use, connect over MCP, apply, keep a secret, and change settings
	}{
		{account.ScopeRead, "y....."}, {account.ScopeChat, "yy...."}, {account.ScopeMCP, "yyy..."},
		{account.ScopeWrite, "...yy."}, {account.ScopeAdmin, "......"}, {account.ScopeRead | account.ScopeAdmin, "y....y"}, {account.ScopeReview, "......"},
	} {
		p := h.people["owner"].LimitedTo(tt.scope)
		_, readErr := h.Get(ctx, p, agents.GhostKind, "", "x")
		_, useErr := h.Profile(ctx, p, agents.GhostKind, "", "x")
		_, connectErr := h.Profile(ctx, p.LimitedTo(account.ScopeMCP), agents.GhostKind, "", "x")
		r, applyErr := h.Apply(ctx, p, agents.Parse([]byte(head("Ghost")), ""), true)
		if applyErr == nil && r.HasRefused() {
			applyErr = errRefused
		}
		secretErr := h.Secrets().Set(ctx, p, own, "S", "v")
		old, settingsErr := h.SkillSettings(ctx, p, "team")
		if settingsErr == nil {
			settingsErr = h.SetSkillSettings(ctx, p, "team", old)
		}
		got := ""
		for _, err := range []error{readErr, useErr, connectErr, applyErr, secretErr, settingsErr} {
			if err == nil {
				got += "y"
			} else {
				got += "."
			}
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.scope, got, tt.want)
		}
	}
}

// What one call may look up is bounded: others wait for it.
func TestApplyLimits(t *testing.T) {
	h := newHub(t, sqlite(t), nil)
	var names, docs []string
	for i := range agents.MaxSkills {
		names = append(names, fmt.Sprint("s", i))
	}
	for i := range agents.MaxReferences/agents.MaxSkills + 1 {
		docs = append(docs, fmt.Sprintf("kind: Ghost\nmetadata: {name: g%d}\nspec: {skills: [%s]}\n", i, strings.Join(names, ", ")))
	}
	_, err := h.Apply(t.Context(), h.people["reporter"], agents.Parse([]byte(strings.Join(docs, "---\n")), ""), false)
	wantError(t, err, store.ErrTooMany)
	h.apply("reporter", docs[0])
}
