package install

import (
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/signature"
)

// Warning describes a problem with the signature of an installed skill, such as
// an expired key.
type Warning struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// StopsUpdates is set if no update can be installed.
	StopsUpdates bool `json:"stopsUpdates"`
}

// Warnings returns the warnings about the signed skills in a lockfile, sorted by
// name. None of them prevents the use of an installed skill. pins may be nil.
func Warnings(lock *installed.Lockfile, pins *signature.Pins) []Warning {
	expiries := map[string]time.Time{} // of pinned keys
	if pins != nil {
		all, _ := pins.All() // commands that need the keys report an error
		for _, k := range all {
			expiries[k.Key] = k.Expires
		}
	}
	out := []Warning{}
	for _, name := range lock.Names() {
		e := lock.Skills[name]
		w := Warning{Name: name}
		switch expires := expiries[e.Key]; {
		case e.Key == "":
			continue
		case e.From.Kind != remote.Local && !expires.IsZero() && !time.Now().Before(expires):
			w.Text, w.StopsUpdates = "key expired on "+expires.Format(time.DateOnly)+", so there are no updates until its owner replaces it", true
		case e.Signed.After(time.Now().Add(clockTolerance)):
			w.Text, w.StopsUpdates = "signed on "+e.Signed.Format(time.DateOnly)+", later than the clock of this machine", true
		case e.Counter < e.HighestCounter:
			w.Text = fmt.Sprintf("version %d, older than version %d, which was seen before", e.Counter, e.HighestCounter)
		case e.Counter == 0:
			w.Text = "no history: an older version would not be detected"
		default:
			continue
		}
		out = append(out, w)
	}
	return out
}
