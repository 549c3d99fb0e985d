package policy

// DecodeGrant reads the content of a file of a grant.
var DecodeGrant = decodeGrant

// Path is the file of a grant.
func (s *FileStore) Path(id string) string { return s.path(id) }

// GrantID is the id that a grant has to have.
func GrantID(g Grant) string { return grantID(g.Principal, g.Subject, g.Scope, g.Session) }

// MaxGrantBytes limits the file of a grant.
const MaxGrantBytes = maxGrantBytes
