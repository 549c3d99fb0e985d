package policy

// GrantID is the id that a grant has to have.
func GrantID(g Grant) string { return grantID(g.Principal, g.Subject, g.Scope, g.Session) }

// MaxGrantBytes limits the file of a grant.
const MaxGrantBytes = maxGrantBytes
