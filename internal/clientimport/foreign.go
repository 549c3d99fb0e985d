package clientimport

import (
	"context"
	"slices"

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/secrets"
)

// Definition is a server that a program other than an MCP client defines.
type Definition struct {
	Name  string
	Value any // configuration as decoded from JSON
}

// PlanDefinitions plans to add servers of the program origin to the user's
// servers file. It replaces secret values with references, but Apply does not
// store the values: Unset lists the names that the user must set. If another
// server has the name of a server, the new one is named after origin too. The
// plan has no record, and PlanUndo does not undo it.
func PlanDefinitions(serversFile string, store *secrets.Store, origin string, servers []Definition) (*Plan, error) {
	file, err := readServersFile(serversFile)
	if err != nil {
		return nil, err
	}
	im := &Importer{client: clientconfig.Client{Name: origin, Title: origin}, found: &clientconfig.Servers{}, servers: file, secrets: store, namesOnly: true}
	p := &Plan{Action: None, values: map[string]string{}, applyTo: im.applyServers, step: step{Servers: map[string]string{}}}
	for _, d := range servers {
		if isOwnEntry(d.Name, d.Value) {
			p.Servers = append(p.Servers, Server{Name: d.Name, State: Skipped, Problems: []string{"it is an entry for Loadout itself"}})
			continue
		}
		if err := im.planServer(p, clientServer{name: d.Name, value: d.Value}); err != nil {
			return nil, err
		}
	}
	clear(p.values)
	im.noteSecretsAndLogins(p)
	slices.Sort(p.Unset)
	if len(p.step.Servers) > 0 {
		p.Action = Import
	}
	return p, nil
}

// applyServers writes the servers file.
func (im *Importer) applyServers(context.Context, *Plan) error {
	if len(im.servers.byName) == 0 {
		return nil
	}
	data, err := im.servers.encode()
	if err != nil {
		return err
	}
	return im.servers.write(data)
}
