package clientimport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/secrets"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

// Actions of a plan.
const (
	None   = "none"
	Import = "import"
	Undo   = "undo"
)

// Plan describes an import or an undo. Nothing is written until [Plan.Apply].
type Plan struct {
	Action       string
	Servers      []Server
	Secrets      []MovedSecret
	Unset        []string // names of secrets that the user must set
	OtherServers int      // number of servers in other projects, which are not imported
	Backup       string   // backup of the client's file that Apply creates
	Diff         string   // diff of the client's file, without secrets
	Notes        []string
	Next         string // tells the user how the client rereads the changed file

	change  *clientconfig.Change // change of the client's file; nil if it does not change
	step    step
	values  map[string]string // secret values by name
	applyTo func(context.Context, *Plan) error
}

// States of a server in a plan.
const (
	Added   = "add"
	Present = "present" // the servers file already contains the same server
	Skipped = "skipped" // not imported; Problems has the reasons
	Removed = "removed" // removed by an undo
	Kept    = "kept"    // not removed by an undo, because it changed or another client uses it
)

// Server describes what an import or an undo does with a server.
type Server struct {
	Name      string   `json:"name"`              // name in the client's file
	Project   string   `json:"project,omitempty"` // project to which the server is limited in the client
	As        string   `json:"as,omitempty"`      // name in the servers file
	Transport string   `json:"transport,omitempty"`
	State     string   `json:"state"`
	Login     bool     `json:"login"` // whether the server may require a sign-in
	Does      string   `json:"-"`     // the command that it runs, or the hosts to which it connects; without secrets
	Problems  []string `json:"problems,omitempty"`
	// Secrets are those of Plan.Secrets that this server refers to.
	Secrets []MovedSecret `json:"-"`
	// Config is the configuration to add, without the values of secrets. It is nil
	// unless State is Added.
	Config *upstream.Config `json:"-"`
}

// Apply writes the changes in an order that is safe to interrupt. It succeeds
// only once.
func (p *Plan) Apply(ctx context.Context) error { return p.applyTo(ctx, p) }

// ChangedServers returns the names of the servers that an import adds to the
// servers file. For an undo, it returns the names of all servers in the plan.
func (p *Plan) ChangedServers() []string {
	if p.Action != Undo {
		return slices.Sorted(maps.Keys(p.step.Servers))
	}
	var names []string
	for _, s := range p.Servers {
		names = append(names, s.Name)
	}
	return names
}

// Selection selects the servers to import.
type Selection struct {
	Entry       clientconfig.Entry // entry that replaces the imported ones
	AllProjects bool               // import the servers of all projects, not only of the current one
	KeepFile    bool               // do not change the client's file
}

// PlanImport plans to import the selected servers of the client.
func (im *Importer) PlanImport(s Selection) (*Plan, error) {
	if s.AllProjects && im.found.Projects() == nil {
		return nil, errorf(Projects, "%s does not support servers per project", im.client.Title)
	}
	p := &Plan{Action: None, values: map[string]string{}, applyTo: im.applyImport,
		step: step{Original: im.found.Data, Intact: s.KeepFile, Entry: s.Entry, Servers: map[string]string{}}}
	servers, others := im.collectServers(s.AllProjects)
	p.OtherServers = others
	for _, f := range servers {
		if err := im.planServer(p, f); err != nil {
			return nil, err
		}
	}
	if !s.KeepFile && len(p.step.Names)+len(p.step.Local) > 0 {
		change, err := clientconfig.PlanImport(im.target, p.step.Names, p.step.Local, s.Entry)
		if err != nil {
			return nil, &Error{ClientFile, err}
		}
		p.setChange(change)
		p.step.Backup, p.Backup = change.Backup, change.Backup
	}
	if len(p.step.Servers) > 0 || p.change != nil && p.change.Action != clientconfig.None {
		p.Action = Import
	}
	im.noteSecretsAndLogins(p, func(name string) bool {
		_, err := im.secrets.Get(name)
		return err == nil
	})
	if s.KeepFile && len(p.step.Servers) > 0 {
		p.Notes = append(p.Notes, im.client.Title+" still starts these servers itself")
	}
	return p, nil
}

// setChange stores the change to the client's file in the plan, and sets the
// fields derived from it.
func (p *Plan) setChange(c *clientconfig.Change) {
	p.change, p.Diff, p.Next = c, c.Diff(), c.Next
	p.Notes = append(p.Notes, c.Notes...)
}

// planServer adds one server of the client to the plan.
func (im *Importer) planServer(p *Plan, f clientServer) error {
	c, inputs, findings := parseClientServer(im.client.Name, f.name, f.value, im.found.Inputs)
	s := Server{Name: f.name, Project: f.project, State: Skipped}
	for _, d := range findings {
		if d.Severity != skill.Info {
			s.Problems = append(s.Problems, d.Message)
		}
	}
	if c == nil { // the entry remains in the client's file
		p.Servers = append(p.Servers, s)
		return nil
	}
	setWorkDir(c, f.project)
	var moved []MovedSecret
	var err error
	if im.foreign == nil {
		moved, s.State, err = im.planOwn(p, c, inputs, im.nameSuffix(f))
	} else if reason := foreignReference(c); reason != "" {
		err = &skippedError{reason}
	} else {
		s.Problems = append(s.Problems, restrictForeign(c)...)
		moved, s.State, err = im.foreign.plan(c)
	}
	does, complete := DescribeServer(c)
	if err == nil && im.foreign != nil && !complete {
		err = &skippedError{fmt.Sprintf("what it runs or receives is too long to show (limit %d bytes); to use it anyway, add it yourself", MaxDescription)}
	}
	if skipped, ok := errors.AsType[*skippedError](err); ok {
		s.State = Skipped
		s.Problems = append(s.Problems, skipped.reason)
		p.Servers = append(p.Servers, s)
		return nil
	}
	if err != nil {
		return err
	}
	s.As, s.Transport, s.Login, s.Does = c.Name, c.Type, mayNeedLogin(c), does
	if s.State == Present {
		p.step.Shares = append(p.step.Shares, c.Name)
	} else {
		s.Config = c
		im.servers.add(c)
		p.step.Servers[c.Name] = c.Digest()
	}
	if f.project == "" {
		p.step.Names = append(p.step.Names, f.name)
	} else {
		p.step.Local = append(p.step.Local, clientconfig.ProjectEntry{Project: f.project, Name: f.name})
		p.noteProject(s)
	}
	s.Secrets = moved
	p.Servers, p.Secrets = append(p.Servers, s), append(p.Secrets, moved...)
	return nil
}

// skippedError is the reason why one server is not imported.
type skippedError struct{ reason string }

func (e *skippedError) Error() string { return e.reason }

// planOwn moves the secrets of one of the user's servers to p.values, and sets
// its name. The returned state is Added or Present.
func (im *Importer) planOwn(p *Plan, c *upstream.Config, inputs []upstream.Input, suffix string) (moved []MovedSecret, state string, err error) {
	moved, err = moveSecrets(c, func(name, value string) (string, error) {
		free, err := im.chooseSecretName(name, value, p.values)
		if err == nil {
			p.values[free] = value
		}
		return free, err
	})
	if err != nil {
		return nil, Skipped, err
	}
	moved = append(moved, replaceInputs(c, inputs)...)
	return moved, im.chooseName(c, suffix), nil
}

// chooseName gives a server an unused name, unless the servers file already
// contains the same server. It returns the state of the server.
func (im *Importer) chooseName(c *upstream.Config, suffix string) (state string) {
	first := c.Name
	for i := 0; ; i++ {
		c.Name = numberedName(first, suffix, i)
		have := im.servers.byName[c.Name]
		if have == nil {
			return Added
		}
		if have.Digest() == c.Digest() {
			return Present
		}
	}
}

// numberedName returns the name of a server if i other candidates are already
// in use.
func numberedName(first, suffix string, i int) string {
	switch i {
	case 0:
		return first
	case 1:
		return first + "-" + suffix
	}
	return fmt.Sprintf("%s-%s-%d", first, suffix, i)
}

// chooseSecretName returns the name of the secret for a value. If that name
// already has a different value, in planned or in the store, it appends a
// number.
func (im *Importer) chooseSecretName(name, value string, planned map[string]string) (string, error) {
	for i := 1; ; i++ {
		n := numberedSecret(name, i)
		have, ok := planned[n]
		if !ok {
			stored, err := im.secrets.Get(n)
			if err != nil && !errors.Is(err, secrets.ErrNotSet) {
				return "", &Error{SecretStore, err}
			}
			have = stored
		}
		if have == "" || have == value {
			return n, nil
		}
	}
}

func numberedSecret(name string, i int) string {
	if i == 1 {
		return name
	}
	return fmt.Sprint(name, "_", i)
}

// noteSecretsAndLogins adds to the plan the secrets that the user must set, and
// notes about sign-ins. isSet reports whether the user has set a secret.
func (im *Importer) noteSecretsAndLogins(p *Plan, isSet func(name string) bool) {
	seen := map[string]bool{}
	for _, m := range p.Secrets {
		if !seen[m.Secret] && p.values[m.Secret] == "" && !isSet(m.Secret) {
			p.Unset = append(p.Unset, m.Secret)
		}
		seen[m.Secret] = true
	}
	for _, s := range p.Servers {
		if s.Login && s.State == Added {
			p.Notes = append(p.Notes, "server "+s.As+" may need a sign-in; the sign-in of "+im.client.Title+" is not imported")
		}
	}
}

// applyImport applies an import. It changes the client's file last, so that the
// servers are always configured in at least one file.
func (im *Importer) applyImport(ctx context.Context, p *Plan) error {
	data, err := im.servers.encode()
	if err != nil {
		return err
	}
	if p.step.Secrets, err = im.setSecrets(ctx, p.values); err != nil {
		return err
	}
	im.record.Steps = append(im.record.Steps, p.step)
	if err := im.saveRecord(ctx); err != nil {
		return err
	}
	if len(p.step.Servers) > 0 {
		if err := im.servers.write(data); err != nil {
			return err
		}
	}
	return p.applyChange()
}

// setSecrets stores the secrets that have no value yet and returns their names.
func (im *Importer) setSecrets(ctx context.Context, values map[string]string) ([]string, error) {
	fresh := map[string]string{}
	for name, value := range values {
		if _, err := im.secrets.Get(name); err != nil {
			fresh[name] = value
		}
	}
	if len(fresh) > 0 {
		if err := im.secrets.SetAll(ctx, fresh); err != nil {
			return nil, &Error{SecretStore, err}
		}
	}
	return slices.Sorted(maps.Keys(fresh)), nil
}

// applyChange changes the client's file.
func (p *Plan) applyChange() error {
	if p.change == nil {
		return nil
	}
	if err := p.change.Apply(); err != nil {
		return &Error{ClientFile, err}
	}
	return nil
}
