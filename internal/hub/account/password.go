package account

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"

	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/hub/queue"
)

const (
	minPassword = 10   // characters
	maxPassword = 1024 // bytes
	saltSize    = 16
	hashSize    = 32
	// maxWaiting, maxClientWaiting and maxNeighborsWaiting limit how many
	// sign-ins wait: in total, from one client, and from neighboring networks
	// together. Further sign-ins are refused immediately. Known clients are
	// counted separately.
	maxWaiting          = 24
	maxClientWaiting    = 6
	maxNeighborsWaiting = 8
	// maxWait is the maximum time that a sign-in waits.
	maxWait = 8 * time.Second
	// collectAbove is the memory for a hash, in KiB, above which this memory is
	// garbage-collected immediately after use.
	collectAbove = 4 << 10
)

// Maximum parameters accepted in a stored hash.
const (
	maxMemory = 1 << 20 // KiB
	maxTime   = 64
	maxLanes  = 64
)

// ErrBusy is returned if too many sign-ins are in progress, or if a sign-in waited
// for 8 seconds. Respond with status 503 and a Retry-After header of a few seconds.
var ErrBusy = errors.New("too many sign-ins at once; try again in a moment")

// ErrWrongPassword is returned if the password is wrong, or if the user does not
// exist or has no password.
var ErrWrongPassword = errors.New("wrong name or password")

// errHash is returned if a stored hash is malformed. It includes no details,
// because they could contain parts of the hash.
var errHash = errors.New("stored password hash is damaged")

// Cost holds the argon2id parameters. The zero value is invalid.
type Cost struct {
	Memory uint32 // KiB
	Time   uint32 // passes
	Lanes  uint8
}

// DefaultCost returns the second recommendation of RFC 9106, section 4: 64 MiB,
// three passes, four lanes.
func DefaultCost() Cost { return Cost{Memory: 64 << 10, Time: 3, Lanes: 4} }

// Client identifies the user or network for which a password is processed.
// Clients take turns.
type Client struct {
	name, group string
	known       bool
	deadline    time.Time // time until which calls wait; if zero, each call waits up to maxWait
}

// NetworkClient returns the client for a sign-in that starts now from an address.
// The checks of one sign-in wait for at most 8 seconds in total. Set known if the
// user has signed in from the network before: the sign-in is then a client of its
// own, while all other sign-ins from the network share one client. Turns
// alternate between known clients and all others.
func NetworkClient(from netip.Addr, user string, known bool) Client {
	network, deadline := address.CustomerNetwork(from), time.Now().Add(maxWait)
	if known {
		return Client{name: pairKey(user, network), known: true, deadline: deadline}
	}
	return Client{name: network.String(), group: neighborhood(network).String(), deadline: deadline}
}

// UserClient returns the client for requests of a signed-in user.
func UserClient(user UserID) Client { return Client{name: "user " + string(user), known: true} }

// neighborhood returns the enclosing prefix that a provider may assign to a
// single customer: 24 bits of IPv4, 48 bits of IPv6.
func neighborhood(network netip.Prefix) netip.Prefix {
	bits := 24
	if network.Addr().Is6() {
		bits = 48
	}
	around, _ := network.Addr().Prefix(bits) // an invalid address gives the zero prefix
	return around
}

func (c Client) caller() queue.Caller {
	lane := strangersLane
	if c.known {
		lane = knownLane
	}
	return queue.Caller{User: c.name, Group: c.group, Lane: lane}
}

// Lanes of the password queue.
const (
	strangersLane = iota
	knownLane
	lanes
)

// Passwords hashes and verifies passwords. It limits how many passwords it
// processes at once, because each needs a lot of memory. Further passwords wait:
// up to six per client, up to 24 from all known clients, and up to 24 from all
// others. It is safe for concurrent use.
type Passwords struct {
	cost   Cost
	slots  *queue.Queue
	absent string // hash that matches no password
}

// NewPasswords returns a Passwords that computes up to atOnce hashes in parallel.
// Two hashes at the default cost take 128 MiB. NewPasswords panics if the cost is
// invalid or atOnce is less than 1.
func NewPasswords(cost Cost, atOnce int) *Passwords {
	if !cost.isValid() || atOnce < 1 {
		panic(fmt.Sprintf("account: invalid password cost %+v or parallelism %d", cost, atOnce))
	}
	p := &Passwords{cost: cost, slots: queue.NewWith(queue.Options{
		Slots: atOnce, Waiting: maxWaiting, EachUser: maxClientWaiting, EachGroup: maxNeighborsWaiting, Lanes: lanes})}
	p.absent = passwordHash{cost: cost, salt: make([]byte, saltSize), hash: make([]byte, hashSize)}.String()
	return p
}

func (c Cost) isValid() bool {
	return c.Lanes >= 1 && c.Lanes <= maxLanes && c.Time >= 1 && c.Time <= maxTime && c.Memory >= 8*uint32(c.Lanes) && c.Memory <= maxMemory
}

// Hash returns the hash of a password as a PHC string of up to 130 bytes, which
// includes the parameters. It fails with a [*WeakPasswordError] if the password is
// too weak for the user, with [ErrBusy], or with the cause of ctx. If many passwords
// are waiting, clients take turns.
func (p *Passwords) Hash(ctx context.Context, client Client, user, password string) (string, error) {
	password = norm.NFKC.String(password)
	if why := findWeakness(user, password); why != "" {
		return "", &WeakPasswordError{Reason: why}
	}
	h := passwordHash{cost: p.cost, salt: make([]byte, saltSize)}
	_, _ = rand.Read(h.salt) // never fails
	var err error
	h.hash, err = p.derive(ctx, client, h.cost, h.salt, password, hashSize)
	if err != nil {
		return "", err
	}
	return h.String(), nil
}

// Check verifies a password for a client. Clients take turns if there are many
// checks. Check fails with [ErrWrongPassword] if a password does not match a hash,
// with [ErrBusy], or with the cause of ctx. For a user who does not exist or has no
// password, pass the hash "", so that the check takes as long as for other users.
// If rehash is true, the stored hash has a lower cost than the current one; hash
// the password again and store the new hash.
func (p *Passwords) Check(ctx context.Context, client Client, hash, password string) (rehash bool, err error) {
	absent := hash == ""
	if absent {
		hash = p.absent
	}
	h, err := parsePHC(hash)
	if err != nil {
		return false, err
	}
	if len(password) > maxPassword {
		password = "" // does not match, but takes as long
	}
	got, err := p.derive(ctx, client, h.cost, h.salt, norm.NFKC.String(password), len(h.hash))
	if err != nil {
		return false, err
	}
	if same := subtle.ConstantTimeCompare(got, h.hash) == 1; absent || !same {
		return false, ErrWrongPassword
	}
	c := p.cost
	return h.cost.Memory < c.Memory || h.cost.Time < c.Time || h.cost.Lanes < c.Lanes, nil
}

// Stats returns the number of passwords being processed and the number of
// passwords waiting.
func (p *Passwords) Stats() (running, waiting int) { return p.slots.Stats() }

// Acquire waits for the client's turn, as [Passwords.Check] does. The caller must
// call release at the end of the turn. Acquire fails with [ErrBusy] or with the
// cause of ctx.
func (p *Passwords) Acquire(ctx context.Context, client Client) (release func(), err error) {
	deadline := client.deadline
	if deadline.IsZero() {
		deadline = time.Now().Add(maxWait)
	}
	waiting, stop := context.WithDeadlineCause(ctx, deadline, ErrBusy)
	defer stop()
	release, err = p.slots.AcquireFor(waiting, client.caller())
	if errors.Is(err, queue.ErrFull) {
		err = ErrBusy
	}
	return release, err
}

// derive waits for the client's turn and computes a hash.
func (p *Passwords) derive(ctx context.Context, client Client, c Cost, salt []byte, password string, size int) ([]byte, error) {
	release, err := p.Acquire(ctx, client)
	if err != nil {
		return nil, err
	}
	defer release()
	key := argon2.IDKey([]byte(password), salt, c.Time, c.Memory, c.Lanes, uint32(size))
	if c.Memory > collectAbove {
		// Otherwise the next hash allocates its memory before the collector has
		// freed this one's, and several hashes' memory piles up.
		runtime.GC()
	}
	return key, nil
}

// passwordHash is a password hash in the form of a PHC string:
// $argon2id$v=19$m=…,t=…,p=…$SALT$HASH.
type passwordHash struct {
	cost       Cost
	salt, hash []byte
}

func (h passwordHash) String() string {
	b := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, h.cost.Memory, h.cost.Time, h.cost.Lanes, b.EncodeToString(h.salt), b.EncodeToString(h.hash))
}

func parsePHC(text string) (passwordHash, error) {
	f := strings.Split(text, "$")
	if len(text) > 512 || len(f) != 6 || f[0] != "" || f[1] != "argon2id" || f[2] != "v="+strconv.Itoa(argon2.Version) {
		return passwordHash{}, errHash
	}
	var h passwordHash
	var ok bool
	if h.cost, ok = parseCost(f[3]); !ok {
		return passwordHash{}, errHash
	}
	var err1, err2 error
	h.salt, err1 = base64.RawStdEncoding.Strict().DecodeString(f[4])
	h.hash, err2 = base64.RawStdEncoding.Strict().DecodeString(f[5])
	if err1 != nil || err2 != nil || len(h.salt) < 8 || len(h.salt) > 64 || len(h.hash) < 16 || len(h.hash) > 64 || h.String() != text {
		return passwordHash{}, errHash
	}
	return h, nil
}

func parseCost(text string) (Cost, bool) {
	var n [3]uint64
	fields := strings.Split(text, ",")
	if len(fields) != len(n) {
		return Cost{}, false
	}
	for i, name := range []string{"m=", "t=", "p="} {
		value, ok := strings.CutPrefix(fields[i], name)
		var err error
		if n[i], err = strconv.ParseUint(value, 10, 24); !ok || err != nil || n[2] > maxLanes {
			return Cost{}, false
		}
	}
	c := Cost{Memory: uint32(n[0]), Time: uint32(n[1]), Lanes: uint8(n[2])}
	return c, c.isValid()
}

// WeakPasswordError reports why a password is not accepted.
type WeakPasswordError struct{ Reason string }

func (e *WeakPasswordError) Error() string { return "choose another password: " + e.Reason }

// commonPasswords lists passwords, separated by spaces, that are long enough but
// that attackers try first.
const commonPasswords = ` 0123456789 1234567890 12345678910 123456789a 1234567891 123123123123 1q2w3e4r5t 1qaz2wsx3edc q1w2e3r4t5 qwertyuiop qwerty12345 qwerty123456
 asdfghjkl1 zxcvbnm123 password12 password123 password1234 password12345 passw0rd123 p@ssw0rd123 p@ssword123 letmein123 letmein1234 welcome123 welcome1234
 administrator admin12345 admin123456 adminadmin changeme123 changemenow iloveyou12 iloveyou123 sunshine123 football123 superman123 trustno1trustno1 monkey12345
 abcdefghij abcdefghijk abc1234567 abcd123456 a123456789 aa12345678 1111111111 qazwsxedcrfv loadout123 loadoutloadout passwordpassword secretsecret correcthorsebatterystaple `

// findWeakness returns the reason why a password is too weak, or "" if it is not.
func findWeakness(user, password string) string {
	lower := strings.ToLower(password)
	switch {
	case !utf8.ValidString(password):
		return "not valid UTF-8"
	case utf8.RuneCountInString(password) < minPassword:
		return fmt.Sprintf("fewer than %d characters", minPassword)
	case len(password) > maxPassword:
		return fmt.Sprintf("more than %d bytes", maxPassword)
	case user != "" && strings.Trim(strings.ReplaceAll(lower, strings.ToLower(user), ""), "0123456789 .-_!") == "":
		return "too similar to the user name"
	case isSequence(password):
		return "a repeated character or a simple sequence"
	case !strings.ContainsAny(lower, " \n") && strings.Contains(strings.ReplaceAll(commonPasswords, "\n", " "), " "+lower+" "):
		return "too common"
	}
	return ""
}

// isSequence reports whether s repeats a character or counts up or down by one.
func isSequence(s string) bool {
	runes := []rune(s)
	step := runes[1] - runes[0]
	for i := range runes[1:] {
		if runes[i+1]-runes[i] != step {
			return false
		}
	}
	return step >= -1 && step <= 1
}
