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

// UncheckedSecret is a stored secret that cannot be decrypted, so that a share may
// contain it.
type UncheckedSecret struct {
	Owner string `json:"owner" doc:"Owner of the secret, such as group:ID"`
	Name  string `json:"name,omitempty" doc:"Absent for secrets of others"`
	Used  bool   `json:"used,omitempty" doc:"Whether the conversation used a skill or server that receives the secret. Then it cannot be shared"`
}

// secretTracker decides which stored secrets a share must not contain. It observes the
// steps of the branch in order.
//
// Secrets of the conversation's owner are replaced wherever they are. The owner set
// them, and so learns nothing from that. The values of groups are not to be read by
// their members, who could otherwise write guesses in a message and see in the preview
// which ones are replaced. Such a secret is therefore replaced only if it came into the
// conversation from a skill or server that receives it: if a result of a call to it has
// the value, and neither the user nor a call had it before. The result has then told
// the user already. Imported steps count as written by the user, who may have made them
// up.
type secretTracker struct {
	secrets  []StoredSecret
	forms    *redact.Finder
	secretOf []int // the index of the secret of each form
	written  []bool
	revealed []bool
	used     []bool              // whether a call went to a receiver of the secret
	calls    map[string]receiver // by the ID of the call
	provided map[string][]string // the skills that provide each tool
}

// receiver is the tool that a call goes to, and the skills to which the tool belongs.
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
	imported := s.Turn == 0
	switch {
	case s.Loaded != nil:
		t.addTools(s.Loaded.Skill.Name, s.Loaded.Tools)
	case s.Used != nil:
		t.addTools(s.Used.Skill.Name, s.Used.Tools)
	case s.Message != nil:
		if s.isUserMessage() || imported {
			t.addWritten(s.Message.Text)
		}
		for _, c := range s.Message.Calls {
			t.addWritten(c.Arguments)
			t.calls[c.ID] = t.receiverOf(c.Name, c.Arguments)
		}
	case s.Result != nil && imported:
		t.addWritten(s.Result.Text)
	case s.Result != nil:
		t.addResult(t.calls[s.Result.Call], s.Result.Text)
	}
}

func (t *secretTracker) addTools(skill string, tools []string) {
	for _, tool := range tools {
		if !slices.Contains(t.provided[tool], skill) {
			t.provided[tool] = append(t.provided[tool], skill)
		}
	}
}

// addWritten observes a text that the user wrote, or that a call sent.
func (t *secretTracker) addWritten(text string) {
	t.forms.Find(text, func(form int) {
		if i := t.secretOf[form]; !t.revealed[i] {
			t.written[i] = true
		}
	})
}

// addResult observes the result of a call.
func (t *secretTracker) addResult(from receiver, text string) {
	for i := range t.secrets {
		t.used[i] = t.used[i] || t.secrets[i].mayReach(from)
	}
	t.forms.Find(text, func(form int) {
		if i := t.secretOf[form]; !t.written[i] && t.secrets[i].mayReach(from) {
			t.revealed[i] = true
		}
	})
}

// receiverOf returns where a call goes.
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

// mayReach reports whether a tool may receive the secret. Names of servers may be
// shortened in names of tools; a false alarm is better than a miss.
func (s *StoredSecret) mayReach(r receiver) bool {
	return slices.ContainsFunc(s.Skills, func(skill string) bool { return slices.Contains(r.skills, skill) }) ||
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

// unchecked returns the secrets that cannot be decrypted: all of the conversation's
// owner, and of others those that the conversation used.
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
