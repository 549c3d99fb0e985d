package scan

import (
	"bytes"
	"maps"
)

// maxStatements bounds how far values are followed in one block.
const maxStatements = 20_000

// value is what is known of a variable: where what it holds comes from.
type value struct {
	environment, file, encoded bool
	secrets                    map[string]bool // names in the environment
}

func (v *value) from(o value) {
	v.environment = v.environment || o.environment
	v.file = v.file || o.file
	v.encoded = v.encoded || o.encoded
	if len(o.secrets) > 0 && len(v.secrets) < 16 {
		if v.secrets == nil {
			v.secrets = map[string]bool{}
		}
		maps.Copy(v.secrets, o.secrets)
	}
}

func (v *value) matters() bool { return v.environment || v.file || len(v.secrets) > 0 }

// flows follows secrets through the statements of a block, from top to bottom,
// without regard to branches and functions, to where they are sent or gathered.
// A key that is presented in a header is used for what it is for.
func (s *scanner) flows(name string, data []byte, b *block) {
	variables := map[string]value{}
	for _, u := range b.units[:min(len(b.units), maxStatements)] {
		statement := b.code[u.start:u.end]
		if len(variables) == 0 && !speaksOfSecrets(statement) {
			continue
		}
		v := valueOf(presented().ReplaceAll(statement, []byte(" ")), variables)
		if v.matters() {
			v.encoded = v.encoded || encodes().Match(statement)
			s.flow(name, data, b, u, v)
		}
		m := assigns().FindSubmatch(statement)
		for i := 1; i < len(m); i++ {
			if len(m[i]) == 0 {
				continue
			}
			if v.matters() {
				variables[string(m[i])] = v
			} else {
				delete(variables, string(m[i]))
			}
		}
	}
}

// speaksOfSecrets reports whether a statement may read keys: it is cheap.
func speaksOfSecrets(statement []byte) bool {
	for _, word := range sourceWords {
		if bytes.Contains(statement, word) {
			return true
		}
	}
	return false
}

var sourceWords = [][]byte{[]byte("environ"), []byte("process.env"), []byte("getenv"), []byte(".ssh"), []byte(".aws"), []byte(".gnupg"), []byte("id_"), []byte("netrc"),
	[]byte(".kube"), []byte(".docker"), []byte("gcloud"), []byte(".git-cred"), []byte(".npmrc"), []byte(".pypirc"), []byte("/etc/shadow"), []byte("ogin"), []byte("cookies"), []byte("_history"), []byte("wallet.dat")}

// valueOf is what a statement reads, itself or by the variables that it names.
func valueOf(statement []byte, variables map[string]value) value {
	var v value
	v.environment = wholeEnvironment().Match(statement)
	v.file = keptFile().Match(statement)
	for _, m := range oneSecret().FindAllSubmatch(statement, 16) {
		v.from(value{secrets: map[string]bool{string(m[1]): true}})
	}
	if len(variables) > 0 {
		for _, id := range identifier().FindAll(statement, 400) {
			if known, ok := variables[string(id)]; ok {
				v.from(known)
			}
		}
	}
	return v
}

// flow reports a statement that sends or gathers what matters.
func (s *scanner) flow(name string, data []byte, b *block, u span, v value) {
	statement := b.code[u.start:u.end]
	rule, where := "", []int(nil)
	if m := network().FindIndex(statement); m != nil && (v.environment || v.file || v.encoded) {
		rule, where = "exfil-flow", m
	} else if m := serialises().FindIndex(statement); m != nil && len(v.secrets) >= 2 {
		rule, where = "credentials-gathered", m
	}
	if rule == "" {
		return
	}
	from := b.start + u.start + where[0]
	to := min(from+lineLength(data[from:]), b.start+u.end)
	s.addAs(rule, b.severity(byID()[rule], data, u, where[0], where[1]), placeOf(name, data, from, to))
}
