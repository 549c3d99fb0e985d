package clientimport

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/clientconfig"
	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/secrets"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// Definition is a server that a program other than an MCP client defines.
type Definition struct {
	Name  string
	Value any // configuration as decoded from JSON
}

// PlanDefinitions plans to add servers of the program origin to the user's
// servers file. It replaces secret values with references, but Apply does not
// store the values: Unset lists the names of the secrets that the user must
// set. These names start with origin, and are neither set already nor used by
// another server. If a server's name is already in use, origin is appended to
// it; at most 20 servers get one name in this way. The plan is not recorded, so
// PlanUndo cannot undo it.
//
// The user did not write the definitions. PlanDefinitions therefore skips
// servers that would receive the user's values: those that refer to secrets, to
// inputs, to platform values, to the user's fields other than name and id, to
// files of environment variables, or to environment variables other than HOME
// and PATH. It also skips servers with more than 200 secrets, and those with a
// description that [DescribeServer] truncates. If ctx is done, it returns the
// cause.
//
// A caller that stores the servers elsewhere uses the Config of each server of the
// plan. serversFile is then "" and store nil.
func PlanDefinitions(ctx context.Context, serversFile string, store *secrets.Store, origin string, servers []Definition) (*Plan, error) {
	file, err := readServersFile(serversFile)
	if err != nil {
		return nil, err
	}
	names := newForeignNames(origin, file, store)
	im := &Importer{client: clientconfig.Client{Name: origin, Title: origin}, found: &clientconfig.Servers{}, servers: file, foreign: names}
	p := &Plan{Action: None, applyTo: im.applyServers, step: step{Servers: map[string]string{}}}
	for _, d := range servers {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if isOwnEntry(d.Name, d.Value) {
			p.Servers = append(p.Servers, Server{Name: d.Name, State: Skipped, Problems: []string{"it is an entry for Loadout itself"}})
			continue
		}
		if err := im.planServer(p, clientServer{name: d.Name, value: d.Value}); err != nil {
			return nil, err
		}
	}
	im.noteSecretsAndLogins(p, names.isSet)
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

// foreignReference describes the first reference to one of the user's values in
// the configuration of another program's server. It returns "" if there is none.
// A server with such a reference must not be added.
func foreignReference(c *upstream.Config) string {
	const next = "; to use it anyway, add it yourself"
	if c.EnvFile != "" {
		return "it reads a file of environment variables" + next
	}
	for _, u := range c.Variables() {
		what := ""
		switch {
		case u.Kind == upstream.FromSecret:
			what = "your secret "
		case u.Kind == upstream.FromInput:
			what = "the input "
		case u.Kind == upstream.FromPlatform:
			what = "the platform value "
		case u.Kind == upstream.FromUser && u.Name != "name" && u.Name != "id":
			what = "your user field "
		case u.Kind == upstream.FromEnv && u.Name != "HOME" && u.Name != "PATH":
			what = "your environment variable "
		default:
			continue
		}
		return fmt.Sprintf("its %s refers to %s%s, which %s would receive%s", u.Where, what, u.Name, u.Target, next)
	}
	return ""
}

// restrictForeign changes a server of another program by removing settings that
// only the user may choose: a safety level below HIGH, which would allow calls
// without approval, and connecting when Loadout starts. It returns descriptions
// of what it removed.
func restrictForeign(c *upstream.Config) []string {
	var out []string
	if level, _ := policy.ParseLevel(c.Safety); c.Safety != "" && level < policy.High {
		out = append(out, "its safety level "+c.Safety+" is not used; set it yourself")
		c.Safety = ""
	}
	if c.AtStart {
		out = append(out, "it connects when it is used, not at the start")
		c.AtStart = false
	}
	return out
}

var plainArg = lazyregexp.New(`^[A-Za-z0-9_@%+=:,./{}$-]+$`)

// MaxDescription is the maximum length of the description of a server, in bytes.
const MaxDescription = 1000

// DescribeServer describes what a server does when it starts: the command that
// it runs, with its variables, or the hosts to which it connects, and the user
// and platform values that it gets. The secrets in c must already have been
// replaced. DescribeServer omits the paths of URLs, because they may contain
// tokens. complete is false if the description is truncated.
func DescribeServer(c *upstream.Config) (text string, complete bool) {
	if len(c.URLs) > 0 {
		text = "connects to " + c.Target()
	} else {
		text = describeCommand(c)
	}
	text += describeReferences(c)
	return printable.Text(text, MaxDescription), len(text) <= MaxDescription
}

func describeCommand(c *upstream.Config) string {
	quote := func(s string) string {
		if plainArg.MatchString(s) {
			return s
		}
		return strconv.Quote(s)
	}
	var words []string
	for _, key := range slices.Sorted(maps.Keys(c.Env)) {
		words = append(words, quote(key+"="+c.Env[key]))
	}
	for _, arg := range append([]string{c.Command}, c.Args...) {
		words = append(words, quote(arg))
	}
	text := "runs " + strings.Join(words, " ")
	if c.Dir != "" {
		text += " in " + quote(c.Dir)
	}
	return text
}

// describeReferences lists the user and platform values to which a server
// refers.
func describeReferences(c *upstream.Config) string {
	var b strings.Builder
	for _, u := range c.Variables() {
		switch u.Kind {
		case upstream.FromUser:
			b.WriteString(", with your user." + u.Name + " in its " + u.Where)
		case upstream.FromPlatform:
			b.WriteString(", with " + u.Name + " in its " + u.Where)
		}
	}
	return b.String()
}
