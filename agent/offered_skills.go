package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/session"
)

// maxOffers is the maximum number of skills named in a notice of changes.
const maxOffers = 20

// startEvent returns the event that starts a conversation, with the
// instructions and the available skills.
func (a *Agent) startEvent(instructions string) session.Event {
	return session.Event{Start: &session.Start{Instructions: instructions, Skills: a.offeredNames(), Folder: a.opts.Folder}}
}

// offeredNames returns the names of the available skills.
func (a *Agent) offeredNames() []string {
	if a.opts.Skills == nil {
		return nil
	}
	var names []string
	for _, o := range a.opts.Skills() {
		names = append(names, o.Name)
	}
	return names
}

// notifySkillChanges notifies the model of the skills added and removed since
// it was last notified. The initial instructions never change.
func (t *turn) notifySkillChanges(ctx context.Context) error {
	if t.opts.Skills == nil {
		return nil
	}
	offered := t.folded().OfferedSkills()
	if len(offered) == 0 {
		return nil // the last reported list is unknown
	}
	var came, gone, now []string
	was, is := map[string]bool{}, map[string]bool{}
	for _, name := range offered {
		was[name] = true
	}
	for _, o := range t.opts.Skills() {
		if now, is[o.Name] = append(now, o.Name), true; !was[o.Name] {
			came = append(came, "- "+untrusted.New(o.Name).ForModel()+": "+untrusted.New(o.Description).ForModel())
		}
	}
	for _, name := range offered {
		if !is[name] {
			gone = append(gone, name)
		}
	}
	if len(came)+len(gone) == 0 {
		return nil
	}
	var b strings.Builder
	if len(came) > 0 {
		b.WriteString("These skills can be loaded now, too:\n" + strings.Join(came[:min(len(came), maxOffers)], "\n") + "\n")
		if rest := len(came) - maxOffers; rest > 0 {
			fmt.Fprintf(&b, "and %d more: search_skills finds them.\n", rest)
		}
	}
	if len(gone) > 0 {
		b.WriteString("These skills are not there any more: " + strings.Join(gone[:min(len(gone), maxOffers)], ", "))
		if rest := len(gone) - maxOffers; rest > 0 {
			fmt.Fprintf(&b, " and %d more", rest)
		}
		b.WriteString("\n")
	}
	return t.session.Append(ctx, session.Event{Notice: &session.Notice{Text: strings.TrimSpace(b.String()), Skills: now}})
}
