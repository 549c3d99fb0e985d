package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/redact"
	"github.com/loadout-dev/loadout/internal/scan"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
)

// MaxShareBytes is the maximum size of a share's content, in bytes of JSON.
const MaxShareBytes = 4 << 20

// SharedContent is the content of a share: what the page shows of a conversation's
// current branch. It has no instructions, thinking, results of calls, approval
// requests or memories, and only the chosen files.
type SharedContent struct {
	Title    string          `json:"title"`
	Messages []SharedMessage `json:"messages" nullable:"false"`
	Files    []SharedFile    `json:"files,omitempty" doc:"Files that the user chose to share"`
}

// SharedMessage is a message in a share.
type SharedMessage struct {
	Role   llm.Role      `json:"role" enum:"user,assistant"`
	Text   string        `json:"text"`
	Time   time.Time     `json:"time"`
	Model  string        `json:"model,omitempty"`
	Skills []string      `json:"skills,omitempty" doc:"Skill that the user named, or skills that were loaded or used for the answer"`
	Calls  []SharedCall  `json:"calls,omitempty"`
	Images []SharedImage `json:"images,omitempty" doc:"Images of a user's message, or images in results of calls, if the user chose to share them"`

	cut bool // whether the text may end within a word: the answer was cut off
}

// SharedCall is a tool call in a share, without its arguments and its result.
type SharedCall struct {
	Name  string `json:"name"`
	What  string `json:"what,omitempty" doc:"Object of the call, such as a query or a path, at most 120 characters"`
	Error bool   `json:"error,omitempty"`
}

// SharedImage is an image in a share.
type SharedImage struct {
	MIMEType string `json:"mime_type" enum:"image/png,image/jpeg,image/gif,image/webp"`
	Data     []byte `json:"data,omitempty" doc:"Of an image in the result of a call"`
	Ref      string `json:"ref,omitempty" doc:"Of an image of a message: its content is at /api/v1/shared/LINK/files/REF, and for a preview at /api/v1/sessions/SESSION/images/REF"`
	Name     string `json:"name,omitempty"`
}

// imageTypes are the types of images that are shared.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// Redacted counts the secrets that were replaced in a share.
type Redacted struct {
	Stored     int `json:"stored" doc:"Occurrences of secrets that are stored for you, your groups or the hub"`
	Recognized int `json:"recognized" doc:"Other text that looks like a secret"`
}

// sharedContent returns what a share of the given steps contains. The steps are
// those of one branch, in order.
func sharedContent(title string, path []step, images bool) *SharedContent {
	out := &SharedContent{Title: title, Messages: []SharedMessage{}}
	for _, l := range historyMessages(path) {
		m := SharedMessage{Role: l.Role, Text: l.Text, Time: l.Time, Model: l.Model, Skills: l.LoadedSkills}
		if l.Skill != "" {
			m.Skills = []string{l.Skill}
		}
		for _, i := range l.Images {
			if i.Ref != "" && slices.Contains(imageTypes, i.MIMEType) {
				m.Images = append(m.Images, SharedImage{MIMEType: i.MIMEType, Ref: i.Ref, Name: i.Name})
			}
		}
		for _, c := range l.Calls {
			if c.Error || toolname.LoadedSkill(c.Name, c.Arguments) == "" { // otherwise the skill is listed
				m.Calls = append(m.Calls, sharedCall(c.Name, c.Arguments, c.Error))
			}
		}
		out.Messages = append(out.Messages, m)
	}
	at := -1
	for _, s := range path {
		switch {
		case s.Message != nil:
			at++
			m := &out.Messages[at]
			m.cut = m.Role == llm.Assistant && s.Message.Stop != string(llm.StopEnd) && s.Message.Stop != string(llm.StopTools)
		case s.Result != nil && images && at >= 0:
			for _, image := range s.Result.Images {
				if slices.Contains(imageTypes, image.MIMEType) {
					out.Messages[at].Images = append(out.Messages[at].Images, SharedImage{MIMEType: image.MIMEType, Data: image.Data})
				}
			}
		}
	}
	return out
}

// objectArguments name the arguments that identify a call, in order of preference,
// as on the page.
var objectArguments = []string{"query", "command", "path", "script", "file", "name", "skill", "member", "url", "title"}

// sharedCall returns the short form of a call: its tool, and the argument that
// identifies it, which [SharedContent.redact] shortens.
func sharedCall(name, arguments string, failed bool) SharedCall {
	out := SharedCall{Name: name, Error: failed}
	var args map[string]any
	if json.Unmarshal([]byte(arguments), &args) != nil {
		return out
	}
	if name == toolname.CallTool {
		if tool, ok := args["name"].(string); ok && tool != "" {
			out.Name = tool
		}
		args, _ = args["arguments"].(map[string]any)
	}
	for _, key := range objectArguments {
		if text, ok := args[key].(string); ok && text != "" {
			out.What = text
			break
		}
	}
	return out
}

// shortLine returns text on one line, truncated to 120 characters.
func shortLine(text string) string {
	const most = 120
	r := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " "))
	if len(r) > most {
		return string(r[:most]) + "…"
	}
	return string(r)
}

// Limits of the search for secrets, which replaces each value in all texts.
const (
	maxRecognized = 1000    // values
	maxPartOf     = 8 << 10 // length of a value of which parts are replaced
)

// redact replaces secrets in all texts of the content: the given values, then values
// that look like secrets anywhere in the content or in the unshared texts, and
// credentials in addresses. It shortens the objects of calls only afterwards, because
// it could not find a truncated secret. It fails with [ErrInvalid] if too much text
// looks like a secret, and if ctx is done.
func (c *SharedContent) redact(ctx context.Context, values, unshared []string) (Redacted, error) {
	var out Redacted
	c.replace(ctx, slices.DeleteFunc(slices.Clone(values), func(v string) bool { return len(v) < redact.MinLength }), &out.Stored)
	var found []string
	seen := map[string]bool{}
	find := func(text string) {
		for _, v := range scan.FindSecrets(text) {
			if !seen[v] {
				seen[v] = true
				found = append(found, v)
			}
		}
		for _, v := range scan.URLCredentials(text) {
			if !seen[v] && isLikelySecret(v) { // others are replaced only in addresses
				seen[v] = true
				found = append(found, v)
			}
		}
	}
	c.eachText(ctx, func(text *string) { find(*text) })
	for _, text := range unshared {
		if ctx.Err() == nil {
			find(text)
		}
	}
	if len(found) > maxRecognized {
		return out, fmt.Errorf("%w: too much text looks like a secret (%d values, limit %d); share a shorter branch", ErrInvalid, len(found), maxRecognized)
	}
	c.replace(ctx, found, &out.Recognized)
	c.eachText(ctx, func(text *string) {
		replaced, n := scan.RedactURLs(*text, redact.Marker)
		*text = replaced
		out.Recognized += n
	})
	for i := range c.Messages {
		for n := range c.Messages[i].Calls {
			what := &c.Messages[i].Calls[n].What
			*what = shortLine(*what)
		}
	}
	return out, ctx.Err() // some texts were not searched if ctx is done
}

// isLikelySecret reports whether a credential in an address is long and mixed enough to
// be replaced in other text too.
func isLikelySecret(v string) bool {
	return len(v) >= 8 && strings.ContainsAny(v, "0123456789") && strings.ToUpper(v) != strings.ToLower(v)
}

// replace replaces the values and their encoded forms in all texts, and parts of values
// where a text was cut off, such as in titles. It adds the number of replacements to n.
func (c *SharedContent) replace(ctx context.Context, values []string, n *int) {
	r := redact.Values(c.contained(ctx, values)...)
	count := func(text *string, replaced string) {
		*n += strings.Count(replaced, redact.Marker) - strings.Count(*text, redact.Marker)
		*text = replaced
	}
	c.eachText(ctx, func(text *string) { count(text, r.String(*text)) })
	parts := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return len(v) > maxPartOf })
	cut := redact.Values(parts...)
	for i := range c.Messages {
		if m := &c.Messages[i]; m.cut && ctx.Err() == nil {
			count(&m.Text, cut.Ends(m.Text))
		}
	}
	for _, v := range parts {
		if v := inTitle(v); len(v) >= redact.MinLength {
			parts = append(parts, v)
		}
	}
	title, cutOff := strings.CutSuffix(c.Title, "…")
	title = redact.Values(parts...).Fragment(title)
	if cutOff {
		title += "…"
	}
	count(&c.Title, title)
}

// contained returns the forms of the values that occur in a text. It joins the lines
// of base64 text that contains a value.
func (c *SharedContent) contained(ctx context.Context, values []string) []string {
	var forms, out []string
	for _, v := range values {
		forms = append(forms, redact.Forms(v)...)
	}
	seen := make([]bool, len(forms))
	finder := redact.NewFinder(forms...)
	c.eachText(ctx, func(text *string) {
		*text = redact.JoinLines(*text, func(joined string) (has bool) {
			finder.Find(joined, func(int) { has = true })
			return has
		})
		finder.Find(*text, func(i int) {
			if !seen[i] {
				seen[i] = true
				out = append(out, forms[i])
			}
		})
	})
	return out
}

// inTitle returns a value as it appears in a title. The page's function titleFrom
// derives the title from the first line of the first message, without Markdown
// markup.
func inTitle(v string) string {
	v, _, _ = strings.Cut(strings.TrimSpace(v), "\n")
	return strings.Join(strings.Fields(strings.NewReplacer("`", "", "*", "").Replace(v)), " ")
}

// eachText calls f for each text until ctx is done.
func (c *SharedContent) eachText(ctx context.Context, each func(text *string)) {
	f := func(text *string) {
		if ctx.Err() == nil {
			each(text)
		}
	}
	f(&c.Title)
	for i := range c.Messages {
		m := &c.Messages[i]
		f(&m.Text)
		for n := range m.Images {
			f(&m.Images[n].Name)
		}
		for n := range m.Calls {
			f(&m.Calls[n].Name)
			f(&m.Calls[n].What)
		}
	}
	for i := range c.Files {
		f(&c.Files[i].Path)
		f(&c.Files[i].text)
	}
}

// storedContent is the stored form of a share's content.
type storedContent struct {
	Version int `json:"version"`
	SharedContent
}

// Versions of the stored form. The second one may refer to files. It is used only if
// there are any, so that earlier versions of the hub can read the others.
const (
	contentVersion      = 1
	contentVersionFiles = 2
)

// encode returns the stored form of the content and its digest. It fails with
// [ErrInvalid] if the content is too large.
func (c *SharedContent) encode() (data []byte, digest string, err error) {
	version := contentVersion
	if len(c.Files) > 0 || slices.ContainsFunc(c.Messages, func(m SharedMessage) bool { return m.Role == llm.User && len(m.Images) > 0 }) {
		version = contentVersionFiles
	}
	data, err = json.Marshal(storedContent{version, *c})
	if err != nil {
		return nil, "", err
	}
	if len(data) > MaxShareBytes {
		return nil, "", tooLarge(len(data))
	}
	sum := sha256.Sum256(data)
	return data, "sha256:" + hex.EncodeToString(sum[:]), nil
}

func decodeContent(data []byte) (*SharedContent, error) {
	var c storedContent
	if err := json.Unmarshal(data, &c); err != nil || c.Version < contentVersion || c.Version > contentVersionFiles {
		return nil, fmt.Errorf("read snapshot (version %d): %w", c.Version, store.ErrCorrupt)
	}
	return &c.SharedContent, nil
}
