package telemetry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// settings configures the endpoint for traces and the requests to it.
type settings struct {
	endpoint url.URL // scheme is http or https
	headers  map[string]string
	tls      *tls.Config // nil selects the system certificates
	gzip     bool
	timeout  time.Duration // timeout of each attempt
}

// check returns an error if the settings contradict each other.
func (s settings) check() error {
	if s.endpoint.Scheme == "http" && s.tls != nil {
		return errors.New("certificates require an https endpoint")
	}
	return nil
}

// environment reads the OTEL_EXPORTER_OTLP_* variables. Each has a variant for traces that
// takes precedence. Invalid values are logged and ignored, as the OpenTelemetry
// specification requires.
type environment struct {
	getenv func(string) string
	log    *slog.Logger
}

func (e environment) lookup(signal, name string) string {
	return strings.TrimSpace(e.getenv("OTEL_EXPORTER_OTLP_" + signal + name))
}

// applyVariable calls apply with the value for all signals and then with the value for traces. It
// skips variables that are not set.
func (e environment) applyVariable(name string, apply func(value string) error) {
	for _, signal := range []string{"", "TRACES_"} {
		if v := e.lookup(signal, name); v != "" {
			e.warn(signal+name, apply(v))
		}
	}
}

func (e environment) warn(name string, err error) {
	if err != nil {
		e.log.Warn("setting for traces ignored", "variable", "OTEL_EXPORTER_OTLP_"+name, "error", err)
	}
}

// readSettings returns the settings, with the specification's defaults.
func (e environment) readSettings() settings {
	s := settings{endpoint: url.URL{Scheme: "https", Host: "localhost:4318", Path: "/v1/traces"}, timeout: 10 * time.Second}
	e.readEndpoint(&s.endpoint)
	e.applyVariable("HEADERS", func(v string) (err error) {
		s.headers, err = parseHeaders(v)
		return err
	})
	e.applyVariable("COMPRESSION", func(v string) error {
		s.gzip = v == "gzip"
		return nil
	})
	e.applyVariable("TIMEOUT", func(v string) error {
		n, err := strconv.Atoi(v)
		if err == nil {
			s.timeout = time.Duration(n) * time.Millisecond
		}
		return err
	})
	s.tls = e.readTLS()
	return s
}

func (e environment) readEndpoint(endpoint *url.URL) {
	for _, signal := range []string{"", "TRACES_"} {
		v := e.lookup(signal, "ENDPOINT")
		if v == "" {
			continue
		}
		u, err := url.Parse(v)
		if err != nil {
			e.warn(signal+"ENDPOINT", err)
			continue
		}
		endpoint.Scheme, endpoint.Host, endpoint.Path = "https", u.Host, u.Path
		if scheme := strings.ToLower(u.Scheme); scheme == "http" || scheme == "unix" {
			endpoint.Scheme = "http"
		}
		if signal == "" { // only the URL for traces includes the path
			endpoint.Path = path.Join(u.Path, "/v1/traces")
		}
		if endpoint.Path = strings.TrimSpace(endpoint.Path); !path.IsAbs(endpoint.Path) {
			endpoint.Path = "/" + endpoint.Path
		}
	}
	e.applyVariable("INSECURE", func(v string) error {
		endpoint.Scheme = "https"
		if strings.EqualFold(v, "true") {
			endpoint.Scheme = "http"
		}
		return nil
	})
}

// parseHeaders parses "name=value,name=value" with percent-encoded values. It returns the
// valid headers even if others are invalid. The error contains no values, because they may
// be secrets.
func parseHeaders(list string) (map[string]string, error) {
	headers := map[string]string{}
	var failed []error
	for i, pair := range strings.Split(list, ",") {
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(value)
		if !ok || !httpguts.ValidHeaderFieldName(name) || err != nil {
			failed = append(failed, fmt.Errorf("header %d: want name=value, percent-encoded", i+1))
			continue
		}
		headers[name] = strings.TrimSpace(value)
	}
	return headers, errors.Join(failed...)
}

// readTLS returns the TLS configuration, or nil if the environment does not specify a
// certificate.
func (e environment) readTLS() *tls.Config {
	c := &tls.Config{}
	e.applyVariable("CERTIFICATE", func(file string) error {
		pem, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return fmt.Errorf("file %s contains no certificate", file)
		}
		c.RootCAs = pool
		return nil
	})
	for _, signal := range []string{"", "TRACES_"} {
		cert, key := e.lookup(signal, "CLIENT_CERTIFICATE"), e.lookup(signal, "CLIENT_KEY")
		if cert == "" || key == "" {
			continue
		}
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			e.warn(signal+"CLIENT_CERTIFICATE", err)
			continue
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if c.RootCAs == nil && c.Certificates == nil {
		return nil
	}
	return c
}
