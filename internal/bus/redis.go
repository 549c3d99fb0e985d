package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	// maxWaiting bounds the streams of which notes wait to be sent, as while Redis is
	// away. Notes about more are lost.
	maxWaiting = 10000
	// sendAtOnce bounds the notes of one round trip.
	sendAtOnce = 500
	// quietFor is after how long without a word Redis is asked whether it is there; as
	// long again without an answer it is taken to be away.
	quietFor = 3 * time.Second
	// slowest is the longest pause before Redis is tried again.
	slowest = 2 * time.Second
)

// Options are the settings of [Dial]. The zero value is useful.
type Options struct {
	// Channel is what the nodes of one hub have in common; "" is loadout.
	Channel string
	// Logger is told when Redis goes away and comes back; nil discards.
	Logger *slog.Logger
}

// Redis is a bus between nodes, over one channel of a Redis server that every node
// listens to, and so without a moment in which a new subscription is not listened for.
// The notes of a node reach its own subscriptions without Redis. When Redis was away
// all subscriptions get a note of number 0 on its return. Make one with [Dial].
type Redis struct {
	local   *Local
	client  *redis.Client
	channel string
	log     *slog.Logger
	stop    context.CancelFunc
	workers sync.WaitGroup
	wake    chan struct{} // has one in it while something waits

	mu      sync.Mutex
	waiting map[string]int64 // notes to send, by stream
	away    error            // why Redis cannot be listened to
}

var _ Bus = (*Redis)(nil)

// errStarting is why a bus is not healthy at first.
var errStarting = errors.New("redis was not reached yet")

// Dial returns a bus over the server at a redis://, rediss:// or unix:// URL. It does
// not wait for the server: it fails only where the URL cannot be read. The caller closes
// it.
func Dial(address string, opts *Options) (*Redis, error) {
	settings, err := redis.ParseURL(address)
	if err != nil {
		return nil, errors.New("open the bus: the redis:// URL cannot be read") // what is wrong could repeat it
	}
	// Servers that do not know these messages would be asked for them all the time.
	settings.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	settings.PoolSize = 4
	settings.DialTimeout = slowest
	settings.DialerRetries = 1
	logging.Disable()        // it writes to the standard error stream; there is one of it in a process
	settings.MaxRetries = -1 // what is lost is lost; the sender goes on
	ctx, stop := context.WithCancel(context.Background())
	settings.Dialer = until(ctx, redis.NewDialer(settings))
	if opts == nil {
		opts = &Options{}
	}
	r := &Redis{
		local:   New(),
		client:  redis.NewClient(settings),
		channel: opts.Channel,
		log:     opts.Logger,
		stop:    stop,
		wake:    make(chan struct{}, 1),
		waiting: map[string]int64{},
		away:    errStarting,
	}
	if r.channel == "" {
		r.channel = "loadout"
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.workers.Go(func() { r.listen(ctx) })
	r.workers.Go(func() { r.send(ctx) })
	return r, nil
}

// Publish implements [Bus].
func (r *Redis) Publish(stream string, seq int64) {
	r.local.Publish(stream, seq)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wait(Note{stream, seq})
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Subscribe implements [Bus].
func (r *Redis) Subscribe(streams ...string) *Subscription { return r.local.Subscribe(streams...) }

// Healthy implements [Bus].
func (r *Redis) Healthy() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.away
}

// Close implements [Bus]. Notes that were not sent are lost.
func (r *Redis) Close() error {
	r.stop()
	r.workers.Wait()
	err := r.client.Close()
	if err != nil && !errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("close the bus: %w", err)
	}
	return nil
}

// until lets connections last until ctx ends: who waits for an answer over one would
// not notice.
func until(ctx context.Context, dial dialer) dialer {
	return func(c context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(c, network, address)
		if err != nil {
			return nil, err
		}
		return &tied{conn, context.AfterFunc(ctx, func() { conn.Close() })}, nil
	}
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// tied is a connection that something else closes too.
type tied struct {
	net.Conn
	untie func() bool
}

func (t *tied) Close() error {
	if !t.untie() {
		return nil // it is closed
	}
	return t.Conn.Close()
}

// listen hears what other nodes publish, until ctx ends.
func (r *Redis) listen(ctx context.Context) {
	for try := 0; ctx.Err() == nil; try++ {
		heard, err := r.hear(ctx)
		if ctx.Err() != nil {
			return
		}
		if heard {
			try = 0
		}
		r.lost(err)
		pause(ctx, try)
	}
}

// hear listens over one connection until that ends, and reports whether it ever began.
func (r *Redis) hear(ctx context.Context) (heard bool, err error) {
	sub := r.client.Subscribe(ctx, r.channel)
	defer sub.Close()
	asked := false
	for {
		msg, err := sub.ReceiveTimeout(ctx, quietFor)
		switch m := msg.(type) {
		case *redis.Subscription:
			heard = true
			r.found()
		case *redis.Message:
			r.take(m.Payload)
		}
		switch {
		case err == nil:
			asked = false
		case !isTimeout(err) || asked:
			return heard, err
		default:
			asked = true
			if err := sub.Ping(ctx); err != nil {
				return heard, err
			}
		}
	}
}

// found says that Redis is listened to from now on.
func (r *Redis) found() {
	r.mu.Lock()
	was := r.away
	r.away = nil
	r.mu.Unlock()
	if was != nil {
		r.log.Info("redis is listened to")
	}
	r.local.doubt()
}

// lost says that Redis is away.
func (r *Redis) lost(err error) {
	r.mu.Lock()
	was := r.away
	r.away = fmt.Errorf("redis is away: %w", err)
	r.mu.Unlock()
	if was == nil || errors.Is(was, errStarting) {
		r.log.Warn("redis is away; what it would tell is polled", "error", err)
	}
}

// take reads a note as it was sent: the number, a space, the stream. Others may write
// to the channel: what is no note is ignored.
func (r *Redis) take(payload string) {
	if n, ok := parseNote(payload); ok {
		r.local.Publish(n.Stream, n.Seq)
	}
}

func formatNote(n Note) string { return strconv.FormatInt(n.Seq, 10) + " " + n.Stream }

func parseNote(text string) (Note, bool) {
	number, stream, ok := strings.Cut(text, " ")
	seq, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || seq < 0 || number != strconv.FormatInt(seq, 10) {
		return Note{}, false
	}
	return Note{stream, seq}, true
}

// send sends what waits, until ctx ends.
func (r *Redis) send(ctx context.Context) {
	for try := 0; ; {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return
		}
		for notes := r.next(); len(notes) > 0 && ctx.Err() == nil; notes = r.next() {
			if err := r.publish(ctx, notes); err != nil {
				r.again(notes)
				try++
				pause(ctx, try)
				continue
			}
			try = 0
		}
	}
}

// next takes some of what waits.
func (r *Redis) next() []Note {
	r.mu.Lock()
	defer r.mu.Unlock()
	var notes []Note
	for stream, seq := range r.waiting {
		if len(notes) == sendAtOnce {
			break
		}
		notes = append(notes, Note{stream, seq})
		delete(r.waiting, stream)
	}
	return notes
}

// again lets notes that could not be sent wait, behind newer ones of their streams.
func (r *Redis) again(notes []Note) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range notes {
		r.wait(n)
	}
}

// wait lets a note wait, where there is room for one more stream. r.mu is held.
func (r *Redis) wait(n Note) {
	if _, ok := r.waiting[n.Stream]; ok || len(r.waiting) < maxWaiting {
		r.waiting[n.Stream] = max(n.Seq, r.waiting[n.Stream])
	}
}

// publish sends notes in one round trip.
func (r *Redis) publish(ctx context.Context, notes []Note) error {
	_, err := r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, n := range notes {
			p.Publish(ctx, r.channel, formatNote(n))
		}
		return nil
	})
	return err
}

// isTimeout reports whether nothing was heard for some time.
func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// pause waits for longer with every try.
func pause(ctx context.Context, try int) {
	wait := time.NewTimer(min(10*time.Millisecond<<min(try, 10), slowest))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}
