package packages

import (
	"errors"
	"net"
	"net/url"
)

// filesOf maps index hosts to their file hosts if they differ.
var filesOf = map[string]string{"pypi.org": "files.pythonhosted.org:443"}

// registry is a source of packages.
type registry struct {
	url   string   // without credentials
	host  string   // without port
	plain string   // host:port for access without TLS, else empty
	allow []string // hosts that it needs
}

// parseRegistry parses the URL of a registry. Its errors do not contain the
// URL, which may contain a password.
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
