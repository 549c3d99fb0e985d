package library_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/remote/remotetest"
	"github.com/loadout-dev/loadout/internal/store"
)

func text(name, body string) string {
	return "---\nname: " + name + "\ndescription: Does what " + name + " does.\n---\n" + body + "\n"
}

// local lets a hub import from this machine, as tests have no other.
func local(o *library.Options) *library.Options {
	o.Private = func(host string) bool { return host == "127.0.0.1" }
	return o
}

func became(i *library.ImportResult) map[string][]string {
	of := func(changes []library.ImportChange, reason bool) []string {
		return names(changes, func(c library.ImportChange) string {
			if reason {
				return c.Name + ": " + c.Reason
			}
			return fmt.Sprint(c.Name, "@", c.Number)
		})
	}
	return map[string][]string{"created": of(i.Created, false), "updated": of(i.Updated, false), "skipped": of(i.Skipped, true)}
}

// Directories of a source that are not searched are reported as a warning.
func TestInspectDeepSource(t *testing.T) {
	w := sqlite(t, local(&library.Options{TempDir: t.TempDir()}))
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"pdf/SKILL.md": text("pdf", "one"), strings.Repeat("d/", 40) + "deep/SKILL.md": text("deep", "one")})
	offer := must(w.lib.Inspect(w.ctx, w.ada, w.team, g.URL))(t)
	got := names(offer.Broken, func(b library.BrokenSkill) string { return fmt.Sprint(b.Severity, " ", b.Code) })
	wantEqual(t, got, []string{"warning depth-limit"})
}

// W29: look, choose, import, overwrite, update; each skill is created, updated or skipped
// with the reason.
func TestW29Import(t *testing.T) {
	tmp := t.TempDir()
	w := sqlite(t, local(&library.Options{TempDir: tmp}))
	g := remotetest.NewGit(t)
	first := g.Commit(map[string]string{
		"skills/pdf/SKILL.md": text("pdf", "one"), "skills/docx/SKILL.md": text("docx", "one"), "skills/docx/run.sh": "#!/bin/sh\n",
		"skills/xlsx/SKILL.md": text("xlsx", "one"), "skills/same/SKILL.md": text("same", "one"), "skills/bad/SKILL.md": text("con", "one"),
	})
	mine := w.upload(w.ada, w.team, "pdf", "mine")

	offer := must(w.lib.Inspect(w.ctx, w.ada, w.team, g.URL))(t)
	got := names(offer.Skills, func(o library.SourceSkill) string {
		return fmt.Sprint(o.Dir, " ", o.Existing != nil, o.Same, o.Problem != "")
	})
	wantEqual(t, got, []string{"skills/bad false false true", "skills/docx false false false", "skills/pdf true false false", "skills/same false false false", "skills/xlsx false false false"})
	if offer.Commit != first || offer.Ref != "refs/heads/main" || offer.Skills[2].Existing.ID != mine.ID {
		t.Errorf("the offer is %+v", offer)
	}

	done := must(w.lib.Import(w.ctx, w.ada, w.team, offer.Source, library.ImportSelection{Commit: offer.Commit, Dirs: []string{"skills/pdf", "skills/docx", "skills/bad", "nothing"}}))(t)
	wantEqual(t, became(done), map[string][]string{
		"created": {"docx@1"}, "updated": {},
		"skipped": {
			"con: a skill cannot be named \"con\" here: not a valid directory name: " + reasonOf(t, done, "con"),
			"pdf: a skill with this name exists; select it to overwrite it", "nothing: skill not found",
		},
	})
	docx := must(w.lib.Skill(w.ctx, w.bob, done.Created[0].ID))(t)
	if docx.Source.URL != g.URL || docx.Source.Dir != "skills/docx" || docx.Source.Commit != first || docx.Source.By != string(w.ada.User) || docx.Review != library.Pending || !docx.Code {
		t.Errorf("the skill is %+v, from %+v", docx, docx.Source)
	}

	done = must(w.lib.Import(w.ctx, w.ada, w.team, g.URL, library.ImportSelection{Dirs: []string{"skills/pdf", "skills/docx", "skills/same"}, Overwrite: []string{"pdf", "docx"}}))(t)
	wantEqual(t, became(done), map[string][]string{"created": {"same@1"}, "updated": {"pdf@2"}, "skipped": {"docx: already up to date"}})

	same := must(w.lib.Update(w.ctx, w.ada, w.team, library.UpdateSelection{}))(t)
	wantEqual(t, became(same)["skipped"], []string{"docx: already up to date", "pdf: already up to date", "same: already up to date"})

	second := g.Push(remotetest.Change{Files: map[string]string{"skills/pdf/SKILL.md": text("pdf", "two"), "skills/docx/SKILL.md": text("docx", "two")}, Remove: []string{"skills/same"}})
	watched := must(w.lib.CheckSources(w.ctx))(t)
	if watched.Sources != 1 || watched.Outdated != 3 || len(watched.Failed) > 0 {
		t.Errorf("watched %+v", watched)
	}
	must(w.lib.CheckSources(w.ctx))(t) // each is notified once
	notifications, _, err := w.lib.Notifications(w.ctx, w.meg, "", true, store.Page{})
	mustDo(t, err)
	newer := 0
	for _, n := range notifications {
		if n.Kind == library.SourceChanged && n.Details.Commit == second {
			newer++
		}
	}
	wantEqual(t, newer, 3)
	mustDo(t, w.db.Tx(w.ctx, func(tx *store.Tx) error { // newer ones of other kinds do not count
		for i := range store.MaxPage {
			if _, err := tx.Notifications.Add(w.ctx, store.Notification{UserID: string(w.meg.User), Kind: "other", Subject: fmt.Sprint(i)}); err != nil {
				return err
			}
		}
		return nil
	}))
	outdated := must(w.list(w.meg, library.Query{Attention: true}))(t)
	wantEqual(t, names(outdated, func(s *library.Skill) string { return fmt.Sprint(s.Name, s.Attention) }), []string{"docx[review source]", "pdf[source]", "same[source]"})

	wantEqual(t, skillNames(must(w.list(w.meg.LimitedTo(account.ScopeChat), library.Query{Attention: true}))(t)), []string{}) // it cannot read the notifications

	up := must(w.lib.PreviewUpdate(w.ctx, w.ada, docx.ID, nil))(t)
	if up.Commit != second || !strings.Contains(up.Diff.Instructions, "+two") {
		t.Errorf("the upgrade is %+v", up.Diff)
	}
	mustDo(t, w.lib.Pin(w.ctx, w.ada, docx.ID, true))
	all := must(w.lib.Update(w.ctx, w.ada, w.team, library.UpdateSelection{}))(t)
	wantEqual(t, became(all), map[string][]string{"created": {}, "updated": {"pdf@3"}, "skipped": {"docx: pinned", "same: not found at its source"}})
	mustDo(t, w.lib.Pin(w.ctx, w.ada, docx.ID, false))
	outdated = must(w.list(w.meg, library.Query{Attention: true}))(t) // after an update of pdf
	wantEqual(t, names(outdated, func(s *library.Skill) string { return fmt.Sprint(s.Name, s.Attention) }), []string{"docx[review source]", "same[source]"})
	one := must(w.lib.Update(w.ctx, w.ada, w.team, library.UpdateSelection{IDs: []string{docx.ID}}))(t)
	wantEqual(t, became(one)["updated"], []string{"docx@2"})

	g.Commit(map[string]string{"skills/docx/SKILL.md": text("docx", "one")}) // reverted
	one = must(w.lib.Update(w.ctx, w.ada, w.team, library.UpdateSelection{IDs: []string{docx.ID}}))(t)
	older := []string{"docx: downgrade of skill \"docx\": version 1 has these files, and version 2 is current; to import it anyway, set downgrade"}
	wantEqual(t, became(one)["skipped"], older)
	back := library.ImportSelection{Dirs: []string{"skills/docx"}, Overwrite: []string{"docx"}}
	wantEqual(t, became(must(w.lib.Import(w.ctx, w.ada, w.team, g.URL, back))(t))["skipped"], older)
	one = must(w.lib.Update(w.ctx, w.ada, w.team, library.UpdateSelection{IDs: []string{docx.ID}, Downgrade: true}))(t)
	wantEqual(t, became(one)["updated"], []string{"docx@1"})
	wantError(t, w.lib.Pin(w.ctx, w.ada, w.upload(w.ada, w.team, "own", "").ID, true), library.ErrInvalid)

	if left := must(os.ReadDir(tmp))(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// An import or an upload says only that the name is taken if the user may not see the
// skill that has it, even if the files are the same.
func TestImportOfHiddenName(t *testing.T) {
	w := sqlite(t, local(&library.Options{}))
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"SKILL.md": text("pdf", "one")})
	hidden := w.upload(w.meg, w.team, "pdf", "", "SKILL.md", text("pdf", "one"))
	must(w.lib.Hide(w.ctx, w.meg, hidden.ID, true))(t)

	offer := must(w.lib.Inspect(w.ctx, w.ada, w.team, g.URL))(t)
	if s := offer.Skills[0]; s.Existing != nil || s.Same || s.ProblemCode != library.SkipTaken || s.Problem == "" {
		t.Errorf("the offer is %+v", s)
	}
	for _, overwrite := range [][]string{nil, {"pdf"}} {
		done := must(w.lib.Import(w.ctx, w.ada, w.team, g.URL, library.ImportSelection{Overwrite: overwrite}))(t)
		if len(done.Skipped) != 1 || done.Skipped[0].ID != "" || done.Skipped[0].ReasonCode != library.SkipTaken || strings.Contains(done.Skipped[0].Reason, hidden.ID) {
			t.Errorf("overwrite %q: %+v", overwrite, done)
		}
	}
	_, err := w.lib.Upload(w.ctx, w.ada, w.team, library.Package{FileName: "pdf.zip", Data: bytes.NewReader(pack(t, "pdf", fstest.MapFS{"SKILL.md": {Data: []byte(text("pdf", "one"))}}))})
	if taken, ok := errors.AsType[*library.ExistsError](err); !ok || taken.Existing.ID != "" || taken.Existing.Same {
		t.Errorf("the error of an upload is %#v", err)
	}
	err = w.lib.WithSource(w.ctx, w.ada, w.team, g.URL, "", func(c *library.Collection) error {
		if p := must(c.Compare(w.ctx, c.Skills[0]))(t); p.ID != "" || p.Same || p.Problem == "" {
			t.Errorf("a migration compares with %+v", p)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}

	done := must(w.lib.Import(w.ctx, w.meg, w.team, g.URL, library.ImportSelection{}))(t)
	if len(done.Skipped) != 1 || done.Skipped[0].ID != hidden.ID || done.Skipped[0].ReasonCode != library.SkipUnchanged {
		t.Errorf("for a maintainer: %+v", done)
	}
}

func reasonOf(t *testing.T, i *library.ImportResult, name string) string {
	t.Helper()
	for _, c := range i.Skipped {
		if c.Name == name {
			_, why, _ := strings.Cut(c.Reason, "not a valid directory name: ")
			return why
		}
	}
	t.Fatalf("%s is not among %+v", name, i.Skipped)
	return ""
}

// W29: a private repository is read with the user's stored credential, and by nobody
// else.
func TestW29PrivateRepositories(t *testing.T) {
	var asked []account.UserID
	w := sqlite(t, local(&library.Options{Credential: func(_ context.Context, user account.UserID, host string) (*remote.Credential, error) {
		asked = append(asked, user)
		if len(asked) > 1 {
			return nil, nil
		}
		return &remote.Credential{User: "x", Password: "open-sesame"}, nil
	}}))
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"SKILL.md": text("pdf", "one")})
	g.Private("open-sesame")
	must(w.lib.Inspect(w.ctx, w.ada, w.team, g.URL))(t)
	_, err := w.lib.Inspect(w.ctx, w.meg, w.team, g.URL)
	_, denied := errors.AsType[*remote.DeniedError](err)
	_, missing := errors.AsType[*remote.NotFoundError](err) // the answer of hosts for private repositories
	if !denied && !missing || strings.Contains(err.Error(), "sesame") {
		t.Errorf("error is %v", err)
	}
	wantEqual(t, asked, []account.UserID{w.ada.User, w.meg.User})
}

// Locations of users cannot reach this machine or its network.
func TestRefusedLocations(t *testing.T) {
	w := sqlite(t, nil)
	for _, source := range []string{
		"/etc", "./x", "../x", "~/x", "x.zip", "file:///etc", "git+file:///etc", "ssh://git@example.com/x", "git@example.com:x.git",
		"http://127.0.0.1/x.git", "https://127.0.0.1/x.git", "https://localhost/x.git", "https://a.localhost/x.zip", "https://LOCALHOST./x.zip", "https://127.0.0.1./x.zip", "https://[fe80::1%25eth0]/x.zip", "https://[::1]/x.git",
		"https://10.0.0.1/x.git", "https://169.254.169.254/latest", "https://[::ffff:10.0.0.1]/x.git", "index+https://192.168.1.1/", "https://0x7f.1/x.git",
		"https://user:password@example.com/x.git", "", "-x",
	} {
		_, err := w.lib.Inspect(w.ctx, w.ada, w.team, source)
		_, location := errors.AsType[*remote.LocationError](err)
		_, address := errors.AsType[*remote.AddressError](err)
		if !location && !address || strings.Contains(err.Error(), "password@") {
			t.Errorf("%q: error is %v", source, err)
		}
	}
	_, err := w.lib.Inspect(w.ctx, w.bob, w.team, "https://example.com")
	wantDenied(t, err)
	_, err = w.lib.Import(w.ctx, w.eve, w.team, "https://example.com", library.ImportSelection{})
	wantError(t, err, library.ErrNotFound)
	_, err = w.lib.Update(w.ctx, w.eve, w.team, library.UpdateSelection{})
	wantError(t, err, library.ErrNotFound)
}

// The operator allows directories of the machine and ssh hosts. Nothing beside them can
// be read, whatever the path or a symlink says.
func TestImportFromAllowedDirectories(t *testing.T) {
	root := must(filepath.EvalSymlinks(t.TempDir()))(t)
	allowed, beside := filepath.Join(root, "skills"), filepath.Join(root, "skills-private")
	for _, dir := range []string{allowed, beside} {
		mustDo(t, os.MkdirAll(filepath.Join(dir, "pdf"), 0o755))
		mustDo(t, os.WriteFile(filepath.Join(dir, "pdf", "SKILL.md"), []byte(text("pdf", "one")), 0o644))
	}
	mustDo(t, os.Symlink(beside, filepath.Join(allowed, "link")))
	mustDo(t, os.Symlink(allowed, filepath.Join(root, "also")))
	w := sqlite(t, &library.Options{ImportFrom: []string{allowed, "ssh://git.example.com"}})
	for _, source := range []string{allowed, filepath.Join(allowed, "pdf"), filepath.Join(root, "also")} {
		found := must(w.lib.Inspect(w.ctx, w.ada, w.team, source))(t)
		wantEqual(t, len(found.Skills), 1)
	}
	done := must(w.lib.Import(w.ctx, w.ada, w.team, allowed, library.ImportSelection{}))(t)
	wantEqual(t, len(done.Created), 1)
	for _, source := range []string{
		root, beside, filepath.Join(allowed, "link"), allowed + "/../skills-private", allowed + "/missing", "file://" + beside, "/etc", "/",
		"ssh://git@example.com/x", "git@example.com:x.git", "ssh://git.example.com.evil.example/x", "ssh://git.example.com@evil.example/x",
	} {
		_, err := w.lib.Inspect(w.ctx, w.ada, w.team, source)
		if _, refused := errors.AsType[*remote.LocationError](err); !refused {
			t.Errorf("%q: error is %v", source, err)
		}
	}
}

// A repository in an allowed directory is imported by file://, and an ssh host is asked
// if the operator allows it.
func TestImportFromAllowedRepositories(t *testing.T) {
	repo := filepath.Join(must(filepath.EvalSymlinks(t.TempDir()))(t), "our skills")
	mustDo(t, os.Mkdir(repo, 0o755))
	mustDo(t, os.WriteFile(filepath.Join(repo, "SKILL.md"), []byte(text("pdf", "one")), 0o644))
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "one"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = repo
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	w := sqlite(t, &library.Options{ImportFrom: []string{repo, "ssh://git.invalid"}})
	done := must(w.lib.Import(w.ctx, w.ada, w.team, "file://"+strings.ReplaceAll(repo, " ", "%20"), library.ImportSelection{}))(t)
	wantEqual(t, len(done.Created), 1)
	for _, source := range []string{"ssh://git@git.invalid/x", "git@git.invalid:x.git", "ssh://git@git.invalid:2222/x"} {
		_, err := w.lib.Inspect(w.ctx, w.ada, w.team, source)
		if _, refused := errors.AsType[*remote.LocationError](err); refused || err == nil {
			t.Errorf("%q: error is %v", source, err)
		}
	}
}

func TestMissingLocation(t *testing.T) {
	w := sqlite(t, local(&library.Options{}))
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"SKILL.md": text("pdf", "one")})
	done := must(w.lib.Import(w.ctx, w.ada, w.team, g.URL, library.ImportSelection{}))(t)
	wantEqual(t, len(done.Created), 1)
	g.Forbid(true)
	again := must(w.lib.Update(w.ctx, w.ada, w.team, library.UpdateSelection{}))(t)
	if len(again.Skipped) != 1 || again.Skipped[0].Reason == "" {
		t.Errorf("it became %+v", again)
	}
	watched := must(w.lib.CheckSources(w.ctx))(t)
	wantEqual(t, len(watched.Failed), 1)
	s := must(w.lib.Skill(w.ctx, w.ada, done.Created[0].ID))(t)
	wantEqual(t, s.Number, int64(1))
}

// A source whose files a reviewer rejected is not reported as up to date.
func TestImportOfRejectedVersion(t *testing.T) {
	w := sqlite(t, local(&library.Options{TempDir: t.TempDir()}))
	g := remotetest.NewGit(t)
	id, digests := "", []string{}
	for _, body := range []string{"one", "two"} {
		g.Commit(map[string]string{"pdf/SKILL.md": text("pdf", body), "pdf/run.sh": "#!/bin/sh\n"})
		done := must(w.lib.Import(w.ctx, w.ada, w.team, g.URL, library.ImportSelection{Overwrite: []string{"pdf"}}))(t)
		id = append(done.Created, done.Updated...)[0].ID
		digests = append(digests, must(w.lib.Version(w.ctx, w.meg, id, int64(len(digests)+1)))(t).Digest)
		mustDo(t, w.lib.ReviewVersion(w.ctx, w.meg, id, library.Decision{Digest: digests[0], Review: library.Approved}))
	}
	skipped := func(want string) {
		t.Helper()
		for range 2 { // the second time, the commit is known
			wantEqual(t, became(must(w.lib.Update(w.ctx, w.ada, w.team, library.UpdateSelection{}))(t))["skipped"], []string{"pdf: " + want})
			done := must(w.lib.Import(w.ctx, w.ada, w.team, g.URL, library.ImportSelection{Overwrite: []string{"pdf"}}))(t)
			wantEqual(t, became(done)["skipped"], []string{"pdf: " + want})
		}
	}
	skipped("awaiting review")
	mustDo(t, w.lib.ReviewVersion(w.ctx, w.meg, id, library.Decision{Digest: digests[1], Review: library.Rejected, Note: "no"}))
	skipped("version 2 has these files and was rejected")
	mustDo(t, w.lib.ReviewVersion(w.ctx, w.meg, id, library.Decision{Digest: digests[1], Review: library.ChangesRequested, Note: "add a test"}))
	skipped("version 2 has these files, and a reviewer requested changes")
}

// An import that exceeds a quota lists the skills that it imported before, and the
// quota as the reason for the others.
func TestImportBeyondQuota(t *testing.T) {
	limits := quota.Quotas{Default: quota.Settings{Group: quota.Amounts{Skills: 2}}}
	w := sqlite(t, local(&library.Options{TempDir: t.TempDir(), Quotas: limits}))
	g := remotetest.NewGit(t)
	files := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d"} {
		files[name+"/SKILL.md"] = text(name, "one")
	}
	g.Commit(files)
	done := must(w.lib.Import(w.ctx, w.ada, w.team, g.URL, library.ImportSelection{}))(t)
	const full = ": quota of the group exceeded (skills: 2 + 1, limit 2)"
	wantEqual(t, became(done), map[string][]string{"created": {"a@1", "b@1"}, "updated": {}, "skipped": {"c" + full, "d" + full}})
	_, err := w.lib.Import(w.ctx, w.ada, w.team, g.URL, library.ImportSelection{Dirs: []string{"d"}})
	if _, ok := errors.AsType[*quota.ExceededError](err); !ok {
		t.Errorf("an import without changes returns %v", err)
	}
}

// An update that has code to review does not claim to be in use.
func TestUpdateThatWaitsSaysSo(t *testing.T) {
	w := sqlite(t, local(&library.Options{TempDir: t.TempDir()}))
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"pdf/SKILL.md": text("pdf", "one")})
	choice := library.ImportSelection{Overwrite: []string{"pdf"}}
	s := must(w.lib.Import(w.ctx, w.ada, w.team, g.URL, choice))(t).Created[0]
	g.Commit(map[string]string{"pdf/SKILL.md": text("pdf", "two"), "pdf/run.sh": "#!/bin/sh\n"})
	pending := library.ImportChange{ID: s.ID, Name: "pdf", Dir: "pdf", Number: 2, Pending: true}
	wantEqual(t, must(w.lib.Update(w.ctx, w.ada, w.team, library.UpdateSelection{}))(t).Updated, []library.ImportChange{pending})
	pending.Reason, pending.ReasonCode = "awaiting review", library.SkipPending
	again := must(w.lib.Import(w.ctx, w.ada, w.team, g.URL, choice))(t)
	wantEqual(t, again.Skipped, []library.ImportChange{pending})
	wantEqual(t, must(w.lib.Update(w.ctx, w.ada, w.team, library.UpdateSelection{}))(t).Skipped, []library.ImportChange{pending})

	v := must(w.lib.Version(w.ctx, w.meg, s.ID, 2))(t)
	mustDo(t, w.lib.ReviewVersion(w.ctx, w.meg, s.ID, library.Decision{Digest: v.Digest, Review: library.Approved}))
	done := library.ImportChange{ID: s.ID, Name: "pdf", Dir: "pdf", Reason: "already up to date", ReasonCode: library.SkipUnchanged}
	wantEqual(t, must(w.lib.Update(w.ctx, w.ada, w.team, library.UpdateSelection{}))(t).Skipped, []library.ImportChange{done})
}

// An update does not undo a reversion: a withdrawn version stays withdrawn, until a user
// makes it current.
func TestUpdateKeepsReversion(t *testing.T) {
	w := sqlite(t, local(&library.Options{TempDir: t.TempDir()}))
	g := remotetest.NewGit(t)
	choice := library.ImportSelection{Overwrite: []string{"pdf"}}
	g.Commit(map[string]string{"pdf/SKILL.md": text("pdf", "one")})
	s := must(w.lib.Import(w.ctx, w.ada, w.team, g.URL, choice))(t).Created[0]
	g.Commit(map[string]string{"pdf/SKILL.md": text("pdf", "two")})
	wantEqual(t, became(must(w.lib.Update(w.ctx, w.ada, w.team, library.UpdateSelection{}))(t))["updated"], []string{"pdf@2"})
	mustDo(t, w.lib.SetCurrentVersion(w.ctx, w.meg, s.ID, 1))

	g.Commit(map[string]string{"docx/SKILL.md": text("docx", "one")})
	const reason = "pdf: version 2 has these files and was withdrawn; make it current to use it again"
	for range 2 { // the second time, the commit is known
		done := must(w.lib.Update(w.ctx, w.ada, w.team, library.UpdateSelection{}))(t)
		wantEqual(t, became(done)["skipped"], []string{reason})
		wantEqual(t, must(w.lib.Skill(w.ctx, w.ada, s.ID))(t).Number, int64(1))
	}
	choice.Dirs = []string{"pdf"}
	wantEqual(t, became(must(w.lib.Import(w.ctx, w.ada, w.team, g.URL, choice))(t))["skipped"], []string{reason})

	g.Commit(map[string]string{"pdf/SKILL.md": text("pdf", "three")})
	wantEqual(t, became(must(w.lib.Update(w.ctx, w.ada, w.team, library.UpdateSelection{}))(t))["updated"], []string{"pdf@3"})
}
