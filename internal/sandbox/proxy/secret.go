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

// Injection is a header that the proxy sets on requests to a host, so that the
// script that sends them does not hold the value. What the script sends under that
// name is dropped. A host needs a rule in Options.Allow as well.
//
// The header is added to HTTPS, which the proxy opens for these hosts. To plain HTTP
// it is added only with Plain: else a script could have a secret sent where everybody
// on the way reads it, by leaving an s away.
type Injection struct {
	Host   string // a rule as ParseRule reads it
	Header string
	Value  string // whole, with "Bearer " where that is needed
	Name   string // of the secret, for decisions and errors
	Plain  bool
}

type injection struct {
	rule                Rule
	header, value, name string
	plain               bool
}

// String keeps the value out of what is printed.
func (in Injection) String() string { return fmt.Sprintf("secret %q for %q", in.Name, in.Host) }

// GoString is String.
func (in Injection) GoString() string { return in.String() }

// notInjected are headers that are not a value for the host but say how the message
// itself is sent.
var notInjected = []string{
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
			return injection{}, fmt.Errorf("secret %q: %q is not the name of a header", in.Name, in.Header)
		}
	}
	if header == "" || slices.Contains(notInjected, header) {
		return injection{}, fmt.Errorf("secret %q: the header %q cannot be set", in.Name, in.Header)
	}
	for _, c := range []byte(in.Value) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return injection{}, fmt.Errorf("secret %q: the value has control characters, perhaps a line end", in.Name)
		}
	}
	if strings.TrimSpace(in.Value) == "" {
		return injection{}, fmt.Errorf("secret %q: the value is empty", in.Name)
	}
	return injection{rule: rule, header: header, value: in.Value, name: in.Name, plain: in.Plain}, nil
}

// injections are those that apply to requests for a target.
func (s *Server) injections(t target) []injection {
	var list []injection
	for _, in := range s.secrets {
		if in.rule.Match(t.host, t.port) && (t.tls || in.plain) {
			list = append(list, in)
		}
	}
	return list
}

// intercepts reports whether TLS to a target is opened.
func (s *Server) intercepts(t target) bool {
	return slices.ContainsFunc(s.secrets, func(in injection) bool { return in.rule.Match(t.host, t.port) })
}

// CA is the certificate, in PEM, of the authority that signs for hosts with secrets.
// It is nil without secrets. Node takes it as an addition (NODE_EXTRA_CA_CERTS);
// for what replaces the roots by a file, see [Server.CABundle].
func (s *Server) CA() []byte {
	if s.ca == nil {
		return nil
	}
	return bytes.Clone(s.ca.pem)
}

// rootFiles are where systems keep their roots in one file, in the order of
// crypto/x509.
var rootFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Arch
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora, RHEL 6
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // RHEL 7
	"/etc/ssl/cert.pem",                                 // Alpine, macOS
}

// RootFile is the file in which this system keeps its roots, "" where it keeps
// them in none.
func RootFile() string {
	for _, name := range rootFiles {
		if fi, err := os.Stat(name); err == nil && fi.Mode().IsRegular() {
			return name
		}
	}
	return ""
}

// CABundle is [Server.CA] and the roots of the system, for SSL_CERT_FILE,
// REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE. A system that keeps its roots in no file is an
// error; CA alone then serves for the hosts with secrets and for no other.
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
	return nil, errors.New("this system has no file of root certificates")
}

// authority signs certificates for the hosts with secrets of one sandbox. Its key
// is in memory only.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	leaf *ecdsa.PrivateKey // of all certificates
	pem  []byte

	mu   sync.Mutex // guards made
	made map[string]*tls.Certificate
}

const (
	maxLeaves = 100
	leafLife  = 24 * time.Hour
	caLife    = 365 * 24 * time.Hour // a sandbox of a server may live long; nothing else trusts it
	clockSkew = time.Hour
)

func newAuthority(secrets []injection) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:                serial(),
		Subject:                     pkix.Name{CommonName: "loadout sandbox"},
		NotBefore:                   time.Now().Add(-clockSkew),
		NotAfter:                    time.Now().Add(caLife),
		KeyUsage:                    x509.KeyUsageCertSign,
		BasicConstraintsValid:       true,
		IsCA:                        true,
		MaxPathLenZero:              true,
		PermittedDNSDomainsCritical: true,
	}
	// Should the key ever leak, it is good for no other host.
	for _, in := range secrets {
		if a, err := netip.ParseAddr(in.rule.host); err == nil {
			template.PermittedIPRanges = append(template.PermittedIPRanges,
				&net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())})
			continue
		}
		template.PermittedDNSDomains = append(template.PermittedDNSDomains, in.rule.host)
	}
	// A kind of name that has no constraint is free.
	if template.PermittedDNSDomains == nil {
		template.PermittedDNSDomains = []string{"invalid"}
	}
	if template.PermittedIPRanges == nil {
		template.ExcludedIPRanges = []*net.IPNet{
			{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
			{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
		}
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
		pem:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		made: map[string]*tls.Certificate{},
	}, nil
}

// certificate is one for a host, made now or not long ago.
func (a *authority) certificate(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.made[host]; c != nil && time.Until(c.Leaf.NotAfter) > leafLife/2 {
		return c, nil
	}
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: "host of a secret"}, // not the issuer's: that reads as self-signed
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
	if len(a.made) >= maxLeaves { // a wildcard and a script that tries names
		clear(a.made)
	}
	a.made[host] = c
	return c, nil
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return n
}
