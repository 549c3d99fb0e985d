package migrateapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/migrate"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/skill"
)

// maxBytes is the maximum total size of the files that are parsed, besides the files
// of skills. They are held in memory.
const maxBytes = 64 << 20

// maxName is the maximum size of a skill's name in a conversation, in bytes. No skill has
// a longer name.
const maxName = 256

// migration holds the state of one request.
type migration struct {
	*Handlers
	p      account.Principal
	in     store.Namespace // of skills and documents
	system migrate.System
	source string
	commit string // of a repository
	digest string // of an archive at an address
	files  *library.Collection

	skills   []uploadedSkill
	provided map[string]bool // slugs of the names of skills that are there, or will be
	plan     *migrate.Plan
	change   *migrate.Change
	importer *chat.Importer // nil if the upload has no conversations
	docs     *documents
	skipped  map[string]string // why new skills and conversations were not stored, like ids
	newChats int               // new conversations that Compare found
	ids      map[string]string // on the hub, of converted skills by name and of conversations by their IDs in the plan
	done     bool
}

type uploadedSkill struct {
	remote.Skill
	item   migrate.Item
	id     string // on the hub, or ""
	digest string // of its files
}

// run compares the files with what the user has. With apply, it stores what is new.
func (m *migration) run(ctx context.Context, files *library.Collection, apply bool) error {
	m.files = files
	if err := m.compareSkills(ctx); err != nil {
		return err
	}
	var err error
	if m.plan, err = migrate.ReadUpTo(ctx, m.system, m.files.Files(), maxBytes); err != nil {
		return err
	}
	if err := m.openImporter(ctx); err != nil {
		return err
	}
	m.change, err = m.plan.Compare(ctx, m.target(ctx))
	if err == nil && apply {
		err = m.Agents.RecordDenials(ctx, m.p, m.docs.denied)
	}
	if err != nil || !apply || m.change.IsEmpty() && !slices.ContainsFunc(m.skills, func(s uploadedSkill) bool { return s.item.New }) {
		return err
	}
	return m.apply(ctx)
}

// apply stores what is new. If an error occurs after something was stored, it returns
// nil, and the report says what was not stored.
func (m *migration) apply(ctx context.Context) error {
	err := m.store(ctx)
	for _, kind := range []migrate.Kind{migrate.Skill, migrate.Resources, migrate.Conversation} {
		m.done = m.done || len(m.change.Written(kind)) > 0
	}
	if err != nil && !m.done {
		return err
	}
	if err != nil {
		m.change.Problems = append(m.change.Problems, "stopped: "+m.Problem(ctx, err).Detail+"; migrate the files again to store the rest")
	}
	m.updateItems(err != nil)
	return nil
}

// store stores what is new until an error occurs.
func (m *migration) store(ctx context.Context) error {
	if err := m.addSkills(ctx); err != nil {
		return err
	}
	if err := m.openImporter(ctx); err != nil { // with the new skills
		return err
	}
	return m.change.Apply(ctx)
}

// updateItems records in the items which of the new ones were stored. stopped means
// that an error occurred.
func (m *migration) updateItems(stopped bool) {
	const notReached = "it was not stored, because the migration stopped; migrate the files again"
	for i := range m.skills {
		if s := &m.skills[i]; s.item.New && s.id == "" {
			markLost(&s.item, notReached)
		}
	}
	if stopped && len(m.change.Written(migrate.Resources)) == 0 { // all documents are stored, or none
		for _, doc := range m.docs.all {
			if doc.item.New {
				doc.markLost(notReached)
			}
		}
	}
	written := map[string]bool{}
	for _, kind := range []migrate.Kind{migrate.Skill, migrate.Conversation} {
		for _, name := range m.change.Written(kind) {
			written[string(kind)+" "+name] = true
		}
	}
	for i := range m.change.Items {
		item := &m.change.Items[i]
		key := cmp.Or(item.ID, item.Name)
		switch {
		case !item.New || item.Kind != migrate.Skill && item.Kind != migrate.Conversation || written[string(item.Kind)+" "+key]:
		case m.ids[key] != "": // stored by another request
			item.New = false
		default:
			markLost(item, cmp.Or(m.skipped[key], notReached))
		}
	}
	docs, unset := m.docs.report()
	// Converted skills come first, then the documents.
	if at := slices.IndexFunc(m.change.Items, func(i migrate.Item) bool { return i.Kind != migrate.Skill }); at >= 0 {
		copy(m.change.Items[at:], docs)
	}
	m.change.Unset = unset
}

// markLost records that an item is not stored.
func markLost(i *migrate.Item, why string) {
	i.Outcome, i.New, i.Does, i.Details = migrate.Lost, false, "", []string{why}
	i.Clip()
}

// target returns where the plan is applied.
func (m *migration) target(ctx context.Context) migrate.Target {
	m.docs = &documents{migration: m}
	return migrate.Target{
		Documents: m.docs,
		Chats:     conversations{m},
		HasSkill: func(name string) bool {
			if len(name) > maxName {
				return false
			}
			_, ok := migrate.FindSkill(m.importer.Skills(), name)
			return ok || m.provides(name)
		},
		SkillName: func(name string) string {
			if len(name) > maxName {
				return ""
			}
			own, _ := migrate.FindSkill(m.importer.Skills(), name)
			return own
		},
		IsInstalled: m.isInstalled,
		CreateSkill: m.createSkill,
		OpenSession: func(ctx context.Context, log session.Log, id string) (*session.Session, error) {
			return m.importer.OpenSession(ctx, log, id)
		},
	}
}

// openImporter opens the user's skills if the upload has conversations. It closes
// those that are open.
func (m *migration) openImporter(ctx context.Context) error {
	if len(m.plan.Conversations) == 0 {
		return nil
	}
	m.close()
	var err error
	m.importer, err = m.Chat.OpenImporter(ctx, m.p)
	return err
}

// close releases what the migration opened.
func (m *migration) close() {
	if m.importer == nil {
		return
	}
	if err := m.importer.Close(); err != nil {
		m.Log.Warn("cannot close the skills of a migration", "error", err)
	}
	m.importer = nil
}

// compareSkills checks the skills of the upload and compares them with those of the
// namespace.
func (m *migration) compareSkills(ctx context.Context) error {
	dirs := map[string]string{} // by name
	m.provided = map[string]bool{}
	for _, s := range m.files.Skills {
		out := uploadedSkill{Skill: s, item: migrate.Item{Kind: migrate.Skill, Name: s.Name, From: s.Dir, Outcome: migrate.Kept}}
		markLost := func(why string) { out.item.Outcome, out.item.Details = migrate.Lost, []string{why} }
		other, twice := dirs[s.Name]
		if twice {
			markLost("it has the same name as the skill in " + other)
			m.skills = append(m.skills, out)
			continue
		}
		found, err := m.files.Compare(ctx, s)
		switch {
		case err != nil:
			return err
		case found.Problem != "":
			markLost(found.Problem)
		case found.ID == "":
			out.item.New = true
		case !found.Same:
			markLost("a skill with this name and other files exists; to replace its files, upload them as a version of that skill")
		}
		if out.id, out.digest = found.ID, found.Digest; found.Problem == "" {
			dirs[s.Name] = s.Dir
		}
		if m.skills = append(m.skills, out); out.item.Outcome != migrate.Lost {
			m.provided[skillname.Slug(s.Name)] = true
		}
	}
	for _, p := range m.files.Problems {
		if p.Severity == skill.Error && !migrate.IsPage(m.files.Files(), p) {
			m.skills = append(m.skills, uploadedSkill{item: lostSkill(p)})
		}
	}
	return nil
}

// lostSkill reports a skill that cannot be read.
func lostSkill(p catalog.Problem) migrate.Item {
	return migrate.Item{Kind: migrate.Skill, Name: p.Path, From: p.Path, Outcome: migrate.Lost, Details: []string{p.Message}}
}

// addSkills stores the new skills.
func (m *migration) addSkills(ctx context.Context) error {
	for i := range m.skills {
		s := &m.skills[i]
		if !s.item.New {
			continue
		}
		id, problem, err := m.files.Add(ctx, s.Skill)
		if err != nil {
			return err
		}
		m.done = m.done || problem == ""
		if s.id = id; problem != "" {
			s.item.Outcome, s.item.New, s.item.Details = migrate.Lost, false, []string{problem}
			delete(m.provided, skillname.Slug(s.Name))
		}
	}
	return nil
}

// provides reports whether the upload has a skill by this name that is there, or will
// be.
func (m *migration) provides(name string) bool {
	return len(name) <= maxName && m.provided[skillname.Slug(name)]
}

// isInstalled reports whether the namespace has a converted skill.
func (m *migration) isInstalled(ctx context.Context, d skill.Draft) (bool, error) {
	if m.provides(d.Name) {
		return false, migrate.ErrNameTaken
	}
	found, err := m.files.CompareText(ctx, d.Name, d.Render())
	switch {
	case err != nil:
		return false, err
	case found.Problem != "":
		return false, &migrate.SkippedError{Reason: found.Problem}
	case found.ID != "" && !found.Same:
		return false, migrate.ErrNameTaken
	}
	m.ids[d.Name] = found.ID
	return found.Same, nil
}

// createSkill stores a converted skill.
func (m *migration) createSkill(ctx context.Context, d skill.Draft) error {
	id, problem, err := m.files.AddText(ctx, d.Name, d.Render())
	m.ids[d.Name] = id
	if problem != "" {
		m.skipped[d.Name] = problem
		return &migrate.SkippedError{Reason: problem}
	}
	return err
}

// conversations stores conversations of the upload as the user's own.
type conversations struct{ *migration }

func importedOf(past *migrate.PastConversation) chat.Imported {
	return chat.Imported{Key: past.ID, Title: past.Title, TitleSource: past.TitleSource, Last: past.Last()}
}

// Contains implements [migrate.Conversations]. It counts the new conversations.
func (c conversations) Contains(ctx context.Context, past *migrate.PastConversation) (bool, error) {
	id, err := c.importer.Find(ctx, importedOf(past))
	if err != nil {
		return false, err
	}
	if id != "" {
		c.ids[past.ID] = id
		return true, nil
	}
	err = skipIfFull(c.importer.CheckQuota(ctx, c.newChats+1))
	if err == nil {
		c.newChats++
	}
	return false, err
}

// skipIfFull returns a [*migrate.SkippedError] if err means that a quota is exceeded.
// Otherwise it returns err.
func skipIfFull(err error) error {
	if full, ok := errors.AsType[*quota.ExceededError](err); ok {
		return &migrate.SkippedError{Reason: full.Error()}
	}
	return err
}

// Import implements [migrate.Conversations].
func (c conversations) Import(ctx context.Context, past *migrate.PastConversation, write func(session.Log) error) error {
	err := c.importer.Import(ctx, importedOf(past), write)
	if err == nil {
		c.ids[past.ID] = c.importer.ID(importedOf(past))
	}
	if errors.Is(err, store.ErrExists) { // imported by another request
		c.ids[past.ID] = c.importer.ID(importedOf(past))
		return &migrate.SkippedError{}
	}
	err = skipIfFull(err)
	if skipped, ok := errors.AsType[*migrate.SkippedError](err); ok {
		c.skipped[past.ID] = skipped.Reason
	}
	return err
}

// notes returns the problems, limited to a number that a user can read.
func (m *migration) notes() []string {
	const most = 50
	all := m.change.Problems
	if len(all) <= most {
		return all
	}
	return append(slices.Clip(all[:most]), fmt.Sprintf("and %d more", len(all)-most))
}

func (m *migration) report() migrationJSON {
	out := migrationJSON{System: string(m.system), Source: visible(m.source), Commit: m.commit, Digest: m.digest, Namespace: string(m.in), Done: m.done,
		Items: []migratedItemJSON{}, Notes: visibleTexts(m.notes()), Secrets: visibleTexts(m.change.Unset)}
	for _, s := range m.skills {
		s.item.Clip()
		item := newItemJSON(s.item)
		item.ID = s.id
		out.Items = append(out.Items, item)
	}
	for _, i := range m.change.Items {
		item := newItemJSON(i)
		switch i.Kind {
		case migrate.Conversation:
			item.ID = m.ids[i.ID]
		case migrate.Skill:
			item.ID = m.ids[i.Name]
		}
		out.Items = append(out.Items, item)
	}
	return out
}
