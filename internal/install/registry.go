package install

import (
	"errors"
	"net"
	"net/url"
)

// filesOf are where an index keeps its files, if that is another host.
var filesOf = map[string]string{"pypi.org": "files.pythonhosted.org:443"}

// registry is where packages come from.
type registry struct {
	url   string   // without credentials
	host  string   // without port
	plain string   // host:port where it is reached without TLS, else empty
	allow []string // what has to be reached for it
}

// parseRegistry reads the address of a registry. What it reports does not hold
// the address, which may hold a password.
func parseRegistry(what, address, otherwise string) (registry, error) {
	if address == "" {
		address = otherwise
	}
	fault := func(reason string) (registry, error) {
		return registry{}, errors.New("the address of the " + what + " " + reason)
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return fault("is not an address")
	case u.Scheme != "https" && u.Scheme != "http":
		return fault("begins with neither https:// nor http://")
	case u.Hostname() == "" || u.Opaque != "":
		return fault("names no host")
	case u.User != nil:
		return fault("holds credentials, which installers are not given")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return fault("has more than a path")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	r := registry{url: u.String(), host: u.Hostname(), allow: []string{net.JoinHostPort(u.Hostname(), port)}}
	if u.Scheme == "http" {
		r.plain = r.allow[0]
	}
	if files := filesOf[r.host]; files != "" {
		r.allow = append(r.allow, files)
	}
	return r, nil
}
