package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// maxPending is the maximum number of streams with unsent notifications,
	// for example while Redis is down. Notifications for further streams are
	// dropped.
	maxPending = 10000
	// sendBatch is the maximum number of notifications per round trip.
	sendBatch = 500
	// pingInterval is the time between pings. If nothing arrives for twice
	// this time, Redis is considered disconnected.
	pingInterval = 3 * time.Second
	// maxPause is the maximum delay between reconnection attempts, and the timeout
	// for connecting in each attempt.
	maxPause = 2 * time.Second
	// requestTimeout is the time that a request may take.
	requestTimeout = 3 * time.Second
)

// Options configures [Dial]. The zero value selects the defaults.
type Options struct {
	// Channel is the Redis channel shared by a hub's nodes. "" means loadout.
	Channel string
	// Logger logs disconnects and reconnects. If it is nil, nothing is logged.
	Logger *slog.Logger
}

// Redis is a bus between nodes over a channel of a Redis server. Every node
// always listens to this channel, so a new subscription misses nothing.
// Notifications reach subscriptions on the same node without passing through
// Redis. After a reconnect, all subscriptions get a notification with number 0.
// Create it with [Dial].
type Redis struct {
	local   *Local
	server  address
	channel string
	log     *slog.Logger
	stop    context.CancelFunc
	workers sync.WaitGroup
	wake    chan struct{} // holds one value while notifications are pending

	mu      sync.Mutex
	pending map[string]int64 // notifications to send, by stream
	connErr error            // why Redis is disconnected
}

var _ Bus = (*Redis)(nil)

// errStarting is returned by [Redis.Healthy] before the first connection.
var errStarting = errors.New("not yet connected to Redis")

// Dial returns a bus that uses the Redis server at a redis://, rediss:// or
// unix:// URL. It does not wait for the server and fails only if the URL is
// malformed. The caller must close the bus.
func Dial(address string, opts *Options) (*Redis, error) {
	server, err := parseAddress(address)
	if err != nil {
		return nil, fmt.Errorf("open bus: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	if opts == nil {
		opts = &Options{}
	}
	r := &Redis{
		local:   New(),
		server:  server,
		channel: opts.Channel,
		log:     opts.Logger,
		stop:    stop,
		wake:    make(chan struct{}, 1),
		pending: map[string]int64{},
		connErr: errStarting,
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
	r.enqueue(Notification{stream, seq})
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
	return r.connErr
}

// Close implements [Bus]. Unsent notifications are lost.
func (r *Redis) Close() error {
	r.stop()
	r.workers.Wait()
	return nil
}

// listen receives notifications from other nodes until ctx is done.
func (r *Redis) listen(ctx context.Context) {
	for try := 0; ctx.Err() == nil; try++ {
		received, err := r.receive(ctx)
		if ctx.Err() != nil {
			return
		}
		if received {
			try = 0
		}
		r.markDisconnected(err)
		backOff(ctx, try)
	}
}

// receive listens on a connection until it is closed. It reports whether the
// subscription succeeded.
func (r *Redis) receive(ctx context.Context) (received bool, err error) {
	conn, err := r.server.dial(ctx)
	if err != nil {
		return false, err
	}
	sub := redis.PubSubConn{Conn: conn}
	defer sub.Close()
	if err := sub.Subscribe(r.channel); err != nil {
		return false, err
	}
	var pings sync.WaitGroup
	defer pings.Wait()
	pinging, stop := context.WithCancel(ctx)
	defer stop()
	pings.Go(func() { sendPings(pinging, sub) })
	for {
		switch m := sub.ReceiveWithTimeout(2 * pingInterval).(type) {
		case redis.Subscription:
			received = true
			r.markConnected()
		case redis.Message:
			r.handleMessage(string(m.Data))
		case error:
			return received, m
		}
	}
}

// sendPings pings the server until ctx is done or the connection is closed.
func sendPings(ctx context.Context, sub redis.PubSubConn) {
	next := time.NewTicker(pingInterval)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
		if sub.Ping("") != nil {
			return // the receiver fails too
		}
	}
}

// markConnected clears the error returned by [Redis.Healthy] and logs a
// reconnect.
func (r *Redis) markConnected() {
	r.mu.Lock()
	was := r.connErr
	r.connErr = nil
	r.mu.Unlock()
	if was != nil {
		r.log.Info("connected to redis")
	}
	r.local.notifyLoss()
}

// markDisconnected sets the error returned by [Redis.Healthy] and logs the
// first failure.
func (r *Redis) markDisconnected(err error) {
	r.mu.Lock()
	was := r.connErr
	r.connErr = fmt.Errorf("disconnected from Redis: %w", err)
	r.mu.Unlock()
	if was == nil || errors.Is(was, errStarting) {
		r.log.Warn("disconnected from Redis; polling until it returns", "error", err)
	}
}

// handleMessage publishes a notification from another node locally. It ignores
// messages in other formats.
func (r *Redis) handleMessage(payload string) {
	if n, ok := parseNotification(payload); ok {
		r.local.Publish(n.Stream, n.Seq)
	}
}

func formatNotification(n Notification) string { return strconv.FormatInt(n.Seq, 10) + " " + n.Stream }

func parseNotification(text string) (Notification, bool) {
	number, stream, ok := strings.Cut(text, " ")
	seq, err := strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || seq < 0 || number != strconv.FormatInt(seq, 10) {
		return Notification{}, false
	}
	return Notification{stream, seq}, true
}

// send sends pending notifications until ctx is done.
func (r *Redis) send(ctx context.Context) {
	var conn redis.Conn
	defer func() {
		if conn != nil {
			conn.Close()
		}
	}()
	for try := 0; ; {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return
		}
		for notes := r.nextBatch(); len(notes) > 0 && ctx.Err() == nil; notes = r.nextBatch() {
			err := error(nil)
			if conn == nil {
				conn, err = r.server.dial(ctx)
			}
			if err == nil {
				if err = r.publish(conn, notes); err != nil {
					conn.Close()
					conn = nil
				}
			}
			if err != nil {
				r.requeue(notes)
				try++
				backOff(ctx, try)
				continue
			}
			try = 0
		}
	}
}

// nextBatch removes and returns up to sendBatch pending notifications.
func (r *Redis) nextBatch() []Notification {
	r.mu.Lock()
	defer r.mu.Unlock()
	var notes []Notification
	for stream, seq := range r.pending {
		if len(notes) == sendBatch {
			break
		}
		notes = append(notes, Notification{stream, seq})
		delete(r.pending, stream)
	}
	return notes
}

// requeue queues notifications again after a failed send, unless newer ones for
// their streams are pending.
func (r *Redis) requeue(notes []Notification) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range notes {
		r.enqueue(n)
	}
}

// enqueue queues a notification unless too many streams are pending. The caller
// must hold r.mu.
func (r *Redis) enqueue(n Notification) {
	if _, ok := r.pending[n.Stream]; ok || len(r.pending) < maxPending {
		r.pending[n.Stream] = max(n.Seq, r.pending[n.Stream])
	}
}

// publish sends notifications in a single round trip.
func (r *Redis) publish(conn redis.Conn, notes []Notification) error {
	for _, n := range notes {
		if err := conn.Send("PUBLISH", r.channel, formatNotification(n)); err != nil {
			return err
		}
	}
	if err := conn.Flush(); err != nil {
		return err
	}
	for range notes {
		if _, err := conn.Receive(); err != nil {
			return err
		}
	}
	return nil
}

// backOff waits before the next attempt. The delay grows with each attempt.
func backOff(ctx context.Context, try int) {
	wait := time.NewTimer(min(10*time.Millisecond<<min(try, 10), maxPause))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}
