package hub

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// recordJSON is something that was done, or refused.
type recordJSON struct {
	Number    int64           `json:"number"`
	At        time.Time       `json:"at"`
	Actor     string          `json:"actor" doc:"The id of the user; empty for who had not signed in"`
	Action    string          `json:"action"`
	Namespace string          `json:"namespace,omitempty" doc:"As user:ID or group:ID; not there for the hub"`
	Subject   string          `json:"subject,omitempty" doc:"What it was done to"`
	Decision  string          `json:"decision" enum:"allowed,denied,asked" doc:"asked is that a person had to agree first"`
	Details   json.RawMessage `json:"details,omitempty"`
}

func recordOf(r store.Record) recordJSON {
	return recordJSON{r.Seq, r.At, r.Actor, r.Action, string(r.Namespace), r.Subject, r.Decision, r.Details}
}

func (h *Hub) audit(api huma.API) {
	add(h, api, operation("list-audit", "GET", "/audit", "What was done and refused, the newest first: to administrators all, to others what is theirs"), h.listAudit)
}

func (h *Hub) listAudit(ctx context.Context, in *struct {
	After     string `query:"after" maxLength:"20" doc:"What the page before had as next"`
	Limit     int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
	Actor     string `query:"actor" maxLength:"64" doc:"The id of a user, or me; without it and a namespace it is me, but for administrators"`
	Action    string `query:"action" maxLength:"100"`
	Namespace string `query:"namespace" maxLength:"100" doc:"As user:ID or group:ID"`
	Subject   string `query:"subject" maxLength:"1024"`
	Decision  string `query:"decision" enum:"allowed,denied,asked"`
}) (*body[listed[recordJSON]], error) {
	p := account.FromContext(ctx)
	q := store.AuditQuery{Actor: string(userID(p, in.Actor)), Action: in.Action, Namespace: store.Namespace(in.Namespace), Subject: in.Subject, Decision: in.Decision, Limit: in.Limit}
	if q.Actor == "" && q.Namespace == "" && !p.Admin {
		q.Actor = string(p.User)
	}
	if in.After != "" {
		var err error
		if q.Before, err = strconv.ParseInt(in.After, 10, 64); err != nil || q.Before <= 0 {
			return nil, &Problem{Status: 422, Code: "invalid", Detail: "after is not what a page had as next", Next: "leave it out to begin with the newest, and send what a page has as next for the one after it"}
		}
	}
	records, err := h.people.Audit.List(ctx, p, q)
	next := ""
	if n := len(records); n == in.Limit {
		next = strconv.FormatInt(records[n-1].Seq, 10)
	}
	return page(records, next, err, recordOf)
}
