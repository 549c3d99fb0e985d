package migrateapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/clientimport"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/migrate"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

// maxDocumentBytes is the maximum total size of the documents, as in a request that
// applies documents: all of them are stored in one transaction.
const maxDocumentBytes = 1 << 20

// documents stores the documents of the upload, and its other servers as documents of
// the kind MCPServer. It never changes existing documents.
type documents struct {
	*migration
	all    []*uploadedDocument
	size   int             // of the texts of all documents that are not lost, in bytes
	denied []agents.Change // changes refused by a dry run because the user may not make them
}

type uploadedDocument struct {
	*agents.Document
	item    migrate.Item
	does    string   // of item, if it is new
	details []string // of item, besides the warnings about the document
	secrets []string // names of the secrets that a new server or Model needs
}

// Compare implements [migrate.Documents].
func (d *documents) Compare(ctx context.Context, p *migrate.Plan) (items []migrate.Item, unset []string, err error) {
	if err := d.addServers(ctx, p); err != nil {
		return nil, nil, err
	}
	for _, f := range p.Resources {
		if err := d.addFile(f); err != nil {
			return nil, nil, err
		}
	}
	if err := d.findNew(ctx, true); err != nil {
		return nil, nil, err
	}
	items, unset = d.report()
	return items, unset, nil
}

// report returns the items of the documents, and the names of the secrets that new
// ones need.
func (d *documents) report() (items []migrate.Item, unset []string) {
	for _, doc := range d.all {
		doc.item.Clip()
		items = append(items, doc.item)
		if doc.item.New {
			unset = append(unset, doc.secrets...)
		}
	}
	slices.Sort(unset)
	return items, slices.Compact(unset)
}

// uploadedSkills returns the skills of the upload that are stored before the documents,
// as in [agents.Document].
func (d *documents) uploadedSkills() map[string]string {
	out := map[string]string{}
	for _, s := range d.plan.Drafts {
		out[s.Name] = ""
	}
	for _, s := range d.skills {
		if s.item.Outcome != migrate.Lost {
			out[s.Name] = s.digest
		}
	}
	return out
}

// addServers adds the servers that do not belong to a document.
func (d *documents) addServers(ctx context.Context, p *migrate.Plan) error {
	var all []clientimport.Definition
	var from []string
	for _, s := range p.Servers {
		if !s.InDocument {
			all, from = append(all, s.Definition), append(from, s.From)
		}
	}
	plan, err := clientimport.PlanDefinitions(ctx, "", nil, string(p.System), all)
	if err != nil {
		return err
	}
	for i, s := range plan.Servers { // in the order of the definitions
		doc := &uploadedDocument{item: migrate.ServerItem(s, from[i])}
		d.all = append(d.all, doc)
		if s.Config == nil {
			continue // lost
		}
		doc.does, doc.details = doc.item.Does, doc.item.Details
		config, err := clientimport.EncodeConfig(s.Config)
		var text []byte
		if err == nil {
			text, err = json.Marshal(map[string]any{"apiVersion": agents.APIVersion, "kind": agents.ServerKind, "metadata": map[string]string{"name": s.As}, "spec": config})
		}
		if err != nil {
			doc.markLost("its configuration cannot be encoded")
			continue
		}
		if !d.fits(text) {
			doc.markLost("%s", tooLarge)
			continue
		}
		doc.Document = agents.Parse(text, "server.json")[0]
		for _, m := range s.Secrets {
			doc.secrets = append(doc.secrets, m.Secret)
		}
	}
	return nil
}

func (d *documents) addFile(f migrate.ResourceFile) error {
	data, err := fs.ReadFile(d.files.Files(), f.From)
	if err != nil {
		return fmt.Errorf("read documents: %w", err)
	}
	if !d.fits(data) {
		lost := &uploadedDocument{item: migrate.Item{Kind: migrate.File, Name: path.Base(f.From), From: f.From}}
		lost.markLost("%s", tooLarge)
		d.all = append(d.all, lost)
		return nil
	}
	for _, doc := range agents.Parse(data, f.From) {
		name := cmp.Or(strings.TrimSpace(doc.Kind+" "+doc.Name), f.From)
		uploaded := &uploadedDocument{Document: doc, item: migrate.Item{Kind: migrate.Document, Name: name, From: f.From}}
		uploaded.describe()
		d.all = append(d.all, uploaded)
	}
	return nil
}

// describe sets what the servers in the document do, or where conversations with the
// Model are sent, and the names of the secrets that they need. The document is lost if
// a server contains a secret in plain text, or if its description is too long.
func (d *uploadedDocument) describe() {
	var does []string
	for _, c := range d.Servers() {
		if where := clientimport.PlainSecrets(c); len(where) > 0 {
			d.markLost("server %q: %s is a secret in plain text; store it as a secret of the hub and use ${{secrets.NAME}}", c.Name, where[0])
			return
		}
		text, complete := clientimport.DescribeServer(c)
		if !complete {
			d.markLost("what server %q runs or receives is too long to show (limit %d bytes)", c.Name, clientimport.MaxDescription)
			return
		}
		does = append(does, text)
		for _, v := range c.Variables() {
			if v.Kind == upstream.FromSecret {
				d.secrets = append(d.secrets, v.Name)
			}
		}
	}
	if m, ok := d.Spec.(*agents.Model); ok {
		does = append(does, printable.Text("sends conversations to "+cmp.Or(m.Host(), m.Vendor), 1000))
		if name := m.SecretName(); name != "" {
			d.secrets = append(d.secrets, name)
		}
	}
	d.does = strings.Join(does, "; ")
}

// tooLarge is the reason that is reported for a document above the size limit.
const tooLarge = "documents and servers are too large (limit 1 MiB in total); migrate some of the files at a time"

// fits reports whether the text of documents fits. If so, it adds its size.
func (d *documents) fits(text []byte) bool {
	if len(text) > maxDocumentBytes-d.size {
		return false
	}
	d.size += len(text)
	return true
}

// findNew determines by dry runs which documents are new. If skillsComing is set, the
// skills of the upload will be added first. If a document is refused, others that refer to it
// use an existing one with its name; without one, the next dry run refuses them too.
func (d *documents) findNew(ctx context.Context, skillsComing bool) error {
	skills := d.uploadedSkills()
	files := map[[2]string]string{} // by kind and name of the documents
	count := 0
	for _, doc := range d.all {
		if doc.Document == nil || doc.item.Outcome == migrate.Lost {
			continue
		}
		doc.Namespace, doc.MustBeNew, doc.BaseGeneration = string(d.in), true, 0
		if doc.ComingSkills = nil; skillsComing {
			doc.ComingSkills = skills
		}
		_, taken := skills[doc.Name]
		id := [2]string{doc.Kind, doc.Name}
		file, twice := files[id]
		switch {
		case twice && doc.Name != "":
			doc.markLost("duplicate of the %s with this name in %s; remove one", doc.Kind, file)
		case count == agents.MaxDocuments:
			doc.markLost("too many documents (limit %d)", agents.MaxDocuments)
		case doc.Kind == agents.SkillKind && taken:
			doc.markLost("the files have another skill with this name")
		default:
			files[id] = doc.item.From
			count++
		}
	}
	for {
		docs, parsed := d.candidates()
		if len(docs) == 0 {
			d.compareLost()
			return nil
		}
		result, err := d.Agents.Apply(ctx, d.p, parsed, true)
		if err != nil {
			return err
		}
		lost := false
		for i, c := range result.Changes {
			if docs[i].update(c) {
				lost, d.denied = true, append(d.denied, c)
			}
		}
		if !lost {
			d.compareLost()
			return nil
		}
	}
}

// compareLost adds to documents that refer to lost documents or skills that they use
// existing ones with these names.
func (d *documents) compareLost() {
	lost, kept := map[[2]string]bool{}, map[[2]string]bool{} // by kind and name
	for _, s := range d.skills {
		if s.item.Outcome == migrate.Lost && s.id != "" {
			lost[[2]string{agents.SkillKind, s.Name}] = true
		}
	}
	for name := range d.uploadedSkills() {
		kept[[2]string{agents.SkillKind, name}] = true
	}
	for _, doc := range d.all {
		switch {
		case doc.Document == nil:
		case doc.item.Outcome == migrate.Lost:
			lost[[2]string{doc.Kind, doc.Name}] = true
		default:
			kept[[2]string{doc.Kind, doc.Name}] = true
		}
	}
	for _, doc := range d.all {
		if doc.Document == nil || doc.item.Outcome == migrate.Lost {
			continue
		}
		for kind, ref := range doc.References() {
			id := [2]string{kind, ref.Name}
			detail := fmt.Sprintf("uses the existing %s %s, not that of the files", kind, ref.Name)
			if (ref.Namespace == "" || ref.Namespace == "default") && lost[id] && !kept[id] && !slices.Contains(doc.item.Details, detail) {
				doc.item.Outcome, doc.item.Details = migrate.Changed, append(doc.item.Details, detail)
			}
		}
	}
}

// candidates returns the documents that may be new.
func (d *documents) candidates() (docs []*uploadedDocument, parsed []*agents.Document) {
	for _, doc := range d.all {
		if doc.Document != nil && doc.item.Outcome != migrate.Lost {
			docs, parsed = append(docs, doc), append(parsed, doc.Document)
		}
	}
	return docs, parsed
}

// update records the outcome of a dry run. It reports whether the document is lost.
func (d *uploadedDocument) update(c agents.Change) bool {
	d.item.New, d.item.Outcome, d.item.Does, d.item.Details = c.Outcome == agents.Created, migrate.Kept, "", slices.Clone(d.details)
	if d.item.New {
		d.item.Does = d.does
	}
	for _, f := range c.Findings {
		if f.Severity == skill.Warning {
			d.item.Details = append(d.item.Details, f.Message)
		}
	}
	if len(d.item.Details) > 0 {
		d.item.Outcome = migrate.Changed
	}
	switch c.Outcome {
	case agents.Skipped:
		d.markLost("a hub has no documents of this kind")
	case agents.Refused:
		d.markLost("%s", refusal(c))
	}
	return d.item.Outcome == migrate.Lost
}

// refusal returns the first error of a refused document.
func refusal(c agents.Change) string {
	for _, f := range c.Findings {
		if f.Severity == skill.Error {
			return strings.TrimSuffix(f.Message+"; "+f.Fix, "; ")
		}
	}
	return "it is invalid"
}

func (d *uploadedDocument) markLost(format string, args ...any) {
	markLost(&d.item, fmt.Sprintf(format, args...))
}

// Apply implements [migrate.Documents]. It compares the documents again, because some
// skills of the upload may not have been added. Only then does it record denied
// permissions in the audit log.
func (d *documents) Apply(ctx context.Context) (written, problems []string, err error) {
	recorded := len(d.denied)
	if err := d.findNew(ctx, false); err != nil {
		return nil, nil, err
	}
	if err := d.Agents.RecordDenials(ctx, d.p, d.denied[recorded:]); err != nil {
		return nil, nil, err
	}
	docs, parsed := d.candidates()
	if len(docs) == 0 {
		return nil, nil, nil
	}
	result, err := d.Agents.Apply(ctx, d.p, parsed, false)
	if err != nil {
		return nil, nil, err
	}
	for i, c := range result.Changes {
		switch doc := docs[i]; {
		case c.Outcome == agents.Refused:
			doc.markLost("%s", refusal(c))
			problems = append(problems, doc.item.Name+" was not added: "+refusal(c))
		case !result.Committed && doc.item.New:
			doc.markLost("it was not added, because another document was refused; migrate the files again")
		case result.Committed && c.Outcome == agents.Created:
			written = append(written, doc.item.Name)
		}
		if result.Committed && c.Kind == agents.SkillKind && c.Outcome != agents.Unchanged {
			d.Library.NotifyChanged()
		}
	}
	return written, problems, nil
}
