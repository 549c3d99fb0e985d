package accountapi

import (
	"context"
	"strconv"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

func (h *Handlers) auditAPI() {
	api.Add(h.Server, api.Operation("list-audit", "GET", "/audit", "List the audit log, newest first; administrators see all records, others their own"), h.listAudit)
}

func (h *Handlers) listAudit(ctx context.Context, in *struct {
	After     string    `query:"after" maxLength:"20" doc:"Value of next on the previous page"`
	Limit     int       `query:"limit" minimum:"1" maximum:"500" default:"50"`
	Actor     string    `query:"actor" maxLength:"64" doc:"ID of a user, or me; default me for users other than administrators if namespace is empty"`
	Action    string    `query:"action" maxLength:"100"`
	Namespace string    `query:"namespace" maxLength:"100" doc:"user:ID or group:ID"`
	Subject   string    `query:"subject" maxLength:"1024"`
	Decision  string    `query:"decision" enum:"allowed,denied,asked"`
	Since     time.Time `query:"since" doc:"Only records from this time on"`
	Until     time.Time `query:"until" doc:"Only records before this time"`
}) (*api.Body[api.ListBody[store.AuditRecord]], error) {
	p := account.FromContext(ctx)
	q := store.AuditQuery{Actor: string(api.UserID(p, in.Actor)), Action: in.Action, Namespace: store.Namespace(in.Namespace), Subject: in.Subject, Decision: in.Decision, Since: in.Since, Until: in.Until, Limit: in.Limit}
	if q.Actor == "" && q.Namespace == "" && !p.Admin {
		q.Actor = string(p.User)
	}
	if in.After != "" {
		var err error
		if q.Before, err = strconv.ParseInt(in.After, 10, 64); err != nil || q.Before <= 0 {
			return nil, &api.Problem{Status: 422, Code: "invalid", Detail: "invalid page position in after", Next: "omit after for the first page, or send next of the previous page"}
		}
	}
	records, err := h.Directory.Audit.List(ctx, p, q)
	next := ""
	if n := len(records); n == in.Limit {
		next = strconv.FormatInt(records[n-1].Seq, 10)
	}
	for i, r := range records {
		records[i].Details = untrusted.VisibleJSON(r.Details)
	}
	return api.ListOf(records, next, err)
}
