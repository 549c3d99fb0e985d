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

// settings say where and how traces are sent.
type settings struct {
	endpoint url.URL // its scheme is http or https
	headers  map[string]string
	tls      *tls.Config // nil for the system's certificates
	gzip     bool
	timeout  time.Duration // of one attempt
}

// environment reads the OTEL_EXPORTER_OTLP_* variables. Each exists for all signals and for
// traces; that for traces wins. A value that cannot be read is logged and ignored, as the
// specification of OpenTelemetry demands.
type environment struct {
	getenv func(string) string
	log    *slog.Logger
}

func (e environment) lookup(signal, name string) string {
	return strings.TrimSpace(e.getenv("OTEL_EXPORTER_OTLP_" + signal + name))
}

// readBoth calls apply with the value of each of the two variables that is set, that for traces
// last.
func (e environment) readBoth(name string, apply func(value string) error) {
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

// readSettings reads all of the variables.
func (e environment) readSettings() settings {
	s := settings{endpoint: url.URL{Scheme: "https", Host: "localhost:4318", Path: "/v1/traces"}, timeout: 10 * time.Second}
	e.readEndpoint(&s.endpoint)
	e.readBoth("HEADERS", func(v string) (err error) {
		s.headers, err = parseHeaders(v)
		return err
	})
	e.readBoth("COMPRESSION", func(v string) error {
		s.gzip = v == "gzip"
		return nil
	})
	e.readBoth("TIMEOUT", func(v string) error {
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
		if signal == "" { // the URL for all signals is a base, that for traces is complete
			endpoint.Path = path.Join(u.Path, "/v1/traces")
		}
		if endpoint.Path = strings.TrimSpace(endpoint.Path); !path.IsAbs(endpoint.Path) {
			endpoint.Path = "/" + endpoint.Path
		}
	}
	e.readBoth("INSECURE", func(v string) error {
		endpoint.Scheme = "https"
		if strings.EqualFold(v, "true") {
			endpoint.Scheme = "http"
		}
		return nil
	})
}

// parseHeaders reads "name=value,name=value" with percent-encoded values. It returns the
// headers that it can read even when it fails on others. The error names no value: values
// may be secrets.
func parseHeaders(list string) (map[string]string, error) {
	headers := map[string]string{}
	var failed []error
	for i, pair := range strings.Split(list, ",") {
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(value)
		if !ok || !httpguts.ValidHeaderFieldName(name) || err != nil {
			failed = append(failed, fmt.Errorf("header %d is not name=value, percent-encoded", i+1))
			continue
		}
		headers[name] = strings.TrimSpace(value)
	}
	return headers, errors.Join(failed...)
}

// readTLS returns nil where the variables name no certificate.
func (e environment) readTLS() *tls.Config {
	c := &tls.Config{}
	e.readBoth("CERTIFICATE", func(file string) error {
		pem, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return fmt.Errorf("no certificate in %s", file)
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
