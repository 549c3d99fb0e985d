package install_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/install"
	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/signature"
)

const day = 24 * time.Hour

// next returns a release signed now.
func next(counter uint64) signature.Release {
	return signature.Release{Counter: counter - 1}.Next(time.Now())
}

// expiring runs a test with a skill whose key expires in 30 days.
func expiring(t *testing.T, test func(t *testing.T, r *repository, to *installed.Dir, o install.Options, key signature.PrivateKey)) {
	synctest.Test(t, func(t *testing.T) {
		r, to, o := newRepository(t), target(t), user(t)
		key := signature.PrivateKey{Private: newKey(t), Expires: time.Now().Add(30 * day)}
		r.publish("pdf", "One.", key, next(1))
		r.install(to, o)
		test(t, r, to, o, key)
	})
}

// After its key expired, a skill gets no updates. What is installed stays valid.
func TestExpiredKey(t *testing.T) {
	expiring(t, func(t *testing.T, r *repository, to *installed.Dir, o install.Options, key signature.PrivateKey) {
		time.Sleep(29 * day)
		r.publish("pdf", "Two.", key, next(2))
		if u := r.update(to, o)["pdf"]; u.Err != nil || body(t, to, "pdf") != "Two." {
			t.Fatalf("before the expiry: %+v", u)
		}
		r.publish("pdf", "Three.", key, next(3)) // dated before the expiry
		time.Sleep(2 * day)
		if u := r.update(to, o)["pdf"]; reasonOf(u.Err) != install.KeyExpired || body(t, to, "pdf") != "Two." {
			t.Errorf("after the expiry: %+v", u)
		}
		// Who has stolen the key cannot extend it.
		for i, expires := range []time.Time{{}, time.Now().Add(365 * day)} {
			r.publish("pdf", "Evil.", signature.PrivateKey{Private: key.Private, Expires: expires}, next(uint64(4+i)))
			if u := r.update(to, o)["pdf"]; reasonOf(u.Err) != install.KeyExpired {
				t.Errorf("extended to %v: %+v", expires, u)
			}
		}
		if err := install.VerifySignature(to.Path()+"/pdf", entryOf(t, to, "pdf"), o.Pins); err != nil {
			t.Errorf("the installed version: %v", err)
		}
	})
}

// A source that somebody froze offers no newer version: updates stop at the
// latest when its key expires, and the installed version still installs from the
// lockfile.
func TestFrozenSource(t *testing.T) {
	expiring(t, func(t *testing.T, r *repository, to *installed.Dir, o install.Options, key signature.PrivateKey) {
		time.Sleep(400 * day)
		if u := r.update(to, o)["pdf"]; u.State != install.Current {
			t.Errorf("update: %+v", u)
		}
		if err := r.frozen(to, o); err != nil {
			t.Errorf("the lockfile: %v", err)
		}
		if p := r.add(target(t), o); len(p.Failures) != 1 || reasonOf(p.Failures[0].Err) != install.KeyExpired {
			t.Errorf("a new installation: %+v", p.Failures)
		}
		lock, err := to.Lockfile()
		if err != nil {
			t.Fatal(err)
		}
		if w := install.Warnings(lock, o.Pins); len(w) != 1 || w[0].Name != "pdf" || !w[0].StopsUpdates || !strings.Contains(w[0].Text, "key expired on 20") {
			t.Errorf("warnings are %+v", w)
		}
		if k, err := o.Pins.Find(entryOf(t, to, "pdf").From.CanonicalURL()); err != nil || k.Expires.After(time.Now()) {
			t.Errorf("the pin does not say that its key expired: %+v, %v", k, err)
		}
	})
}

// A clock that is ahead stops updates, not what is installed.
func TestClockAhead(t *testing.T) {
	expiring(t, func(t *testing.T, r *repository, to *installed.Dir, o install.Options, key signature.PrivateKey) {
		r.publish("pdf", "Two.", key, next(2))
		time.Sleep(3650 * day) // the clock is set ahead
		if u := r.update(to, o)["pdf"]; reasonOf(u.Err) != install.KeyExpired {
			t.Errorf("update: %+v", u)
		}
		if err := r.frozen(to, o); err != nil || body(t, to, "pdf") != "One." {
			t.Errorf("the lockfile: %v", err)
		}
	})
}

// A publisher who states with the old key that a new one replaces it needs no
// new consent. Skills signed by the old key stay valid as they are.
func TestHonestRotation(t *testing.T) {
	expiring(t, func(t *testing.T, r *repository, to *installed.Dir, o install.Options, key signature.PrivateKey) {
		r.publish("tides", "One.", key, next(1))
		r.install(to, o, "tides")
		time.Sleep(10 * day)
		second, err := key.Replace(newKey(t), time.Now().Add(365*day), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		r.publish("pdf", "Two.", second, next(2))
		time.Sleep(100 * day) // this user is late: the old key has expired
		p := r.plan(to, o)
		if _, err := p.CheckUpdates(t.Context(), []string{"pdf", "tides"}); err != nil {
			t.Fatal(err)
		}
		if st := p.Step("pdf"); st == nil || st.Publisher.Replaces != signature.Fingerprint(publicOf(t, key.Private)) {
			t.Fatalf("the plan does not say that the key was replaced: %+v", st)
		}
		if err := p.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		e := entryOf(t, to, "pdf")
		if e.Key != publicOf(t, second.Private) || body(t, to, "pdf") != "Two." {
			t.Errorf("entry %+v", e)
		}
		for _, name := range []string{"pdf", "tides"} {
			if err := install.VerifySignature(to.Path()+"/"+name, entryOf(t, to, name), o.Pins); err != nil {
				t.Errorf("verify %s: %v", name, err)
			}
		}
		r.commit(map[string]string{"README.md": "changed"})
		if u := r.update(to, o)["tides"]; u.State != install.Current {
			t.Errorf("a skill of the old key: %+v", u)
		}
		// The old key has no say any more.
		r.publish("pdf", "Evil.", signature.PrivateKey{Private: key.Private}, next(9))
		if _, ok := errors.AsType[*signature.ChangedKeyError](r.update(to, o)["pdf"].Err); !ok {
			t.Error("the replaced key signs another version")
		}
		r.publish("tides", "Evil.", signature.PrivateKey{Private: key.Private}, next(9))
		if _, ok := errors.AsType[*signature.ChangedKeyError](r.update(to, o)["tides"].Err); !ok {
			t.Error("the replaced key signs another version of a skill that it signed")
		}
	})
}

// Another key without a statement of the old one is refused, with a statement of
// another key, too, and with one made after the old key expired.
func TestReplacedKeyAndForgedRotation(t *testing.T) {
	expiring(t, func(t *testing.T, r *repository, to *installed.Dir, o install.Options, key signature.PrivateKey) {
		refused := func(what string, evil signature.PrivateKey) {
			t.Helper()
			r.publish("pdf", what, evil, next(2))
			u := r.update(to, o)["pdf"]
			if _, ok := errors.AsType[*signature.ChangedKeyError](u.Err); !ok || body(t, to, "pdf") != "One." {
				t.Errorf("%s: %+v", what, u)
			}
		}
		refused("no statement", signature.PrivateKey{Private: newKey(t)})
		mine := signature.PrivateKey{Private: newKey(t)}
		forged, err := mine.Replace(newKey(t), time.Time{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		refused("a statement of another key", forged)
		time.Sleep(31 * day)
		stolen := signature.PrivateKey{Private: key.Private} // says that it never expires
		late, err := stolen.Replace(newKey(t), time.Time{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		refused("a statement after the expiry", late)
	})
}
