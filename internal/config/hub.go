package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout/internal/address"
)

// Hub configures a hub. A project file cannot set any of these keys.
type Hub struct {
	Address  string
	Data     string
	Database string
	Redis    string
	KeyFile  string

	Accounts          bool
	Admin             string
	AdminPasswordFile string
	Public            string
	Proxies           []string

	OIDCIssuer   string
	OIDCClient   string
	OIDCSecret   string
	OIDCScopes   []string
	OIDCName     string
	OIDCGroups   string
	OIDCEveryone bool

	Private    []string
	ImportFrom []string
	Runs       int
	Titles     string
	Sharing    string
	ShareLinks bool
	ShareDays  int

	Invitations string

	Rate    int
	MinDisk int
	Drain   int
	Log     string
}

// SharingMode returns who can open shared conversations: off, members or links. It
// includes the earlier setting ShareLinks, which Sharing overrides.
func (h *Hub) SharingMode() string {
	switch {
	case h.Sharing != "":
		return h.Sharing
	case h.ShareLinks:
		return "links"
	}
	return "members"
}

// checkImportSources returns an error unless each item of v is an absolute path
// or an ssh:// URL with a host.
func checkImportSources(v any) error {
	for _, text := range *v.(*[]string) {
		host, ssh := strings.CutPrefix(text, "ssh://")
		if ssh && host != "" && host == strings.ToLower(host) && !strings.ContainsAny(host, "/@: ") || !ssh && filepath.IsAbs(text) {
			continue
		}
		return fmt.Errorf("%.100q: expected an absolute path, or ssh://HOST in lower case", text)
	}
	return nil
}

// checkNetworks returns an error unless each item of v is an address or a
// network.
func checkNetworks(v any) error {
	if _, err := address.ParsePrefixes(*v.(*[]string)); err != nil {
		return fmt.Errorf("%w: expected addresses or networks such as 10.1.2.0/24", err)
	}
	return nil
}

// redactPassword removes the password from a database URL.
func redactPassword(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "…" // cannot be parsed, so the password's position is unknown
	}
	query := u.Query()
	for name := range query {
		if name == "password" || name == "sslpassword" || name == "passfile" {
			query.Set(name, "xxxxx")
			u.RawQuery = query.Encode()
		}
	}
	if u.User == nil && u.RawQuery == "" {
		return text // no password found
	}
	return u.Redacted()
}
