package account

// NewInvitation returns the secret part of a new invitation's link, the prefix that
// identifies the invitation, which is not secret, and the hash to store.
func NewInvitation() (link, prefix string, hash []byte) {
	link = newToken(inviteMarker)
	prefix, _ = InvitationPrefix(link)
	return link, prefix, hashToken(link)
}

// InvitationPrefix returns the prefix that identifies an invitation, or false if the
// link is malformed.
func InvitationPrefix(link string) (string, bool) { return tokenPrefix(inviteMarker, link) }

// MatchesInvitation reports whether a link has the hash of an invitation. Its running
// time does not depend on the hash.
func MatchesInvitation(link string, hash []byte) bool { return hasHash(link, hash) }
