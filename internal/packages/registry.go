package packages

import (
	"errors"
	"net"
	"net/url"
)

// fileHosts maps the host of a package index to the host that serves its files,
// if they differ.
var fileHosts = map[string]string{"pypi.org": "files.pythonhosted.org:443"}

// registry is a server from which packages are downloaded.
type registry struct {
	url       string   // URL without credentials
	host      string   // host without the port
	plainHost string   // host:port for access without TLS, or ""
	allow     []string // hosts that must be reachable
}

// parseRegistry parses the URL of a registry, or fallback if address is empty.
// Its errors do not contain the URL, which may contain a password.
func parseRegistry(what, address, fallback string) (registry, error) {
	if address == "" {
		address = fallback
	}
	fault := func(reason string) (registry, error) {
		return registry{}, errors.New("invalid " + what + " URL: " + reason)
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return fault("not a URL")
	case u.Scheme != "https" && u.Scheme != "http":
		return fault("scheme is neither https nor http")
	case u.Hostname() == "" || u.Opaque != "":
		return fault("missing host")
	case u.User != nil:
		return fault("contains credentials, which are not supported")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return fault("contains a query or fragment")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	r := registry{url: u.String(), host: u.Hostname(), allow: []string{net.JoinHostPort(u.Hostname(), port)}}
	if u.Scheme == "http" {
		r.plainHost = r.allow[0]
	}
	if files := fileHosts[r.host]; files != "" {
		r.allow = append(r.allow, files)
	}
	return r, nil
}
