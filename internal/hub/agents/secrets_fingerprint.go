package agents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

// Fingerprint returns a hash that changes when a secret or grant of a principal or
// its groups changes. Callers that cache secret values compare fingerprints to
// detect outdated values.
func (s *Secrets) Fingerprint(ctx context.Context, p account.Principal) (string, error) {
	h := sha256.New()
	a := s.r.newActor(p)
	for _, in := range a.visibleNamespaces() {
		owner := NamespaceOwner(in)
		secrets, err := a.Tables.Secrets.List(ctx, string(owner))
		if err != nil {
			return "", err
		}
		grants, err := a.listSecretGrants(ctx, owner)
		if err != nil {
			return "", err
		}
		for _, v := range secrets {
			fmt.Fprintf(h, "%q %q %d\n", owner, v.Name, v.Updated.UnixNano())
		}
		for _, g := range grants {
			fmt.Fprintf(h, "%d %q\n", g.Seq, g.ID)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
