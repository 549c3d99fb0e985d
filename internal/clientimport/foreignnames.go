package clientimport

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/secrets"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// Limits on servers of other programs.
const (
	maxSecrets  = 200 // secrets of one server
	maxSameName = 20  // servers with one name, besides the suffix
)

// foreignNames chooses names for the servers of another program and for their
// secrets. A name of a secret is never that of a secret that the user has set,
// or that another server uses: two servers share a secret only if they have the
// same value for it and the same target.
type foreignNames struct {
	origin string // the program
	file   *serversFile
	store  *secrets.Store // nil if no secret is set

	forms   map[*upstream.Config]serverForm // of servers in the file
	names   map[foreignSecret]string
	values  map[string]secretValue // by the names in names
	numbers map[string]int         // last numbers of names, by foreignSecret.base
	set     map[string]bool        // names of secrets that are set; see load
	used    map[string]bool        // names of secrets to which servers in the file refer
}

// secretValue is a hash of the value of a secret and of the server's target. The
// user sets the value later, and no other target must receive it.
type secretValue [sha256.Size]byte

// foreignSecret is a secret in a configuration.
type foreignSecret struct {
	base  string // name of the secret, without a number
	value secretValue
}

func newForeignNames(origin string, file *serversFile, store *secrets.Store) *foreignNames {
	return &foreignNames{origin: origin, file: file, store: store, forms: map[*upstream.Config]serverForm{}, names: map[foreignSecret]string{},
		values: map[string]secretValue{}, numbers: map[string]int{}}
}

// plan replaces the secrets in c with references, and sets its name. If an
// earlier import has already added c to the servers file, the state is Present,
// and c has the names that are used there.
func (f *foreignNames) plan(c *upstream.Config) (moved []MovedSecret, state string, err error) {
	target := foreignTarget(c)
	found := map[string]foreignSecret{} // by placeholder
	var order []string
	moved, err = moveSecrets(c, func(name, value string) (string, error) {
		if len(found) == maxSecrets {
			return "", &skippedError{fmt.Sprintf("too many secrets (limit %d)", maxSecrets)}
		}
		placeholder := fmt.Sprintf("\xff%d", len(found)) // c contains only valid UTF-8
		found[placeholder] = foreignSecret{deriveSecretName(f.origin, name), sha256.Sum256([]byte(value + target))}
		order = append(order, placeholder)
		return placeholder, nil
	})
	if err != nil {
		return nil, Skipped, err
	}
	names, state := map[string]string{}, Added
	first, form := c.Name, formOf(c)
	for i := 0; ; i++ {
		if i == maxSameName {
			return nil, Skipped, &skippedError{fmt.Sprintf("too many servers with this name (limit %d)", maxSameName)}
		}
		c.Name = numberedName(first, f.origin, i)
		have := f.file.byName[c.Name]
		if have == nil {
			break
		}
		if same := f.match(form, found, have); same != nil {
			names, state = same, Present
			break
		}
	}
	for _, placeholder := range order {
		if state == Added {
			if names[placeholder], err = f.choose(found[placeholder]); err != nil {
				return nil, Skipped, &Error{SecretStore, err}
			}
		}
		f.assign(found[placeholder], names[placeholder])
	}
	for i := range moved {
		moved[i].Secret = names[moved[i].Secret]
	}
	*c = *renameSecrets(c, func(name string) string { return cmp.Or(names[name], name) })
	return moved, state, nil
}

// foreignTarget returns a hash of the command that c runs or the addresses to which
// it connects.
func foreignTarget(c *upstream.Config) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q", c.Command, c.Args, c.Dir, c.Env, c.URLs))
	return string(sum[:])
}

// choose returns the name of a secret.
func (f *foreignNames) choose(s foreignSecret) (string, error) {
	if name, ok := f.names[s]; ok {
		return name, nil
	}
	if err := f.load(); err != nil {
		return "", err
	}
	for {
		f.numbers[s.base]++
		name := numberedSecret(s.base, f.numbers[s.base])
		if _, planned := f.values[name]; !planned && !f.set[name] && !f.used[name] {
			return name, nil
		}
	}
}

// assign records the name of a secret.
func (f *foreignNames) assign(s foreignSecret, name string) {
	f.names[s], f.values[name] = name, s.value
}

// load sets f.set and f.used.
func (f *foreignNames) load() error {
	if f.set != nil {
		return nil
	}
	set, used := map[string]bool{}, map[string]bool{}
	if f.store != nil {
		all, err := f.store.List()
		if err != nil {
			return err
		}
		for _, s := range all {
			set[s.Name] = true
		}
	}
	for _, c := range f.file.byName {
		for _, u := range c.Variables() {
			if u.Kind == upstream.FromSecret {
				used[u.Name] = true
			}
		}
	}
	f.set, f.used = set, used
	return nil
}

// isSet reports whether the user has set a secret.
func (f *foreignNames) isSet(name string) bool { return f.load() == nil && f.set[name] }

// serverForm is a configuration without its name and the names of its secrets.
type serverForm struct {
	digest string
	names  []string // of the secrets, in the order of the references
}

func formOf(c *upstream.Config) serverForm {
	var f serverForm
	plain := renameSecrets(c, func(name string) string {
		f.names = append(f.names, name)
		return ""
	})
	plain.Name = ""
	f.digest = plain.Digest()
	return f
}

// match returns the names of a configuration's secrets in a server of the file, by
// placeholder. It returns nil if that server does not come from this configuration.
func (f *foreignNames) match(form serverForm, found map[string]foreignSecret, have *upstream.Config) map[string]string {
	other, ok := f.forms[have]
	if !ok {
		other = formOf(have)
		f.forms[have] = other
	}
	if form.digest != other.digest || len(form.names) != len(other.names) {
		return nil
	}
	names, values := map[string]string{}, map[string]secretValue{}
	for i, placeholder := range form.names {
		name := other.names[i]
		s, moved := found[placeholder]
		if !moved { // text that only resembles a reference
			if name != placeholder {
				return nil
			}
			continue
		}
		for _, known := range []map[string]secretValue{f.values, values} {
			if v, ok := known[name]; ok && v != s.value {
				return nil
			}
		}
		if !isNumbered(name, s.base) {
			return nil
		}
		names[placeholder], values[name] = name, s.value
	}
	return names
}

// isNumbered reports whether name is a name that numberedSecret returns for base.
func isNumbered(name, base string) bool {
	if name == base {
		return true
	}
	i, err := strconv.Atoi(strings.TrimPrefix(name, base+"_"))
	return err == nil && i > 1 && name == numberedSecret(base, i)
}

// secretReference matches a reference to a secret, or an escaped one, which
// starts with $$.
var secretReference = lazyregexp.New(`\$?\$\{\{secrets\.[^{}]+\}\}`)

// renameSecrets returns a copy of c with the names of its secrets replaced. It
// replaces them where moveSecrets inserts references, in a fixed order.
func renameSecrets(c *upstream.Config, rename func(name string) string) *upstream.Config {
	const begin, end = "${{secrets.", "}}"
	text := func(s string) string {
		return secretReference.ReplaceAllStringFunc(s, func(ref string) string {
			if name, ok := strings.CutPrefix(ref, begin); ok {
				return begin + rename(strings.TrimSuffix(name, end)) + end
			}
			return ref
		})
	}
	out := *c
	for _, m := range []*map[string]string{&out.Env, &out.Headers} {
		*m = maps.Clone(*m)
		for _, key := range slices.Sorted(maps.Keys(*m)) {
			(*m)[key] = text((*m)[key])
		}
	}
	for _, l := range []*[]string{&out.Args, &out.URLs} {
		*l = slices.Clone(*l)
		for i, s := range *l {
			(*l)[i] = text(s)
		}
	}
	if c.OAuth != nil {
		client := *c.OAuth
		client.Secret = text(client.Secret)
		out.OAuth = &client
	}
	return &out
}
