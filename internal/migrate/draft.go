package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/loadout-dev/loadout/internal/pythonskill"
	"github.com/loadout-dev/loadout/skill"
)

// maxDrafts is the maximum number of skills that are converted.
const maxDrafts = 500

// Draft is a skill converted from another format, with the path of the original
// file.
type Draft struct {
	skill.Draft
	From string
}

// parsePython adds the skill that a Python module declares. Its code is not
// executed.
func (r *reader) parsePython(p string, data []byte) {
	if !bytes.Contains(data, []byte("SKILL_MANIFEST")) {
		return
	}
	d, err := pythonskill.ReadDraft(data)
	switch {
	case errors.Is(err, pythonskill.ErrNoManifest):
	case err != nil:
		r.plan.addLost(Skill, path.Base(p), p, "%v", err)
	case len(r.plan.Drafts) == maxDrafts:
		r.plan.addLost(Skill, d.Name, p, "too many skills (limit %d)", maxDrafts)
	default:
		d.Instructions = describeTools(d)
		d.Description, _ = pythonskill.TruncateDescription(d.Description)
		r.plan.Drafts = append(r.plan.Drafts, Draft{*d, p})
	}
}

// describeTools returns the instructions of a converted skill: its description
// and its tools.
func describeTools(d *skill.Draft) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n", strings.ReplaceAll(d.Name, "-", " "), d.Description)
	if len(d.Tools) > 0 {
		b.WriteString("\n## Tools\n\n")
	}
	for _, t := range d.Tools {
		fmt.Fprintf(&b, "- `%s`", strings.ReplaceAll(t.Name, "`", "'"))
		if t.Description != "" {
			b.WriteString(": " + t.Description)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// compareDrafts plans to create the converted skills that the user does not
// have. A skill is lost if another one has its name. If several different skills
// get the same name, only the first is created.
func (c *Change) compareDrafts(ctx context.Context, p *Plan, t Target) error {
	planned := map[string]string{} // content by name
	for _, d := range p.Drafts {
		content := string(d.Render())
		other, have := planned[d.Name]
		if have && other != content {
			c.Items = append(c.Items, Item{Kind: Skill, Name: d.Name, From: d.From, Outcome: Lost, Details: []string{"another converted skill gets the same name"}})
			continue
		}
		if !have {
			var err error
			have, err = t.IsInstalled(ctx, d.Draft)
			if skipped, ok := errors.AsType[*SkippedError](err); ok {
				c.Items = append(c.Items, Item{Kind: Skill, Name: d.Name, From: d.From, Outcome: Lost, Details: []string{skipped.Reason}})
				continue
			}
			if err != nil {
				return err
			}
		}
		item := Item{Kind: Skill, Name: d.Name, From: d.From, Outcome: Changed, New: !have}
		planned[d.Name] = content
		item.Details = append(item.Details, "converted to a SKILL.md; its Python code is not used")
		if len(d.Tools) > 0 {
			item.Details = append(item.Details, fmt.Sprintf("does not provide its %s: add the MCP server that does", pluralize(len(d.Tools), "tool")))
		}
		if item.New {
			c.drafts = append(c.drafts, d)
		}
		c.Items = append(c.Items, item)
	}
	return nil
}
