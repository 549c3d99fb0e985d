package proxy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/netip"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Injection is a header with a secret that the proxy adds to requests to a
// host, so that scripts do not need the secret. A script's own header with the
// same name is dropped. Options.Allow must also contain a rule for the host.
//
// The header is added to HTTPS requests, which the proxy decrypts for these
// hosts. It is added to plain HTTP requests only if Plain is set. Otherwise a
// script could expose the secret on the network by using http instead of https.
type Injection struct {
	Host   string // rule for ParseRule
	Header string
	Value  string // complete value, including "Bearer " if necessary
	Name   string // name of the secret, for decisions and errors
	Plain  bool
}

type injection struct {
	rule                Rule
	header, value, name string
	plain               bool
}

// String describes the injection without its value.
func (in Injection) String() string { return fmt.Sprintf("secret %q for %q", in.Name, in.Host) }

// GoString is the same as String, so that %#v does not print the value.
func (in Injection) GoString() string { return in.String() }

// forbiddenHeaders are headers that control how a message is transmitted. They
// cannot be set.
var forbiddenHeaders = []string{
	"Host", "Connection", "Proxy-Connection", "Proxy-Authorization", "Keep-Alive", "Te", "Trailer",
	"Transfer-Encoding", "Content-Length", "Upgrade", "Expect",
}

func (in Injection) parse() (injection, error) {
	rule, err := ParseRule(in.Host)
	if err != nil {
		return injection{}, fmt.Errorf("secret %q: %w", in.Name, err)
	}
	header := textproto.CanonicalMIMEHeaderKey(in.Header)
	for _, c := range []byte(header) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"(),/:;<=>?@[\\]{}", c) >= 0 {
			return injection{}, fmt.Errorf("secret %q: invalid header name %q", in.Name, in.Header)
		}
	}
	if header == "" || slices.Contains(forbiddenHeaders, header) {
		return injection{}, fmt.Errorf("secret %q: header %q is not allowed", in.Name, in.Header)
	}
	for _, c := range []byte(in.Value) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return injection{}, fmt.Errorf("secret %q: value contains a control character, such as a newline", in.Name)
		}
	}
	if strings.TrimSpace(in.Value) == "" {
		return injection{}, fmt.Errorf("secret %q: value is empty", in.Name)
	}
	return injection{rule: rule, header: header, value: in.Value, name: in.Name, plain: in.Plain}, nil
}

// injections returns the headers to add to requests to a target.
func (s *Server) injections(t target) []injection {
	var list []injection
	for _, in := range s.secrets {
		if in.rule.Match(t.host, t.port) && (t.tls || in.plain) {
			list = append(list, in)
		}
	}
	return list
}

// intercepts reports whether the proxy decrypts TLS to a target.
func (s *Server) intercepts(t target) bool {
	return slices.ContainsFunc(s.secrets, func(in injection) bool { return in.rule.Match(t.host, t.port) })
}

// CA returns the PEM certificate of the authority that issues certificates for
// hosts with secrets. It returns nil if there are no secrets. Node accepts the
// certificate as an additional root (NODE_EXTRA_CA_CERTS). For programs that
// need all roots in a single file, see [Server.CABundle].
func (s *Server) CA() []byte {
	if s.ca == nil {
		return nil
	}
	return bytes.Clone(s.ca.pem)
}

// rootFiles are the files with root certificates on various systems, in the
// order of crypto/x509.
var rootFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Arch
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora, RHEL 6
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // RHEL 7
	"/etc/ssl/cert.pem",                                 // Alpine, macOS
}

// RootFile returns the path of this system's root certificates, or "" if there
// is none.
func RootFile() string {
	for _, name := range rootFiles {
		if fi, err := os.Stat(name); err == nil && fi.Mode().IsRegular() {
			return name
		}
	}
	return ""
}

// CABundle returns [Server.CA] and the system's root certificates, for
// SSL_CERT_FILE, REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE. It returns an error if
// the system has no file of root certificates. CA alone then works only for
// hosts with secrets.
func (s *Server) CABundle() ([]byte, error) {
	for _, name := range rootFiles {
		roots, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(roots) > 0 && roots[len(roots)-1] != '\n' {
			roots = append(roots, '\n')
		}
		return append(roots, s.CA()...), nil
	}
	return nil, errors.New("no root certificate file on this system")
}

// authority issues certificates for the hosts to which the proxy of a sandbox
// sends secrets. Its key exists only in memory.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	leaf *ecdsa.PrivateKey // key of all issued certificates
	pem  []byte

	mu    sync.Mutex // guards made
	cache map[string]*tls.Certificate
}

const (
	maxLeaves = 100
	leafLife  = 24 * time.Hour
	caLife    = 365 * 24 * time.Hour // longer than any sandbox runs; nothing outside the sandbox trusts it
	clockSkew = time.Hour
)

// newAuthority returns an authority for the hosts of secrets, or for all hosts.
func newAuthority(secrets []injection, all bool) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          newSerial(),
		Subject:               pkix.Name{CommonName: "loadout sandbox"},
		NotBefore:             time.Now().Add(-clockSkew),
		NotAfter:              time.Now().Add(caLife),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	if !all {
		constrain(template, secrets)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{
		cert: cert, key: key, leaf: leaf,
		pem:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		cache: map[string]*tls.Certificate{},
	}, nil
}

// constrain limits a certificate authority to the hosts of secrets, so that a
// leaked key is useless for other hosts.
func constrain(template *x509.Certificate, secrets []injection) {
	template.PermittedDNSDomainsCritical = true
	for _, in := range secrets {
		if a, err := netip.ParseAddr(in.rule.host); err == nil {
			template.PermittedIPRanges = append(template.PermittedIPRanges,
				&net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())})
			continue
		}
		template.PermittedDNSDomains = append(template.PermittedDNSDomains, in.rule.host)
	}
	// A name type without constraints is unrestricted, so constrain each type.
	if template.PermittedDNSDomains == nil {
		template.PermittedDNSDomains = []string{"invalid"}
	}
	if template.PermittedIPRanges == nil {
		template.ExcludedIPRanges = []*net.IPNet{
			{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
			{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
		}
	}
}

// certificate returns a cached or new certificate for a host.
func (a *authority) certificate(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.cache[host]; c != nil && time.Until(c.Leaf.NotAfter) > leafLife/2 {
		return c, nil
	}
	template := &x509.Certificate{
		SerialNumber: newSerial(),
		Subject:      pkix.Name{CommonName: "host of a secret"}, // must differ from the issuer, or the certificate looks self-signed
		NotBefore:    time.Now().Add(-clockSkew),
		NotAfter:     time.Now().Add(leafLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		template.IPAddresses = []net.IP{ip.AsSlice()}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.leaf.Public(), a.key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.leaf, Leaf: cert}
	if len(a.cache) >= maxLeaves { // many hosts of a wildcard rule
		clear(a.cache)
	}
	a.cache[host] = c
	return c, nil
}

func newSerial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return n
}
