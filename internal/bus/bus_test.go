package bus_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/bus"
	"github.com/loadout-dev/loadout/internal/bus/bustest"
)

// lines collects written lines.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// dial returns a node's bus that is listened to.
func dial(t *testing.T, server *bustest.Server, log *slog.Logger) *bus.Redis {
	t.Helper()
	b, err := bus.Dial(server.URL(), &bus.Options{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	listened(t, b)
	return b
}

// listened waits until a bus is healthy: it says so, or tells every subscription when
// it becomes so.
func listened(t *testing.T, b bus.Bus) {
	t.Helper()
	sub := b.Subscribe("")
	defer sub.Close()
	if b.Healthy() != nil {
		ready(t, sub)
	}
	if err := b.Healthy(); err != nil {
		t.Fatal(err)
	}
}

func ready(t *testing.T, sub *bus.Subscription) {
	t.Helper()
	select {
	case <-sub.Ready():
	case <-time.After(30 * time.Second):
		t.Fatal("nothing is reported")
	}
}

// dialUntil receives notes until a stream has reached a number, and returns how many
// notes about it were needed.
func dialUntil(t *testing.T, sub *bus.Subscription, stream string, seq int64) int {
	t.Helper()
	last, notes := int64(0), 0
	for last < seq {
		ready(t, sub)
		for _, n := range sub.Drain() {
			if n.Stream != stream || n.Seq == 0 {
				continue
			}
			if n.Seq <= last {
				t.Errorf("%s is reported to have grown to %d after %d", stream, n.Seq, last)
			}
			last, notes = n.Seq, notes+1
		}
	}
	return notes
}

// each runs a test on every bus, with two nodes that share it.
func each(t *testing.T, test func(t *testing.T, here, there bus.Bus)) {
	t.Run("in one process", func(t *testing.T) {
		b := bus.New()
		test(t, b, b)
	})
	t.Run("over Redis", func(t *testing.T) {
		server := bustest.Start(t)
		test(t, dial(t, server, nil), dial(t, server, nil))
	})
}

func TestNotesReachSubscribers(t *testing.T) {
	each(t, func(t *testing.T, here, there bus.Bus) {
		one, both, other := here.Subscribe("a"), there.Subscribe("a", "b c\n"), there.Subscribe("other")
		defer one.Close()
		defer both.Close()
		defer other.Close()
		here.Publish("a", 1)
		here.Publish("b c\n", 7)
		dialUntil(t, one, "a", 1)
		dialUntil(t, both, "b c\n", 7)
		there.Publish("other", 1) // later than the previous notes, if they are ordered
		dialUntil(t, other, "other", 1)
		here.Publish("a", 2)
		dialUntil(t, both, "a", 2)
	})
}

func TestOldNotesAreNotDelivered(t *testing.T) {
	each(t, func(t *testing.T, here, there bus.Bus) {
		sub := there.Subscribe("a")
		defer sub.Close()
		here.Publish("a", 5)
		dialUntil(t, sub, "a", 5)
		here.Publish("a", 4)
		here.Publish("a", 5)
		here.Publish("a", -1)
		here.Publish("a", 6)
		dialUntil(t, sub, "a", 6)
	})
}

// Who reads slowly gets the last state, in as many notes as it reads.
func TestNotesAreBatched(t *testing.T) {
	b := bus.New()
	slow := b.Subscribe("a", "b")
	defer slow.Close()
	for i := range int64(100000) {
		b.Publish("a", i)
	}
	b.Publish("b", 3)
	ready(t, slow)
	notes := slow.Drain()
	slices.SortFunc(notes, func(a, b bus.Notification) int { return strings.Compare(a.Stream, b.Stream) })
	if want := []bus.Notification{{Stream: "a", Seq: 99999}, {Stream: "b", Seq: 3}}; !slices.Equal(notes, want) {
		t.Errorf("notes are %v", notes)
	}
	select {
	case <-slow.Ready():
		t.Errorf("ready again, with %v", slow.Drain())
	default:
	}
	b.Publish("b", 4)
	if notes := slow.Drain(); !slices.Equal(notes, []bus.Notification{{Stream: "b", Seq: 4}}) {
		t.Errorf("new notes are %v", notes)
	}
}

func TestManyPublishersAndSubscribers(t *testing.T) {
	const streams, last = 20, 200
	each(t, func(t *testing.T, here, there bus.Bus) {
		var subs []*bus.Subscription
		for i := range streams {
			subs = append(subs, here.Subscribe(fmt.Sprint(i)), there.Subscribe(fmt.Sprint(i)))
		}
		var wg sync.WaitGroup
		for i := range streams {
			wg.Go(func() {
				for seq := range int64(last) {
					[]bus.Bus{here, there}[seq%2].Publish(fmt.Sprint(i), seq+1)
				}
			})
		}
		for i, sub := range subs {
			wg.Go(func() {
				dialUntil(t, sub, fmt.Sprint(i/2), last)
				sub.Close()
			})
		}
		wg.Wait()
	})
}

func TestClosedSubscriptionReceivesNothing(t *testing.T) {
	each(t, func(t *testing.T, here, there bus.Bus) {
		closed, open := there.Subscribe("a"), there.Subscribe("a")
		defer open.Close()
		closed.Close()
		closed.Close()
		here.Publish("a", 1)
		dialUntil(t, open, "a", 1)
		if notes := closed.Drain(); len(notes) != 0 {
			t.Errorf("got %v", notes)
		}
	})
}

// While Redis is down, nobody blocks and a node notifies itself. Afterwards all are
// notified to read again, and queued notes arrive.
func TestRedisReconnects(t *testing.T) {
	server := bustest.Start(t)
	said := make(lines, 100)
	here, there := dial(t, server, nil), dial(t, server, slog.New(slog.NewTextHandler(said, nil)))
	own, others := here.Subscribe("a"), there.Subscribe("a", "quiet")
	defer own.Close()
	defer others.Close()
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	here.Publish("a", 1)
	dialUntil(t, own, "a", 1)
	for line := ""; !strings.Contains(line, "disconnected from Redis"); line = <-said {
	}
	if there.Healthy() == nil {
		t.Error("it is healthy without Redis")
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	reported := map[string]int64{} // a may have grown during the outage, which its 0 reports
	for len(reported) < 2 {
		ready(t, others)
		for _, n := range others.Drain() {
			reported[n.Stream] = max(n.Seq, reported[n.Stream])
		}
	}
	if seq := reported["quiet"]; seq != 0 {
		t.Errorf("quiet is reported to have grown to %d", seq)
	}
	listened(t, there)
}

func TestWithoutRedis(t *testing.T) {
	var log bytes.Buffer
	b, err := bus.Dial("redis://user:secret@127.0.0.1:1", &bus.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	sub := b.Subscribe("a")
	defer sub.Close()
	if b.Healthy() == nil {
		t.Error("it is healthy")
	}
	for i := range bus.MaxPending + 1000 {
		b.Publish(fmt.Sprint(i), 1)
	}
	if n := b.Waiting(); n > bus.MaxPending {
		t.Errorf("%d notes wait", n)
	}
	b.Publish("a", 1)
	dialUntil(t, sub, "a", 1)
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if strings.Contains(log.String()+b.Healthy().Error(), "secret") {
		t.Errorf("the log is %s", &log)
	}
	b.Publish("a", 2) // harmless
}

// Nobody waits for a server that takes connections and never says a word.
func TestSilentServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	b, err := bus.Dial("redis://"+listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sub := b.Subscribe("a")
	defer sub.Close()
	b.Publish("a", 1)
	dialUntil(t, sub, "a", 1)
	if b.Healthy() == nil {
		t.Error("it is healthy")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestAddresses(t *testing.T) {
	for _, address := range []string{"", "http://u:secret@example.com", "redis://u:secret@[bad", "redis://u:secret@example.com/notanumber", "redis://u:secret@example.com/-1", "redis://u:secret@example.com/1/2", "unix://", "unix:relative",
		"redis://u:secret@example.com?pool_size=3"} {
		_, err := bus.Dial(address, nil)
		if err == nil {
			t.Errorf("%q is read", address)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error returned %v", err)
		}
	}
}

// A client signs in and selects the database of the address.
func TestClientSignsIn(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	b, err := bus.Dial("redis://user:p%40ss@"+listener.Addr().String()+"/7", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "+OK\r\n+OK\r\n"); err != nil {
		t.Fatal(err)
	}
	want := "*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$4\r\np@ss\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n7\r\n*2\r\n$9\r\nSUBSCRIBE\r\n$7\r\nloadout\r\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Errorf("the requests are %q (%v)", got, err)
	}
}

func FuzzNote(f *testing.F) {
	f.Add("a", int64(1), "1 a")
	f.Add("", int64(0), "01 a")
	f.Add("a b", int64(1<<62), "-1 a")
	f.Fuzz(func(t *testing.T, stream string, seq int64, text string) {
		n := bus.Notification{Stream: stream, Seq: max(seq, 0)}
		if got, ok := bus.ParseNotification(bus.FormatNotification(n)); !ok || got != n {
			t.Errorf("%v is read as %v", n, got)
		}
		if n, ok := bus.ParseNotification(text); ok && bus.FormatNotification(n) != text {
			t.Errorf("%q is read as %v", text, n)
		}
	})
}

func Example() {
	b := bus.New()
	defer b.Close()
	sub := b.Subscribe("session 1")
	defer sub.Close()
	// … read the stream here, because earlier events cause no note.

	b.Publish("session 1", 41)
	b.Publish("session 1", 42)

	<-sub.Ready()
	for _, note := range sub.Drain() {
		fmt.Println(note.Stream, "has grown to", note.Seq)
	}
	// Output: session 1 has grown to 42
}

func BenchmarkPublish(b *testing.B) {
	local := bus.New()
	var subs []*bus.Subscription
	for range 10 {
		subs = append(subs, local.Subscribe("a"))
	}
	for i := range int64(b.N) {
		local.Publish("a", i)
	}
	for _, s := range subs {
		s.Close()
	}
}
