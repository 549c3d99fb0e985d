package chat

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/redact"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// StoredSecret is a stored secret that a conversation may contain.
type StoredSecret struct {
	Owner, Name string
	Value       string // "" if it cannot be decrypted
	Own         bool   // whether it belongs to the owner of the conversation
	// Skills and Servers are the names of those that may receive the secret.
	Skills, Servers []string
}

// UncheckedSecret is a stored secret that cannot be decrypted, so a share may contain
// it.
type UncheckedSecret struct {
	Owner string `json:"owner" doc:"Owner of the secret, such as group:ID"`
	Name  string `json:"name,omitempty" doc:"Absent for secrets of others"`
	Used  bool   `json:"used,omitempty" doc:"Whether the conversation used a skill or server that receives the secret. Then it cannot be shared"`
}

// secretTracker decides which stored secrets a share must not contain. It observes the
// steps of the branch in order, and then the files to share.
//
// Secrets of the conversation's owner are replaced wherever they occur. The owner
// knows them already. The secrets of a group must not be revealed to its members, who
// could otherwise write guesses in messages and see in the preview which of them are
// replaced. Such a secret is therefore not replaced if it occurs only in the user's
// messages and where the model repeats them.
//
// In any other text, the secret may come from a skill, a server, a member of a team
// or a file. This includes the results of all tools, instructions, files, and text
// that the model did not repeat from a message. Neither names of tools nor grants can
// rule that out: a script may store a secret in a file that another tool reads, and
// grants may have been revoked since. A user can still test guesses with an import, a
// file, or a tool that returns an encoded argument, but that is better than a secret
// in a share. The number of previews is limited, and the audit log records each of
// them.
type secretTracker struct {
	secrets  []StoredSecret
	forms    *redact.Finder
	secretOf []int               // the index of the secret of each form
	written  []bool              // whether the user wrote it
	revealed []bool              // whether it may have come from elsewhere
	used     []bool              // whether a call went to a receiver of the secret
	calls    map[string]receiver // by the ID of the call
	provided map[string][]string // the skills that provide each tool
}

// receiver is the tool that a call runs, and the skills that provide the tool.
type receiver struct {
	tool   string
	skills []string
}

func newSecretTracker(secrets []StoredSecret) *secretTracker {
	t := &secretTracker{secrets: secrets, written: make([]bool, len(secrets)), revealed: make([]bool, len(secrets)), used: make([]bool, len(secrets)),
		calls: map[string]receiver{}, provided: map[string][]string{}}
	var forms []string
	for i, s := range secrets {
		if s.Own {
			continue
		}
		for _, f := range redact.Forms(s.Value) {
			forms, t.secretOf = append(forms, f), append(t.secretOf, i)
		}
	}
	t.forms = redact.NewFinder(forms...)
	return t
}

// observe observes the next step of the branch.
func (t *secretTracker) observe(s *step) {
	switch {
	case s.Loaded != nil:
		t.addTools(s.Loaded.Skill.Name, s.Loaded.Tools)
		t.addRevealed(s.Loaded.Text)
	case s.Used != nil:
		t.addTools(s.Used.Skill.Name, s.Used.Tools)
	case s.Compacted != nil:
		t.addRepeated(s.Compacted.Text)
	case s.isUserMessage():
		t.addWritten(s.Message.Text)
	case s.Message != nil:
		t.addRepeated(s.Message.Text)
		for _, thinking := range s.Message.Thinking {
			t.addRepeated(thinking.Text)
		}
		for _, c := range s.Message.Calls {
			t.addRepeated(c.Arguments)
			t.calls[c.ID] = t.receiverOf(c.Name, c.Arguments)
		}
	case s.Result != nil:
		from := t.calls[s.Result.Call]
		for i := range t.secrets {
			t.used[i] = t.used[i] || t.secrets[i].mayReach(from)
		}
		t.addRevealed(s.Result.Text)
		t.addRevealed(s.Result.Instructions)
	}
}

func (t *secretTracker) observeFiles(files []SharedFile) {
	for i := range files {
		t.addRevealed(files[i].text)
	}
}

func (t *secretTracker) addTools(skill string, tools []string) {
	for _, tool := range tools {
		if !slices.Contains(t.provided[tool], skill) {
			t.provided[tool] = append(t.provided[tool], skill)
		}
	}
}

// find calls found with the index of each form in a text.
func (t *secretTracker) find(text string, found func(form int)) {
	if len(t.secretOf) == 0 {
		return
	}
	t.forms.Find(text, found)
	redact.JoinLines(text, func(joined string) bool {
		t.forms.Find(joined, found)
		return false
	})
}

// addWritten observes a text that the user wrote.
func (t *secretTracker) addWritten(text string) {
	t.find(text, func(form int) { t.written[t.secretOf[form]] = true })
}

// addRepeated observes a text written by the model, which may repeat the user's
// messages.
func (t *secretTracker) addRepeated(text string) {
	t.find(text, func(form int) {
		if i := t.secretOf[form]; !t.written[i] {
			t.revealed[i] = true
		}
	})
}

// addRevealed observes a text that may come from a skill, a server, a member of a team
// or a file.
func (t *secretTracker) addRevealed(text string) {
	t.find(text, func(form int) { t.revealed[t.secretOf[form]] = true })
}

// receiverOf returns the receiver of a call.
func (t *secretTracker) receiverOf(tool, arguments string) receiver {
	var in struct {
		Name      string `json:"name"`
		Skill     string `json:"skill"`
		SkillName string `json:"skill_name"`
	}
	_ = json.Unmarshal([]byte(arguments), &in) // the tool refuses other arguments
	switch tool {
	case toolname.RunSkillScript, toolname.ExecuteSkillScript:
		skills := slices.DeleteFunc([]string{in.Skill, in.SkillName, in.Name}, func(s string) bool { return s == "" })
		return receiver{tool, skills}
	case toolname.CallTool, toolname.ReadTool:
		tool = in.Name
	}
	return receiver{tool, t.provided[tool]}
}

// mayReach reports whether a tool may receive the secret. Tool names may contain
// shortened server names, and the calls of a team's members are not on the branch. In
// doubt, it returns true, which only refuses the share.
func (s *StoredSecret) mayReach(r receiver) bool {
	return r.tool == toolname.HandOff && len(s.Skills)+len(s.Servers) > 0 ||
		slices.ContainsFunc(s.Skills, func(skill string) bool { return slices.Contains(r.skills, skill) }) ||
		slices.ContainsFunc(s.Servers, func(server string) bool { return upstream.MatchesServer(server, r.tool) })
}

// values returns the values to replace.
func (t *secretTracker) values() []string {
	var out []string
	for i, s := range t.secrets {
		if s.Value != "" && (s.Own || t.revealed[i]) {
			out = append(out, s.Value)
		}
	}
	return out
}

// unchecked returns the secrets that cannot be decrypted: all secrets of the
// conversation's owner, and those of others that the conversation used.
func (t *secretTracker) unchecked() []UncheckedSecret {
	var out []UncheckedSecret
	for i, s := range t.secrets {
		switch {
		case s.Value != "":
		case s.Own:
			out = append(out, UncheckedSecret{s.Owner, s.Name, t.used[i]})
		case t.used[i]:
			out = append(out, UncheckedSecret{Owner: s.Owner, Used: true})
		}
	}
	return out
}

// checkUnchecked fails with [ErrUnchecked] if the conversation used a secret that
// cannot be decrypted.
func checkUnchecked(all []UncheckedSecret) error {
	for _, s := range all {
		if s.Used {
			return fmt.Errorf("%w: secret %s of %s", ErrUnchecked, s.Name, s.Owner)
		}
	}
	return nil
}
