package config

import (
	"errors"
	"net/netip"
	"net/url"
)

// Hub says how loadout serve runs. A project's file may set none of it.
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

	Private []string
	Runs    int
	Rate    int
	Drain   int
	Log     string
}

// networks checks addresses and networks.
func networks(v any) error {
	for _, text := range *v.(*[]string) {
		if _, err := netip.ParsePrefix(text); err == nil {
			continue
		}
		if _, err := netip.ParseAddr(text); err != nil {
			return errors.New("an entry is neither an address nor a network as 10.1.2.0/24")
		}
	}
	return nil
}

// withoutPassword is the URL of a database as it may be shown.
func withoutPassword(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "…" // what it holds cannot be told
	}
	query := u.Query()
	for name := range query {
		if name == "password" || name == "sslpassword" || name == "passfile" {
			query.Set(name, "xxxxx")
			u.RawQuery = query.Encode()
		}
	}
	if u.User == nil && u.RawQuery == "" {
		return text // as it was written
	}
	return u.Redacted()
}
