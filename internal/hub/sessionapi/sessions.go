package sessionapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// startedJSON is the response after starting a conversation.
type startedJSON struct {
	chat.Conversation
	Input int64 `json:"input,omitempty" doc:"Number of the message, as in its events"`
}

// SessionPath is the path parameter for a conversation.
type SessionPath struct {
	Session string `path:"session" maxLength:"64" doc:"The id of a session"`
}

type newSession struct {
	Agent   agentName `json:"agent,omitempty" doc:"Bot/NAMESPACE/NAME or {kind, namespace, name} of a Ghost, Bot or Team; default the default agent"`
	Title   string    `json:"title,omitempty" maxLength:"1024" doc:"Default a title from the first message, which a model may replace"`
	Model   string    `json:"model,omitempty" maxLength:"64" doc:"ID of a Model that you may use; default that of the agent"`
	Message string    `json:"message,omitempty" maxLength:"262144" doc:"First message"`
	// Variables are stored encrypted and never returned.
	Variables map[string]string `json:"variables,omitempty" maxProperties:"64" doc:"Platform values for servers that write ${{NAME}}, by name, for example task_token; at most 8 KiB each. Stored encrypted, deleted with the conversation and never returned. They need your grants, and take precedence over those of Ghosts and groups. Replace one with PUT /secrets/variable.NAME?owner=session:ID"`
	// Draft is a pointer, so that a draft without files, which is rejected,
	// differs from no draft.
	Draft *api.Draft `json:"draft,omitempty" doc:"Draft skill to try in this conversation only, instead of others of its name. Its code runs only after these files are saved and approved"`
	// Documents describes an agent that is not saved.
	Documents string `json:"documents,omitempty" maxLength:"262144" doc:"Documents of the agent to try, as for POST /apply; at most 43. They are not saved, and replace the saved ones of their names in this conversation only. agent names one of them. The conversation is not listed, and is deleted a day after its last turn or when you start five others"`
	// Version, like Draft, replaces other skills of its name in this conversation.
	Version *triedVersion `json:"version,omitempty" doc:"Version of a skill to try in this conversation only, instead of others of its name. Its code runs only after an approval. Only the uploader and the reviewers may try a version that is awaiting review"`
}

// triedVersion identifies the version of a skill to test in a conversation.
type triedVersion struct {
	Skill  string `json:"skill" minLength:"1" maxLength:"64" doc:"ID of a skill"`
	Number int64  `json:"number" minimum:"1"`
}

type sessionChange struct {
	Title    *string `json:"title,omitempty" maxLength:"1024" doc:"Default unchanged"`
	Folder   *string `json:"folder,omitempty" maxLength:"64" doc:"ID of a folder of yours, or empty for none; default unchanged"`
	Pinned   *bool   `json:"pinned,omitempty" doc:"Whether lists start with the conversation; default unchanged"`
	Archived *bool   `json:"archived,omitempty" doc:"Whether the conversation is archived, until a message is sent to it; default unchanged"`
	Model    *string `json:"model,omitempty" maxLength:"64" doc:"ID of a Model that you may use, for messages sent from now on, or empty for that of the agent; default unchanged"`
}

type newMessage struct {
	Text   string         `json:"text,omitempty" maxLength:"262144"`
	Skill  string         `json:"skill,omitempty" maxLength:"1024" doc:"Skill to use; default the model decides"`
	Images []messageImage `json:"images,omitempty" maxItems:"8" doc:"Files of the conversation that the model sees as images: PNG, JPEG, GIF or WebP, at most 3.75 MiB and 8000 × 8000 pixels each and 10 MiB in all. The model does not see their metadata. A model that does not read images gets their names"`
	After  *int64         `json:"after,omitempty" minimum:"0" doc:"Step after which the message continues the conversation, on a new branch: after of the message that it replaces, seq of the last answer of an earlier turn, or 0 to start again. Default the last step"`
}

// messageImage selects a file as an image of a message.
type messageImage struct {
	Path   string `json:"path" minLength:"1" maxLength:"512" doc:"Path of the file"`
	SHA256 string `json:"sha256,omitempty" pattern:"^[0-9a-f]{64}$" doc:"Version of the file, by its hash; default the current one"`
}

// toImageRefs converts the images of a message.
func toImageRefs(images []messageImage) []chat.ImageRef {
	var out []chat.ImageRef
	for _, i := range images {
		out = append(out, chat.ImageRef(i))
	}
	return out
}

// otherBranch identifies a branch by a step.
type otherBranch struct {
	After int64 `json:"after" minimum:"0" doc:"Step after which the conversation continues: last of a version, seq of the last answer of an earlier turn, or 0 to start again"`
}

// inputJSON identifies a queued input.
type inputJSON struct {
	Input int64 `json:"input" doc:"Number of the input, as in its events"`
}

// historyJSON is a page of a conversation's messages.
type historyJSON struct {
	Items     []chat.Line    `json:"items" nullable:"false" doc:"The last answer of each turn lists the loaded or used skills in loaded_skills, others an empty list; messages of users have none"`
	Next      string         `json:"next,omitempty" doc:"Pass as after to get the next page; absent on the last page"`
	LastEvent int64          `json:"told" doc:"Number of the last event included here"`
	Versions  []chat.Version `json:"versions,omitempty" doc:"Messages that follow the last message of this branch on other branches, oldest first"`
}

func (h *Handlers) sessionsAPI() {
	api.Add(h.Server, api.Operation("list-sessions", "GET", "/sessions", "List the conversations of a user: pinned ones first, then those with the latest messages"), h.listSessions)
	api.Add(h.Server, api.Operation("search-sessions", "GET", "/sessions/search", "Search your own conversations, archived ones too: their titles, your messages and the answers on all branches, newest first"), h.searchSessions)
	api.AddDraft(h.Server, api.WithCreated(api.Operation("begin-session", "POST", "/sessions", "Start a conversation, optionally with a message")), h.startSession)
	api.Add(h.Server, api.Operation("get-session", "GET", "/sessions/{session}", "Get a conversation"), h.getSession)
	api.Add(h.Server, api.Operation("change-session", "PATCH", "/sessions/{session}", "Rename, pin, file or archive a conversation, or select its model"), h.changeSession)
	api.Add(h.Server, api.Operation("delete-session", "DELETE", "/sessions/{session}", "Delete a conversation with its messages, approval requests, platform values and files"), h.deleteSession)
	api.Add(h.Server, withAcceptedStatus(api.Operation("say", "POST", "/sessions/{session}/messages", "Send a message; it is queued")), h.sendMessage)
	api.Add(h.Server, api.Operation("get-history", "GET", "/sessions/{session}/messages", "List the messages of the current branch"), h.getHistory)
	api.Add(h.Server, withAcceptedStatus(api.Operation("branch-session", "POST", "/sessions/{session}/branch", "Continue a conversation after an earlier step, on another branch; it is queued")), h.switchBranch)
	api.Add(h.Server, api.Operation("cancel-session", "POST", "/sessions/{session}/cancel", "Cancel the running turn and the queued inputs"), h.cancelSession)
	api.Add(h.Server, withAcceptedStatus(api.Operation("compact-session", "POST", "/sessions/{session}/compact", "Compact the context of a conversation")), h.compactSession)
	api.Add(h.Server, api.Operation("get-session-usage", "GET", "/sessions/{session}/usage", "Get the token usage by model"), h.getSessionUsage)
	h.sessionSkills()
	h.sessionFiles()
	h.sessionStreams()
}

// withAcceptedStatus returns op with the response status 202.
func withAcceptedStatus(op huma.Operation) huma.Operation {
	op.DefaultStatus = 202
	return op
}

func (h *Handlers) listSessions(ctx context.Context, in *struct {
	api.Paging
	Owner    string `query:"owner" maxLength:"64" default:"me" doc:"The id of a user, or me"`
	Folder   string `query:"folder" maxLength:"64" doc:"ID of a folder, or none for the pinned conversations of all folders and those without a folder; default all"`
	Archived bool   `query:"archived" doc:"List the archived conversations instead of the others"`
}) (*api.Body[api.ListBody[chat.Conversation]], error) {
	p := account.FromContext(ctx)
	found, next, err := h.Chat.List(ctx, p, api.UserID(p, in.Owner), chat.ListOptions{Folder: in.Folder, Archived: in.Archived, Page: in.Page()})
	return api.ListOf(found, next, err)
}

func (h *Handlers) searchSessions(ctx context.Context, in *struct {
	Query string `query:"q" required:"true" minLength:"1" maxLength:"200" doc:"Words. A conversation is found if, for each of the first 8 words, it contains a word that starts with it"`
	After string `query:"after" maxLength:"200" doc:"Value of next on the previous page"`
	Limit int    `query:"limit" minimum:"1" maximum:"50" default:"20" doc:"Maximum number of items. A page may have fewer or none although there is a next page, because a request searches a limited number of conversations"`
}) (*api.Body[api.ListBody[chat.Found]], error) {
	found, next, err := h.Chat.Search(ctx, account.FromContext(ctx), in.Query, store.Page{After: in.After, Limit: in.Limit})
	return api.ListOf(found, next, err)
}

func (h *Handlers) startSession(ctx context.Context, in *struct{ Body newSession }) (*api.CreatedBody[startedJSON], error) {
	p := account.FromContext(ctx)
	agent, err := h.findAgent(ctx, p, in.Body)
	if err != nil {
		return nil, err
	}
	began, err := h.createSession(ctx, p, agent, in.Body)
	if err != nil {
		return nil, err
	}
	input, err := h.setUpSession(ctx, p, began.ID, in.Body)
	if err == nil && (input > 0 || in.Body.Model != "") {
		began, err = h.Chat.Get(ctx, p, began.ID) // with its title and model
	}
	if err != nil {
		return nil, errors.Join(err, h.Chat.Delete(context.WithoutCancel(ctx), p, began.ID)) // no client knows of the conversation yet
	}
	return api.CreatedAt(began.ID, "sessions", startedJSON{began, input}, nil)
}

// setUpSession stores the platform values of a new conversation and sends its
// first message, if it has one. It returns the number of the message or 0.
func (h *Handlers) setUpSession(ctx context.Context, p account.Principal, id string, n newSession) (int64, error) {
	if n.Model != "" {
		if err := h.setModel(ctx, p, id, n.Model); err != nil {
			return 0, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.Variables)) {
		if err := h.Agents.Secrets().Set(ctx, p, agents.SessionOwner(id), agents.VariablePrefix+name, n.Variables[name]); err != nil {
			return 0, err
		}
	}
	if n.Message == "" {
		return 0, nil
	}
	return h.Chat.SendMessage(ctx, p, id, chat.Message{Text: n.Message})
}

// createSession creates a conversation. If n contains a draft or a version to
// try, the conversation uses it.
func (h *Handlers) createSession(ctx context.Context, p account.Principal, agent string, n newSession) (chat.Conversation, error) {
	var packed *library.DraftPackage
	var err error
	switch {
	case n.Documents != "" && (n.Draft != nil || n.Version != nil):
		err = &api.Problem{Status: 422, Code: "invalid", Detail: "a conversation cannot try both an agent and a skill", Next: "omit documents, or draft and version"}
	case n.Documents != "":
		return h.Chat.CreateTrial(ctx, p, agent, n.Title, []byte(n.Documents))
	case n.Draft == nil && n.Version == nil:
		return h.Chat.Create(ctx, p, agent, n.Title)
	case n.Version == nil:
		packed, err = h.Library.PackDraft(ctx, p, n.Draft.ToLibrary())
	case n.Draft == nil:
		packed, err = h.Library.PackVersion(ctx, p, n.Version.Skill, n.Version.Number)
	default:
		err = &api.Problem{Status: 422, Code: "invalid", Detail: "a conversation cannot try both a draft and a version", Next: "omit draft or version"}
	}
	if err != nil {
		return chat.Conversation{}, err
	}
	return h.Chat.CreateWithDraft(ctx, p, agent, n.Title, chat.Draft{Name: packed.Name, Digest: packed.Digest, Package: packed.Data})
}

func (h *Handlers) getSession(ctx context.Context, in *SessionPath) (*api.Body[chat.Conversation], error) {
	c, err := h.Chat.Get(ctx, account.FromContext(ctx), in.Session)
	return api.BodyOf(c, err)
}

func (h *Handlers) changeSession(ctx context.Context, in *struct {
	SessionPath
	Body sessionChange
}) (*api.Body[chat.Conversation], error) {
	p := account.FromContext(ctx)
	if in.Body.Model != nil { // before anything is changed
		if err := h.checkModel(ctx, p, in.Session, *in.Body.Model); err != nil {
			return nil, err
		}
	}
	change := chat.Change{Title: in.Body.Title, Folder: in.Body.Folder, Pinned: in.Body.Pinned, Archived: in.Body.Archived}
	if change != (chat.Change{}) {
		if err := h.Chat.Change(ctx, p, in.Session, change); err != nil {
			return nil, err
		}
	}
	if in.Body.Model != nil {
		if err := h.Chat.SetModel(ctx, p, in.Session, *in.Body.Model); err != nil {
			return nil, err
		}
	}
	return h.getSession(ctx, &in.SessionPath)
}

// setModel selects the model of a conversation.
func (h *Handlers) setModel(ctx context.Context, p account.Principal, session, model string) error {
	if err := h.checkModel(ctx, p, session, model); err != nil {
		return err
	}
	return h.Chat.SetModel(ctx, p, session, model)
}

// checkModel returns an error unless the principal may use a model for a conversation
// and has its key.
func (h *Handlers) checkModel(ctx context.Context, p account.Principal, session, model string) error {
	if _, err := h.Chat.Get(ctx, p, session); err != nil || model == "" {
		return err
	}
	choice, err := h.Agents.Model(ctx, p, model)
	if errors.Is(err, store.ErrNotFound) {
		return &api.Problem{Status: 422, Code: "no_model", Detail: fmt.Sprintf("Model %.100q not found, or not available to you", model), Next: "choose another model"}
	}
	if err != nil {
		return err
	}
	if _, err := h.Agents.Secrets().ModelKey(ctx, p, choice); errors.Is(err, policy.ErrNotGranted) {
		return &api.Problem{Status: 422, Code: "model_key", Detail: fmt.Sprintf("the API key of Model %q is missing", choice.Name), Next: "store the key and grant it to the Model, or choose another model"}
	} else if err != nil {
		return err
	}
	return nil
}

func (h *Handlers) deleteSession(ctx context.Context, in *SessionPath) (*api.NoBody, error) {
	return nil, h.Chat.Delete(ctx, account.FromContext(ctx), in.Session)
}

func (h *Handlers) sendMessage(ctx context.Context, in *struct {
	SessionPath
	Key  string `header:"Idempotency-Key" maxLength:"600" doc:"Your unique ID of the message, at most 200 bytes, plain or quoted: repeating a request with it does not send the message twice. Stored as long as the conversation"`
	Body newMessage
}) (*api.Body[inputJSON], error) {
	key, err := api.IdempotencyKey(in.Key)
	if err != nil {
		return nil, err
	}
	input, err := h.Chat.SendMessage(ctx, account.FromContext(ctx), in.Session, chat.Message{Text: in.Body.Text, Skill: in.Body.Skill, Images: toImageRefs(in.Body.Images), Key: key, After: in.Body.After})
	return api.BodyOf(inputJSON{input}, err)
}

func (h *Handlers) getHistory(ctx context.Context, in *struct {
	SessionPath
	After string `query:"after" maxLength:"20" doc:"Value of next on the previous page"`
	Limit int    `query:"limit" minimum:"1" maximum:"200" default:"200" doc:"Maximum number of items"`
}) (*api.Body[historyJSON], error) {
	after, err := parseEventNumber("query.after", in.After)
	if err != nil {
		return nil, err
	}
	found, err := h.Chat.History(ctx, account.FromContext(ctx), in.Session, after, in.Limit)
	if err != nil {
		return nil, err
	}
	out := historyJSON{Items: found.Messages, LastEvent: found.LastEvent, Versions: found.Versions}
	if out.Items == nil {
		out.Items = []chat.Line{}
	}
	if found.Next > 0 {
		out.Next = strconv.FormatInt(found.Next, 10)
	}
	return api.BodyOf(out, nil)
}

// parseEventNumber parses an event number. It returns 0 for "".
func parseEventNumber(where, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, api.InvalidFields(api.Fault{Where: where, Message: "not a number of an event"})
	}
	return n, nil
}

func (h *Handlers) cancelSession(ctx context.Context, in *SessionPath) (*api.NoBody, error) {
	return nil, h.Chat.Cancel(ctx, account.FromContext(ctx), in.Session)
}

func (h *Handlers) switchBranch(ctx context.Context, in *struct {
	SessionPath
	Body otherBranch
}) (*api.Body[inputJSON], error) {
	input, err := h.Chat.Switch(ctx, account.FromContext(ctx), in.Session, in.Body.After)
	return api.BodyOf(inputJSON{input}, err)
}

func (h *Handlers) compactSession(ctx context.Context, in *SessionPath) (*api.Body[inputJSON], error) {
	input, err := h.Chat.Compact(ctx, account.FromContext(ctx), in.Session)
	return api.BodyOf(inputJSON{input}, err)
}

// findAgent resolves the agent of a conversation. The principal must be allowed
// to use the agent.
func (h *Handlers) findAgent(ctx context.Context, p account.Principal, n newSession) (string, error) {
	a := n.Agent
	var profile *agents.Profile
	var err error
	switch {
	case n.Documents != "":
		if err := h.checkTrial(ctx, p, n.Documents); err != nil {
			return "", err
		}
		profile, err = h.Agents.TrialProfile(ctx, p, []byte(n.Documents), a.Kind, a.Namespace, a.Name)
	case a == (agentName{}):
		return "", nil
	default:
		profile, err = h.Agents.Profile(ctx, p, a.Kind, a.Namespace, a.Name)
	}
	if errors.Is(err, store.ErrNotFound) {
		return "", &api.Problem{Status: 422, Code: "no_agent", Detail: fmt.Sprintf("%.20s %.100q not found, incomplete, or not available to you", a.Kind, a.Name),
			Next: "list them: GET " + api.Prefix + "/kinds/" + a.Kind}
	}
	if err != nil {
		return "", err
	}
	in := profile.Namespace
	if in == "" {
		in = "default" // the user's own agent, not the nearest one with the name
	}
	return profile.Kind + "/" + in + "/" + profile.Name, nil
}

// checkTrial returns an error unless the documents of an agent could be saved.
func (h *Handlers) checkTrial(ctx context.Context, p account.Principal, documents string) error {
	result, err := h.Agents.Apply(ctx, p, agents.Parse([]byte(documents), "documents.yaml"), true)
	if err != nil || !result.HasRefused() {
		return err
	}
	out := &api.Problem{Status: 422, Code: "refused", Detail: "the documents of the agent cannot be saved", Next: "apply them with dry=true to get all findings"}
	if result.OnlyDenied() {
		out.Status, out.Code = 403, "forbidden"
	}
	for _, c := range result.Changes {
		if c.Outcome == agents.Refused && len(out.Errors) < 20 {
			out.Errors = append(out.Errors, api.Fault{Where: "body.documents", Message: fmt.Sprintf("line %d: %.20s %.100q is refused", c.Line, c.Kind, c.Name)})
		}
	}
	return out
}
