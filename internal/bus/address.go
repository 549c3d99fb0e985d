package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"
)

// address is the address of a Redis server, with the settings for connections to
// it.
type address struct {
	network, address string // as for [net.Dial]
	options          []redis.DialOption
}

// errMalformed does not repeat the URL, which may contain a password.
var errMalformed = errors.New("malformed redis:// URL; want redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], rediss://… for TLS, or unix:///SOCKET[?db=DATABASE]")

// parseAddress parses a redis://, rediss:// or unix:// URL.
func parseAddress(text string) (address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" {
		return address{}, errMalformed
	}
	query := u.Query()
	database := query.Get("db")
	a := address{network: "tcp"}
	switch u.Scheme {
	case "redis", "rediss":
		if path := strings.Trim(u.Path, "/"); path != "" {
			database = path
		}
		host, port := u.Hostname(), u.Port()
		if host == "" {
			host = "localhost"
		}
		if port == "" {
			port = "6379"
		}
		a.address = net.JoinHostPort(host, port)
		if u.Scheme == "rediss" {
			unverified, _ := strconv.ParseBool(query.Get("skip_verify"))
			a.options = append(a.options, redis.DialUseTLS(true), redis.DialTLSConfig(&tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: unverified}))
			query.Del("skip_verify")
		}
	case "unix":
		if u.Path == "" {
			return address{}, errMalformed
		}
		a.network, a.address = "unix", u.Path
	default:
		return address{}, errMalformed
	}
	query.Del("db")
	for name := range query {
		return address{}, fmt.Errorf("unsupported parameter %q in the redis:// URL; remove it", name)
	}
	if database != "" {
		n, err := strconv.Atoi(database)
		if err != nil || n < 0 {
			return address{}, errMalformed
		}
		a.options = append(a.options, redis.DialDatabase(n))
	}
	password, _ := u.User.Password()
	a.options = append(a.options, redis.DialUsername(u.User.Username()), redis.DialPassword(password), redis.DialTLSHandshakeTimeout(maxPause),
		redis.DialReadTimeout(requestTimeout), redis.DialWriteTimeout(requestTimeout))
	return a, nil
}

// dial connects to the server. The connection is closed when ctx is done, so that
// a goroutine that waits for a response notices that.
func (a address) dial(ctx context.Context) (redis.Conn, error) {
	dialer := net.Dialer{Timeout: maxPause}
	dial := redis.DialContextFunc(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &boundConn{conn, context.AfterFunc(ctx, func() { conn.Close() })}, nil
	})
	return redis.DialContext(ctx, a.network, a.address, append(a.options[:len(a.options):len(a.options)], dial)...)
}

// boundConn is a connection that is also closed when a context is done. Close
// calls unbind to release the context.
type boundConn struct {
	net.Conn
	unbind func() bool
}

func (t *boundConn) Close() error {
	if !t.unbind() {
		return nil // closed already
	}
	return t.Conn.Close()
}
