package detonation

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

// decoy is a secret without value: a variable or a file of the home directory
// with a random token that identifies it.
type decoy struct {
	name  string // variable, or path such as ~/.netrc
	token string // lower-case letters and digits
	// issuers are the domains that issue the secret. Sending it there is no
	// finding.
	issuers []string
	// named is set if the skill's files name the variable, so the skill may send
	// it to the hosts that its SKILL.md names.
	named bool
}

// tokenLength is the length of a token. Half of a token identifies the decoy.
const tokenLength = 20

// newToken returns a random token.
func newToken() string {
	t := strings.ToLower(rand.Text())
	return t[:tokenLength]
}

// variables lists the decoys in the environment. In a value, % stands for the
// token.
var variables = []struct {
	name, value string
	issuers     []string
}{
	{"AWS_SECRET_ACCESS_KEY", "%wJalrXUtnFEMIK7MDENG", nil},
	{"GITHUB_TOKEN", "ghp_%0123456789abcdef", []string{"github.com", "githubusercontent.com"}},
	{"OPENAI_API_KEY", "sk-proj-%T3BlbkFJ", []string{"openai.com"}},
	{"ANTHROPIC_API_KEY", "sk-ant-api03-%AA", []string{"anthropic.com"}},
	{"NPM_TOKEN", "npm_%0123456789abcdef", []string{"npmjs.org", "npmjs.com"}},
	{"SLACK_BOT_TOKEN", "xoxb-1234567890-%", []string{"slack.com"}},
	{"STRIPE_SECRET_KEY", "sk_live_%", []string{"stripe.com"}},
	{"GOOGLE_API_KEY", "AIzaSy%aaaaaaaaaaaaa", []string{"generativelanguage.googleapis.com", "maps.googleapis.com"}},
	{"DATABASE_URL", "postgres://app:%@db.internal:5432/app", nil},
}

// homeFiles lists the decoys in the home directory. In the content, % stands
// for the token. Files without it are ordinary.
var homeFiles = []struct {
	path, content string
	issuers       []string
}{
	{".ssh/id_rsa", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAABFwAAAAdzc2gtcn\n%NhAAAAAwEAAQAAAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt\n-----END OPENSSH PRIVATE KEY-----\n", nil},
	{".ssh/id_ed25519", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n%QyNTUxOQAAACBzHvvVYvVwq9Qe\n-----END OPENSSH PRIVATE KEY-----\n", nil},
	{".ssh/config", "Host build\n  HostName build.internal\n  User dev\n", nil},
	{".aws/credentials", "[default]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = %wJalrXUtnFEMIK7MDENG\n", nil},
	{".netrc", "machine git.internal\n  login dev\n  password %\n", nil},
	{".npmrc", "//registry.npmjs.org/:_authToken=npm_%0123456789abcdef\n", []string{"npmjs.org", "npmjs.com"}},
	{".pypirc", "[pypi]\nusername = __token__\npassword = pypi-%\n", []string{"pypi.org"}},
	{".git-credentials", "https://dev:ghp_%0123456789abcdef@github.com\n", []string{"github.com"}},
	{".gitconfig", "[user]\n\tname = Dev\n\temail = dev@example.com\n", nil},
	{".docker/config.json", `{"auths": {"registry.internal": {"identitytoken": "%"}}}` + "\n", nil},
	{".kube/config", "apiVersion: v1\nkind: Config\nusers:\n- name: dev\n  user:\n    token: %\n", nil},
	{".config/gh/hosts.yml", "github.com:\n  user: dev\n  oauth_token: gho_%0123456789abcdef\n", []string{"github.com"}},
	{".config/gcloud/application_default_credentials.json", `{"type": "authorized_user", "client_id": "1.apps.googleusercontent.com", "refresh_token": "1//%"}` + "\n", []string{"oauth2.googleapis.com"}},
	{".config/google-chrome/Default/Login Data", "SQLite format 3\x00\x10\x00\x01\x01\x00@  https://bank.example/login dev %\n", nil},
	{".mozilla/firefox/k2x9.default-release/logins.json", `{"logins": [{"hostname": "https://bank.example", "encryptedPassword": "%"}]}` + "\n", nil},
	{".config/solana/id.json", `["%"]` + "\n", nil},
	{".claude/.credentials.json", `{"claudeAiOauth": {"accessToken": "sk-ant-oat01-%"}}` + "\n", []string{"anthropic.com"}},
	{".env", "APP_ENV=production\nJWT_SECRET=%\n", nil},
	{".bash_history", "cd src\nmysql -u app -p%\nls\n", nil},
	{".bashrc", "# ~/.bashrc\nalias ll='ls -l'\n", nil},
	{".profile", "# ~/.profile\n", nil},
	{"Documents/budget.csv", "month,amount\n2026-01,1200\nreference,%\n", nil},
}

// inputFile is the path, relative to the home directory, of the decoy that is passed to
// scripts as an argument.
const (
	inputFile = "in/notes.txt"
	inputName = "the input file"
)

// decoys are the secrets of one detonation.
type decoys struct {
	all  []decoy
	env  map[string]string
	home memory // files of the home directory
	in   memory // input files

	// Limits on the search of what one run did.
	ctx  context.Context
	left int  // bytes that may still be searched
	cut  bool // not everything was searched
}

// startRun resets the limits for the next run.
func (d *decoys) startRun(ctx context.Context) { d.ctx, d.left, d.cut = ctx, maxOfRun, false }

// secretVariable matches names of variables that look like secrets.
var secretVariable = lazyregexp.New(`\b[A-Z][A-Z0-9_]{2,40}(?:KEY|TOKEN|SECRET|PASSWORD|PASS)\b`)

// maxNamed is the maximum number of variables that a skill's files can add.
const maxNamed = 20

// newDecoys returns decoys with new tokens. text is the text of the skill's
// files; a decoy is added for each variable in it that looks like a secret.
func newDecoys(text string) *decoys {
	d := &decoys{env: map[string]string{}, home: memory{}, in: memory{}}
	d.startRun(context.Background())
	named := secretVariable.FindAllString(text, 200)
	for _, v := range variables {
		token := d.add(decoy{name: v.name, issuers: v.issuers, named: strings.Contains(text, v.name)})
		d.env[v.name] = strings.ReplaceAll(v.value, "%", token)
	}
	slices.Sort(named)
	for _, name := range slices.Compact(named) {
		if _, known := d.env[name]; !known && len(d.env) < len(variables)+maxNamed {
			d.env[name] = d.add(decoy{name: name, named: true}) + "0123456789ab"
		}
	}
	for _, f := range homeFiles {
		content := f.content
		if strings.Contains(content, "%") {
			content = strings.ReplaceAll(content, "%", d.add(decoy{name: "~/" + f.path, issuers: f.issuers}))
		}
		d.home[f.path] = []byte(content)
	}
	token := d.add(decoy{name: inputName, named: true})
	d.in["notes.txt"] = fmt.Appendf(nil, "name,value\nalpha,1\nreference,%s\n", token)
	return d
}

func (d *decoys) add(c decoy) (token string) {
	c.token = newToken()
	d.all = append(d.all, c)
	return c.token
}

// trees returns the trees with the decoy files.
func (d *decoys) trees() []sandbox.Tree {
	return []sandbox.Tree{{Path: "/work", FS: d.home, Files: d.home.files()}, {Path: "/work/in", FS: d.in, Files: d.in.files()}}
}

// memory is a file system in memory that maps paths to contents.
type memory map[string][]byte

// Open implements [fs.FS].
func (m memory) Open(name string) (fs.File, error) {
	data, ok := m[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return execution.TextFile(data).Open(name)
}

// files returns the sorted list of files.
func (m memory) files() []sandbox.File {
	var out []sandbox.File
	for name, data := range m {
		out = append(out, sandbox.File{Path: name, Size: int64(len(data)), Exec: strings.HasPrefix(name, shimDir+"/")})
	}
	slices.SortFunc(out, func(a, b sandbox.File) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// hostNames matches the host names in a text.
var hostNames = lazyregexp.New(`(?i)[a-z0-9*_-]+(?:\.[a-z0-9_-]+)+`)

// namedHosts returns the host names and addresses in SKILL.md, in lower case.
func namedHosts(source []byte) map[string]bool {
	out := map[string]bool{}
	for _, h := range hostNames.FindAllString(string(source), 2000) {
		out[strings.TrimPrefix(strings.ToLower(h), "*.")] = true
	}
	return out
}

// isNamed reports whether a host or a domain above it is in a set of names.
func isNamed(names map[string]bool, host string) bool {
	for h := strings.ToLower(host); strings.Contains(h, "."); {
		if names[h] {
			return true
		}
		if isDigits(h) { // an IP address has no domain
			return false
		}
		_, h, _ = strings.Cut(h, ".")
	}
	return false
}

func isDigits(h string) bool { return strings.Trim(h, "0123456789.") == "" }

// isIssuer reports whether a host belongs to the issuer of the decoy.
func (c *decoy) isIssuer(host string) bool {
	return slices.ContainsFunc(c.issuers, func(d string) bool { return host == d || strings.HasSuffix(host, "."+d) })
}

// skillText returns the text of a skill's files, up to a limit.
func skillText(fsys fs.FS, m skill.Manifest) string {
	const most = 1 << 20
	var b strings.Builder
	for _, f := range m {
		if f.Size > most || int64(b.Len())+f.Size > 4*most {
			continue
		}
		data, err := fs.ReadFile(fsys, f.Path)
		if err != nil {
			continue // starting the sandbox reports it
		}
		b.Write(data)
		b.WriteByte('\n')
	}
	return b.String()
}
