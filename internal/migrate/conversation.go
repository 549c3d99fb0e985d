package migrate

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Limits on conversations.
const (
	maxConversations = 2000
	maxMessages      = 10_000    // messages of one conversation
	maxText          = 256 << 10 // bytes of one message
	maxAllText       = 8 << 20   // bytes of all messages of one conversation
	maxCalls         = 1000      // skills and calls of one message
	maxCallBytes     = 16 << 20  // bytes of the calls of one conversation, as JSON, before they are hashed
	unnamedCallBytes = 8 << 10   // what a call without a name counts as, because it may have two bytes in the file
	maxLoads         = 10_000    // events of one conversation that load a skill
	maxName          = 256       // bytes of a skill's name
	maxLookups       = 100       // names of one conversation that are looked up; Restore uses 64
)

// PastConversation is a conversation from another system. Its text has no
// hidden characters or prompt delimiters.
type PastConversation struct {
	ID    string // derived from the system and the messages
	Title string
	// TitleSource is "user", "model", or "message" if the title was taken from a
	// message. "" means that it is unknown.
	TitleSource string
	From        string // path of the file
	Messages    []PastMessage
	Lost        []string // what the other system recorded and Loadout does not keep

	source string // ID in the other system, or ""
	end    int    // number of the last message of the current branch, from 1; 0 means that it is the last of all

	bytes     int  // of the texts
	full      bool // a message exceeded a limit
	callBytes int  // as for maxCallBytes
}

// PastMessage is a message with its time, which is zero if it is unknown. Its Calls
// are those that load a skill; if there are only others, it has an empty one.
type PastMessage struct {
	session.PastMessage
	Time time.Time
	// Images are the images of a user's message. An image that is not migrated has no
	// Data.
	Images []llm.Image

	calls allCalls
	// follows is the number of the message that a message on another branch than the
	// previous one follows, from 1; 0 means that it starts the conversation again. nil
	// means that the message follows the previous one.
	follows *int
	sums    []string // SHA-256 hashes of Images
}

// isEmpty reports whether the message has no content.
func (m *PastMessage) isEmpty() bool { return m.Text == "" && len(m.Images) == 0 }

// allCalls are all calls of a message. The ID of the conversation depends on them.
type allCalls struct {
	text json.RawMessage // a list, or a string with its hash; nil if there are none
	size int             // bytes, as for maxCallBytes
}

// hash replaces the list with its hash.
func (c *allCalls) hash() {
	if c.text != nil {
		c.text = fmt.Appendf(nil, `"sha256:%x"`, sha256.Sum256(c.text))
	}
}

// add appends a message. It returns false if the message, or an earlier one,
// exceeds a limit of the conversation.
func (c *PastConversation) add(m PastMessage) bool {
	if c.full = c.full || len(c.Messages) == maxMessages || c.bytes+len(m.Text) > maxAllText; c.full {
		return false
	}
	c.bytes += len(m.Text)
	c.Messages = append(c.Messages, m)
	c.limitCalls()
	return true
}

// limitCalls counts the calls of the last message. If the conversation has over
// maxCallBytes, the calls of all its messages are hashed, so that its ID does not
// depend on their order.
func (c *PastConversation) limitCalls() {
	first, last := 0, len(c.Messages)-1
	if c.callBytes > maxCallBytes { // those of the others are hashed already
		first = last
	}
	c.callBytes += c.Messages[last].calls.size
	for i := first; i <= last && c.callBytes > maxCallBytes; i++ {
		c.Messages[i].calls.hash()
	}
}

// addConversation adds a conversation, unless the user wrote nothing in it or
// another file contains the same one. A different one with the same messages is
// lost.
func (r *reader) addConversation(c *PastConversation) {
	asked := slices.ContainsFunc(c.Messages, func(m PastMessage) bool { return m.Role == llm.User && !m.isEmpty() })
	if !asked {
		return
	}
	if len(r.plan.Conversations) == maxConversations {
		r.plan.addLost(Conversation, c.Title, c.From, "too many conversations (limit %d)", maxConversations)
		return
	}
	if err := c.setID(r.plan.System); err != nil {
		r.plan.addLost(Conversation, c.Title, c.From, "cannot encode: %v", err)
		return
	}
	c.Title = cmp.Or(c.Title, c.ID)
	i := slices.IndexFunc(r.plan.Conversations, func(o *PastConversation) bool { return o.ID == c.ID })
	if i < 0 {
		r.plan.Conversations = append(r.plan.Conversations, c)
	} else if same := r.plan.Conversations[i].source; c.source != same && c.source != "" && same != "" {
		r.plan.addLost(Conversation, c.Title, c.From, "it has the same messages as another conversation")
	}
}

// setID sets the ID, and drops what only the ID depends on. A change of the
// encoding would give other IDs to conversations that are stored already.
func (c *PastConversation) setID(system System) error {
	type message struct {
		session.PastMessage
		Calls   json.RawMessage `json:"calls,omitempty"`
		Images  []string        `json:"images,omitempty"`
		Follows *int            `json:"follows,omitempty"`
	}
	var all []message
	for i := range c.Messages {
		m := &c.Messages[i]
		all = append(all, message{m.PastMessage, m.calls.text, m.sums, m.follows})
		m.calls, m.sums = allCalls{}, nil
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	c.ID = string(system) + "-" + hex.EncodeToString(sum[:6])
	return nil
}

// quotedTitle returns the title in quotation marks, truncated to 60 bytes.
func (c *PastConversation) quotedTitle() string { return `"` + printable.Text(c.Title, 60) + `"` }

// Last returns the time of the last message. It returns the zero time if that is
// unknown or in the future.
func (c *PastConversation) Last() time.Time {
	return dropFutureTime(c.Messages[len(c.Messages)-1].Time)
}

// isBranched reports whether the conversation has messages on other branches.
func (c *PastConversation) isBranched() bool {
	return c.end > 0 || slices.ContainsFunc(c.Messages, func(m PastMessage) bool { return m.follows != nil })
}

// currentBranch returns the indexes of the messages on the current branch, in order.
func (c *PastConversation) currentBranch() []int {
	var out []int
	for n := cmp.Or(c.end, len(c.Messages)); n > 0; {
		out = append(out, n-1)
		if f := c.Messages[n-1].follows; f != nil {
			n = *f
		} else {
			n--
		}
	}
	slices.Reverse(out)
	return out
}

// dropFutureTime returns t, or the zero time if t is more than a day in the future, and
// therefore wrong.
func dropFutureTime(t time.Time) time.Time {
	if time.Until(t) > 24*time.Hour {
		return time.Time{}
	}
	return t
}

// events returns the messages as events of an empty log. If all is set, it returns
// the messages of all branches with their images, including images without Data.
// Otherwise it returns only the texts of the current branch.
func (c *PastConversation) events(all bool) []*session.Event {
	if !all {
		var out []*session.Event
		for _, i := range c.currentBranch() {
			if m := &c.Messages[i]; m.Text != "" {
				out = append(out, m.event(nil))
			}
		}
		return out
	}
	var out []*session.Event
	at := make([]int64, len(c.Messages)+1) // number of the event with the message, or with the one that it follows
	continueAfter := func(seq int64, when time.Time) {
		if seq != int64(len(out)) {
			out = append(out, &session.Event{Time: when, Branched: &session.Branch{After: seq}})
		}
	}
	for i := range c.Messages {
		m := &c.Messages[i]
		after := at[i]
		if m.follows != nil {
			after = at[*m.follows]
		}
		if at[i+1] = after; m.isEmpty() {
			continue
		}
		continueAfter(after, dropFutureTime(m.Time))
		out = append(out, m.event(m.Images))
		at[i+1] = int64(len(out))
	}
	continueAfter(at[cmp.Or(c.end, len(c.Messages))], c.Last())
	return out
}

// event returns the message as an event with the given images.
func (m *PastMessage) event(images []llm.Image) *session.Event {
	return &session.Event{Time: dropFutureTime(m.Time), Message: &session.Message{Role: m.Role, Text: m.Text, Images: images}}
}

// count returns the number of messages that events(all) returns, and the numbers of
// the messages on other branches and of the images that it omits.
func (c *PastConversation) count(all bool) (messages, others, images int) {
	for _, e := range c.events(all) {
		if e.Message != nil {
			messages++
		}
	}
	if all {
		return messages, 0, 0
	}
	branch := c.currentBranch()
	for i := range c.Messages {
		m := &c.Messages[i]
		if _, current := slices.BinarySearch(branch, i); current {
			images += len(m.Images)
		} else if !m.isEmpty() {
			others++
		}
	}
	return messages, others, images
}

// history returns the messages for [session.Session.Restore], with the names
// that find returns for the recorded skills and for those that calls load. It
// calls find for the last maxLookups names, each once. Other skills, and those for
// which find returns "", are not restored.
func (c *PastConversation) history(find func(string) string) []session.PastMessage {
	branch := c.currentBranch()
	out := make([]session.PastMessage, len(branch))
	found := map[string]string{}
	lookUp := func(name string) string {
		if _, ok := found[name]; !ok && len(found) < maxLookups {
			found[name] = find(name)
		}
		return found[name]
	}
	for i, at := range slices.Backward(branch) {
		m := &c.Messages[at]
		out[i] = m.PastMessage
		out[i].LoadedSkills = slices.Clone(m.LoadedSkills)
		for n, name := range slices.Backward(m.LoadedSkills) {
			out[i].LoadedSkills[n] = lookUp(name)
		}
		out[i].Calls = slices.Clone(m.Calls)
		for n, call := range slices.Backward(m.Calls) {
			if name := toolname.LoadedSkill(call.Name, call.Arguments); name != "" {
				out[i].Calls[n].Arguments = loadArguments(lookUp(name))
			}
		}
	}
	return out
}

// loadArguments returns the arguments of a call that loads a skill, or "" if name
// is "".
func loadArguments(name string) string {
	if name == "" {
		return ""
	}
	text, _ := json.Marshal(map[string]string{"name": name})
	return string(text)
}

// FindSkill returns the name of the skill that another system calls name, or ""
// if there is none. A skill that has no name in its SKILL.md is named after its
// directory, which may have got another name when it was installed: wiki_submit
// is then wiki-submit.
func FindSkill(all *catalog.Snapshot, name string) (own string, ok bool) {
	if own = skillname.Normalize(name); all.ByName(own) != nil {
		return own, true
	}
	if own = skillname.Slug(name); all.ByName(own) != nil && own != skillname.Slug("") { // which is that of names without Latin letters
		return own, true
	}
	return "", false
}

// missingSkills returns the names of the skills that the conversation used and
// that the user does not have, the last one first. It looks up the last
// maxLookups names.
func (c *PastConversation) missingSkills(has func(string) bool) []string {
	var out []string
	seen := map[string]bool{}
	for _, m := range slices.Backward(c.Messages) {
		for _, name := range slices.Backward(m.usedSkills()) {
			if name == "" || seen[name] || len(seen) == maxLookups {
				continue
			}
			seen[name] = true
			if !has(name) {
				out = append(out, printable.Text(name, 64))
			}
		}
	}
	return out
}

// firstNames lists the first of the given names, and how many others there are.
func firstNames(names []string) string {
	const most = 20
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// usedSkills returns the names of the skills that were recorded with a message,
// or that its calls loaded. It omits names over maxName bytes.
func (m PastMessage) usedSkills() []string {
	if m.LoadedSkills != nil {
		return m.LoadedSkills
	}
	var out []string
	for _, call := range m.Calls {
		if name := toolname.LoadedSkill(call.Name, call.Arguments); name != "" && !call.Error {
			out = appendName(out, name)
		}
	}
	return out
}

// appendName appends the name of a skill to list unless it has over maxName bytes.
func appendName(list []string, name string) []string {
	if len(name) > maxName {
		return list
	}
	return append(list, name)
}

// cleanText returns the text of a message in a form suitable for models,
// truncated to maxText bytes, and whether it was truncated.
func cleanText(s string) (text string, truncated bool) {
	if truncated = len(s) > maxText; truncated {
		s = strings.ToValidUTF8(s[:maxText], "") + fmt.Sprintf("\n… (%d bytes in all)", len(s))
	}
	return strings.TrimSpace(untrusted.New(s).ForModelLines()), truncated
}
