// Package migrateapi serves the migration from other agent systems over HTTP. Package
// migrate reads the files, which are uploaded or at a source; packages library, agents
// and chat check the user's permissions and store what is new.
package migrateapi

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/chat"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/skillapi"
	"github.com/loadout-dev/loadout/internal/migrate"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

// Handlers serves the operations of this package. All exported fields are required.
type Handlers struct {
	*api.Server
	Library *library.Library
	Agents  *agents.Registry
	Chat    *chat.Engine

	mu      sync.Mutex
	running map[account.UserID]bool // users with a migration in progress on this node
}

// begin returns an error if a migration of the user is in progress on this node.
// Otherwise the caller must call end.
func (h *Handlers) begin(u account.UserID) (end func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running[u] {
		return nil, &api.Problem{Status: 429, Code: "too_many_open", Detail: "another migration of yours is in progress", Next: "wait until it is done, and try again",
			Header: http.Header{"Retry-After": {"5"}}}
	}
	if h.running == nil {
		h.running = map[account.UserID]bool{}
	}
	h.running[u] = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.running, u)
	}, nil
}

// Register adds the operations to the API.
func (h *Handlers) Register() {
	api.AddUpload(h.Server, api.Operation("migrate", "POST", "/migrate", "Migrate skills, agents, MCP servers and conversations from files of another system. Existing items are never changed; a second call changes nothing"),
		"A ZIP or gzipped tar of the files, or one file", h.migrateUpload)
	api.AddFor(h.Server, api.Operation("migrate-source", "POST", "/migrate/source", "Migrate like migrate, but from a repository or an archive at an address"),
		skillapi.ImportTimeout, h.migrateSource)
}

// migrationJSON is the report of a migration.
type migrationJSON struct {
	System    string             `json:"system"`
	Source    string             `json:"source" doc:"Name of the file, or the address"`
	Commit    string             `json:"commit,omitempty" doc:"Commit that was read, if the source is a repository"`
	Digest    string             `json:"digest,omitempty" doc:"Hash of the archive that was read from an address"`
	Namespace string             `json:"namespace" doc:"Namespace of the skills, agents and servers: user:ID, group:ID or public. Conversations are always your own"`
	Done      bool               `json:"done" doc:"Whether something was stored; false after a dry run, and if nothing is new"`
	Items     []migratedItemJSON `json:"items" nullable:"false"`
	Notes     []string           `json:"notes" nullable:"false" doc:"What was not stored completely, and why"`
	Secrets   []string           `json:"secrets" nullable:"false" doc:"Names of the secrets that new servers and Models need. Set and grant them; values are never migrated"`
}

// migratedItemJSON is an item of a report.
type migratedItemJSON struct {
	Kind    string   `json:"kind" enum:"skill,document,server,conversation,file"`
	Name    string   `json:"name"`
	From    string   `json:"from" doc:"Path of the file"`
	Outcome string   `json:"outcome" enum:"kept,changed,lost"`
	New     bool     `json:"new" doc:"Whether it is stored, or would be with apply. Otherwise it is already there, or lost"`
	Does    string   `json:"does,omitempty" doc:"Which commands new servers run or to which hosts they connect, or where conversations with a new Model are sent"`
	Details []string `json:"details" nullable:"false" doc:"What changed, or why it is lost"`
	ID      string   `json:"id,omitempty" doc:"ID of the skill or conversation, if it is there"`
}

func newItemJSON(i migrate.Item) migratedItemJSON {
	return migratedItemJSON{Kind: string(i.Kind), Name: visible(i.Name), From: visible(i.From), Outcome: string(i.Outcome), New: i.New, Does: visible(i.Does), Details: visibleTexts(i.Details)}
}

// visible escapes disallowed characters, so that the user sees them.
func visible(s string) string { return untrusted.New(s).Visible() }

func visibleTexts(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = visible(s)
	}
	return out
}

func (h *Handlers) migrateUpload(ctx context.Context, in *struct {
	System    string `query:"system" required:"true" enum:"wegent,weknora,ba-agent,local-llm-provider,loadout" doc:"System that the files are from; loadout is another machine or hub"`
	Namespace string `query:"namespace" maxLength:"100" doc:"Namespace as in lists; default your own"`
	FileName  string `query:"file_name" maxLength:"255" doc:"Name of the file, for example export.zip or task.json, if neither Content-Disposition nor the form has it"`
	Apply     bool   `query:"apply" doc:"Store what is new. Without it, the response only reports what would be stored"`
}) (*api.Body[migrationJSON], error) {
	return h.migrate(ctx, in.System, in.Namespace, func(m *migration) error {
		err := api.ReceiveUpload(ctx, func(name string, data io.Reader) error {
			m.source = cmp.Or(in.FileName, name, "upload")
			return h.Library.WithCollection(ctx, m.p, m.in, m.source, data, func(c *library.Collection) error {
				return m.run(ctx, c, in.Apply)
			})
		})
		if refused, ok := errors.AsType[*skill.RefusedError](err); ok {
			return api.RefusedPackage(refused, "make another archive of the files, and upload that")
		}
		return err
	})
}

func (h *Handlers) migrateSource(ctx context.Context, in *struct {
	Body struct {
		System    string `json:"system" enum:"wegent,weknora,ba-agent,local-llm-provider,loadout" doc:"System that the files are from; loadout is another machine or hub"`
		Source    string `json:"source" minLength:"1" maxLength:"4096" doc:"owner/repo, https://host/repo.git, https://host/x.zip, or a file"`
		Ref       string `json:"ref,omitempty" maxLength:"250" doc:"Branch, tag or commit of a repository, instead of the one in source"`
		Namespace string `json:"namespace,omitempty" maxLength:"100" doc:"Namespace as in lists; default your own"`
		Commit    string `json:"commit,omitempty" maxLength:"64" doc:"Commit of the report; default the current one"`
		Digest    string `json:"digest,omitempty" maxLength:"100" doc:"Digest of the report: if the archive has another one, the response has status 409"`
		Apply     bool   `json:"apply,omitempty" doc:"Store what is new. Without it, the response only reports what would be stored"`
	}
}) (*api.Body[migrationJSON], error) {
	r := in.Body
	return h.migrate(ctx, r.System, r.Namespace, func(m *migration) error {
		source, err := skillapi.SourceRequest{Source: r.Source, Ref: r.Ref}.WithRef()
		if err != nil {
			return err
		}
		err = h.Library.WithSource(ctx, m.p, m.in, source, r.Commit, func(c *library.Collection) error {
			m.source, m.digest = c.Location.String(), c.Revision.Digest
			if c.Location.Kind == remote.Git {
				m.commit = c.Revision.Commit
			}
			if r.Digest != "" && r.Digest != m.digest {
				return errChanged
			}
			return m.run(ctx, c, r.Apply)
		})
		return api.WithSource(source, err)
	})
}

// errChanged reports that a file at an address is not that of a report.
var errChanged = &api.Problem{Status: 409, Code: "source_changed", Detail: "the file at the address has changed since the report", Next: "get a new report, and check it"}

// migrate calls run, which runs a migration for the namespace, and returns the report.
func (h *Handlers) migrate(ctx context.Context, system, namespace string, run func(m *migration) error) (*api.Body[migrationJSON], error) {
	p := account.FromContext(ctx)
	to, err := h.Agents.ResolveNamespace(ctx, p, namespace)
	if err != nil {
		return nil, err
	}
	end, err := h.begin(p.User)
	if err != nil {
		return nil, err
	}
	defer end()
	m := &migration{Handlers: h, p: p, in: to, system: migrate.System(system), skipped: map[string]string{}, ids: map[string]string{}}
	defer m.close()
	if err := run(m); err != nil {
		return nil, err
	}
	return api.BodyOf(m.report(), nil)
}
