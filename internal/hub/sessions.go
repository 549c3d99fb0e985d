package hub

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/store"
)

// SessionJSON is a conversation.
type SessionJSON struct {
	ID      string    `json:"id"`
	Owner   string    `json:"owner" doc:"The id of a user"`
	Title   string    `json:"title"`
	Agent   string    `json:"agent,omitempty" doc:"Who is spoken to, as Bot/NAMESPACE/NAME; not there where it is nobody in particular"`
	Draft   string    `json:"draft,omitempty" doc:"The name of the skill that is tried in it before it is kept"`
	Busy    bool      `json:"busy" doc:"Whether a turn is under way, or waits for a node"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated" doc:"When a turn began or ended for the last time"`
}

func sessionOf(c chat.Conversation) SessionJSON {
	return SessionJSON{ID: c.ID, Owner: string(c.Owner), Title: c.Title, Agent: c.Agent, Draft: c.Draft, Busy: c.Busy, Created: c.Created, Updated: c.Updated}
}

// begunJSON is a conversation that began.
type begunJSON struct {
	SessionJSON
	Input int64 `json:"input,omitempty" doc:"The number of the message, which its events have"`
}

// SessionPath names a conversation in a path.
type SessionPath struct {
	Session string `path:"session" maxLength:"64" doc:"The id of a session"`
}

type newSession struct {
	Agent   agentName `json:"agent,omitempty" doc:"Who is spoken to, as Bot/NAMESPACE/NAME or {kind, namespace, name}: a Ghost, Bot or Team; without, nobody in particular"`
	Title   string    `json:"title,omitempty" maxLength:"1024"`
	Message string    `json:"message,omitempty" maxLength:"262144" doc:"What is said first"`
	// Draft is a pointer, as one without files is refused and none is not.
	Draft *DraftJSON `json:"draft,omitempty" doc:"A skill that is tried: it is there in this conversation alone, in place of others of its name, and goes with it. Its code runs once these very files are kept and approved"`
}

type sessionChange struct {
	Title string `json:"title" maxLength:"1024"`
}

type newMessage struct {
	Text  string `json:"text,omitempty" maxLength:"262144"`
	Skill string `json:"skill,omitempty" maxLength:"1024" doc:"The name of a skill that is to be used for it; without, the model decides"`
}

// inputJSON is something that waits for its turn.
type inputJSON struct {
	Input int64 `json:"input" doc:"Its number, which its events have"`
}

// historyJSON is a part of what was said.
type historyJSON struct {
	Items []chat.Line `json:"items" nullable:"false" doc:"The last answer of each turn has in loaded_skills what was loaded or used for it, any other an empty list; messages of people have none"`
	Next  string      `json:"next,omitempty" doc:"Where the next page begins; not there on the last"`
	Told  int64       `json:"told" doc:"The number of the last event before it was read: events after it are all that is not here"`
}

func (h *Hub) sessionsAPI(api huma.API) {
	add(h, api, operation("list-sessions", "GET", "/sessions", "Conversations of a user, those that began last first"), h.listSessions)
	takesDraft(h, api, created(operation("begin-session", "POST", "/sessions", "Begin a conversation, and say something in it")), h.beginSession)
	add(h, api, operation("get-session", "GET", "/sessions/{session}", "A conversation"), h.getSession)
	add(h, api, operation("change-session", "PATCH", "/sessions/{session}", "Give a conversation another title"), h.changeSession)
	add(h, api, operation("delete-session", "DELETE", "/sessions/{session}", "Delete a conversation with all that was said, its questions and its files"), h.deleteSession)
	add(h, api, accepted(operation("say", "POST", "/sessions/{session}/messages", "Say something; it waits for its turn")), h.say)
	add(h, api, operation("get-history", "GET", "/sessions/{session}/messages", "What was said"), h.getHistory)
	add(h, api, operation("cancel-session", "POST", "/sessions/{session}/cancel", "End the turn that is under way, and take back what waits"), h.cancelSession)
	add(h, api, accepted(operation("compact-session", "POST", "/sessions/{session}/compact", "Have a short text take the place of what was said")), h.compactSession)
	add(h, api, operation("get-session-usage", "GET", "/sessions/{session}/usage", "The tokens that models have taken, by model"), h.getSessionUsage)
	h.sessionSkills(api)
	h.sessionFiles(api)
	h.sessionStreams(api)
}

// accepted makes an operation one that answers with 202: what is asked for is done later.
func accepted(op huma.Operation) huma.Operation {
	op.DefaultStatus = 202
	return op
}

func (h *Hub) listSessions(ctx context.Context, in *struct {
	Paging
	Owner string `query:"owner" maxLength:"64" default:"me" doc:"The id of a user, or me"`
}) (*body[listed[SessionJSON]], error) {
	p := account.FromContext(ctx)
	found, next, err := h.chat.List(ctx, p, userID(p, in.Owner), in.page())
	return page(found, next, err, sessionOf)
}

func (h *Hub) beginSession(ctx context.Context, in *struct{ Body newSession }) (*made[begunJSON], error) {
	p := account.FromContext(ctx)
	agent, err := h.findAgent(ctx, p, in.Body.Agent)
	if err != nil {
		return nil, err
	}
	began, err := h.beginTalk(ctx, p, agent, in.Body)
	if err != nil || in.Body.Message == "" {
		return madeAt(began.ID, "sessions", begunJSON{SessionJSON: sessionOf(began)}, err)
	}
	input, err := h.chat.Say(ctx, p, began.ID, chat.Message{Text: in.Body.Message})
	if err != nil {
		return nil, errors.Join(err, h.chat.Delete(context.WithoutCancel(ctx), p, began.ID)) // nobody knows of it
	}
	return madeAt(began.ID, "sessions", begunJSON{sessionOf(began), input}, nil)
}

// beginTalk begins a conversation, with the draft that is to be tried in it.
func (h *Hub) beginTalk(ctx context.Context, p account.Principal, agent string, n newSession) (chat.Conversation, error) {
	if n.Draft == nil {
		return h.chat.Begin(ctx, p, agent, n.Title)
	}
	packed, err := h.library.Pack(ctx, p, n.Draft.draft())
	if err != nil {
		return chat.Conversation{}, err
	}
	return h.chat.Try(ctx, p, agent, n.Title, chat.Draft{Name: packed.Name, Digest: packed.Digest, Package: packed.Data})
}

func (h *Hub) getSession(ctx context.Context, in *SessionPath) (*body[SessionJSON], error) {
	c, err := h.chat.Get(ctx, account.FromContext(ctx), in.Session)
	return answered(sessionOf(c), err)
}

func (h *Hub) changeSession(ctx context.Context, in *struct {
	SessionPath
	Body sessionChange
}) (*body[SessionJSON], error) {
	if err := h.chat.Rename(ctx, account.FromContext(ctx), in.Session, in.Body.Title); err != nil {
		return nil, err
	}
	return h.getSession(ctx, &in.SessionPath)
}

func (h *Hub) deleteSession(ctx context.Context, in *SessionPath) (*nothing, error) {
	return nil, h.chat.Delete(ctx, account.FromContext(ctx), in.Session)
}

func (h *Hub) say(ctx context.Context, in *struct {
	SessionPath
	Key  string `header:"Idempotency-Key" maxLength:"600" doc:"Your own name for the message, of at most 200 bytes, as it is or between quotes: sent again with it, as the answer was lost, it is not said twice, and answered as before. It is remembered for as long as the conversation"`
	Body newMessage
}) (*body[inputJSON], error) {
	key, err := keyOf(in.Key)
	if err != nil {
		return nil, err
	}
	input, err := h.chat.Say(ctx, account.FromContext(ctx), in.Session, chat.Message{Text: in.Body.Text, Skill: in.Body.Skill, Key: key})
	return answered(inputJSON{input}, err)
}

// keyOf is the key of a message as its header has it: as it is, or as a string of RFC 9651.
func keyOf(header string) (string, error) {
	header = strings.TrimSpace(header)
	if !strings.HasPrefix(header, `"`) {
		return header, nil
	}
	inner, closed := strings.CutSuffix(header[1:], `"`)
	var key strings.Builder
	for i := 0; i < len(inner) && closed; i++ {
		if inner[i] == '\\' && i+1 < len(inner) && (inner[i+1] == '"' || inner[i+1] == '\\') {
			i++
		} else if inner[i] == '"' || inner[i] == '\\' {
			closed = false
		}
		key.WriteByte(inner[i])
	}
	if !closed || len(header) == 1 || key.Len() == 0 {
		return "", &Problem{Status: 422, Code: "invalid", Detail: "the request cannot be taken as it is", Next: "mend what is in errors",
			Errors: []Fault{{"header.Idempotency-Key", "it is no string between quotes"}}}
	}
	return key.String(), nil
}

func (h *Hub) getHistory(ctx context.Context, in *struct {
	SessionPath
	After string `query:"after" maxLength:"20" doc:"What the page before had as next"`
	Limit int    `query:"limit" minimum:"1" maximum:"200" default:"200" doc:"How many at most"`
}) (*body[historyJSON], error) {
	after, err := number("query.after", in.After)
	if err != nil {
		return nil, err
	}
	found, err := h.chat.History(ctx, account.FromContext(ctx), in.Session, after, in.Limit)
	if err != nil {
		return nil, err
	}
	out := historyJSON{Items: found.Lines, Told: found.Told}
	if out.Items == nil {
		out.Items = []chat.Line{}
	}
	if found.Next > 0 {
		out.Next = strconv.FormatInt(found.Next, 10)
	}
	return answered(out, nil)
}

// number is that of an event or a step, as a list or a stream gave it; "" is 0.
func number(where, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, &Problem{Status: 422, Code: "invalid", Detail: "the request cannot be taken as it is", Next: "mend what is in errors",
			Errors: []Fault{{where, "it is no number that there was"}}}
	}
	return n, nil
}

func (h *Hub) cancelSession(ctx context.Context, in *SessionPath) (*nothing, error) {
	return nil, h.chat.Cancel(ctx, account.FromContext(ctx), in.Session)
}

func (h *Hub) compactSession(ctx context.Context, in *SessionPath) (*body[inputJSON], error) {
	input, err := h.chat.Compact(ctx, account.FromContext(ctx), in.Session)
	return answered(inputJSON{input}, err)
}

// findAgent is how an agent is kept with a conversation, where there is one that the
// principal may use.
func (h *Hub) findAgent(ctx context.Context, p account.Principal, a agentName) (string, error) {
	if a == (agentName{}) {
		return "", nil
	}
	profile, err := h.kinds.Profile(ctx, p, a.Kind, a.Namespace, a.Name)
	if errors.Is(err, store.ErrNotFound) {
		return "", &Problem{Status: 422, Code: "no_agent", Detail: fmt.Sprintf("there is no %.20s %.100q, or a part of it is missing, or you may not use it", a.Kind, a.Name),
			Next: "see which there are: GET " + base + "/kinds/" + a.Kind}
	}
	if err != nil {
		return "", err
	}
	in := profile.Namespace
	if in == "" {
		in = "default" // his own, and not the nearest that has one of the name
	}
	return profile.Kind + "/" + in + "/" + profile.Name, nil
}
