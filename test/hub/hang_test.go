//go:build unix

package hub_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/chat"
)

// trials is how often a fault is tried: 1, or as many as LOADOUT_TEST_TRIALS says.
func trials() int {
	if n, err := strconv.Atoi(os.Getenv("LOADOUT_TEST_TRIALS")); err == nil {
		return n
	}
	return 1
}

// turnsEach is how many turns a node runs when it fails.
const turnsEach = 24

// A node is stopped at any moment, even in a transaction. The other one continues its
// turns, and takes new ones of the same user. When the first one runs again, nothing
// is done or said twice.
func TestHungNodeStopsNobody(t *testing.T) {
	testFailedNode(t, onPostgres(t), nil, func(n *node) *node {
		n.cmd.Process.Signal(syscall.SIGSTOP)
		return n
	}, func(n *node) *node {
		n.cmd.Process.Signal(syscall.SIGCONT)
		return n
	})
}

// A killed node that restarts with its directory continues its turns at once, if the
// other one has not.
func TestRestartedNodeContinuesItsTurns(t *testing.T) {
	testFailedNode(t, onPostgres(t), nil, func(n *node) *node {
		n.kill()
		return n.startIn(n.dir)
	}, func(n *node) *node { return n })
}

// TestKilledNodeWithManyTurns is the same for a node that does not come back.
func TestKilledNodeWithManyTurns(t *testing.T) {
	testFailedNode(t, onPostgres(t), nil, func(n *node) *node {
		n.kill()
		return n
	}, func(n *node) *node { return n.start() })
}

// TestDisconnectedNode is the same for a node whose packets to the database are lost,
// and for one whose connections are reset.
func TestDisconnectedNode(t *testing.T) {
	for state, name := range map[relayState]string{lost: "lost packets", reset: "reset connections"} {
		t.Run(name, func(t *testing.T) {
			h := onPostgres(t)
			r := newRelay(t, h.database)
			testFailedNode(t, h, []string{"--database", r.url}, func(n *node) *node {
				r.set(state)
				return n
			}, func(n *node) *node {
				r.set(forwarding)
				n.eventually("it is ready again", func() bool { ok, _ := n.ready(); return ok })
				return n
			})
		})
	}
}

// testFailedNode has a node, started with args, fail in the middle of its turns and
// recover after them, as often as trials says.
func testFailedNode(t *testing.T, h *hub, args []string, fail, recover func(*node) *node) {
	m, l := newModel(t, 15*time.Millisecond), newLedger(t)
	one, two := h.start(args...), h.start()
	one.hire(m, l)
	var silences, fresh []time.Duration
	for trial := range trials() {
		var talks []*talk
		var watching sync.WaitGroup
		resumed := make(chan time.Time, turnsEach)
		moment := make(chan struct{}, 10_000)
		for i := range turnsEach {
			k := &talk{session: one.begin(), name: fmt.Sprintf("%d.%d", trial, i)}
			w, err := two.opens(k.session, "")
			if err != nil {
				t.Fatal(err)
			}
			talks = append(talks, k)
			var lines []string
			for n := range writes {
				lines = append(lines, calls("write", k.what(n)))
			}
			one.say(k.session, lines...)
			watching.Go(func() {
				for {
					ev, err := w.next()
					if ev.Type == chat.TurnResumed {
						resumed <- time.Now()
					}
					if err != nil || ev.Type == chat.TurnEnded {
						k.err, k.watched = err, w.seen
						w.close()
						return
					}
					moment <- struct{}{}
				}
			})
		}
		for range turnsEach * (2 + trial%5) {
			<-moment
		}
		failed := time.Now()
		one = fail(one)
		session := two.begin()
		w := two.watch(session, "")
		began := time.Now()
		two.say(session, calls("write", fmt.Sprintf("fresh-%d", trial)))
		two.until(w, isType(chat.TurnStarted))
		fresh = append(fresh, time.Since(began))
		two.until(w, isType(chat.TurnEnded))
		w.close()
		watching.Wait()
		close(resumed)
		for at := range resumed {
			silences = append(silences, at.Sub(failed))
		}
		t.Logf("trial %d: all turns ended %v after the failure", trial, time.Since(failed))
		one = recover(one)
		for _, k := range talks {
			if k.err != nil {
				t.Errorf("the turn of %s did not end: %v", k.name, k.err)
			}
			k.check(t, must(two.told(k.session))(t), l.all())
		}
	}
	if len(silences) == 0 {
		t.Error("no turn was interrupted")
		return
	}
	slices.Sort(silences)
	slices.Sort(fresh)
	t.Logf("%d trials: %d turns resumed after p50 %v, p95 %v, max %v; new turns start after p50 %v, max %v", trials(), len(silences),
		silences[len(silences)/2], silences[len(silences)*95/100], silences[len(silences)-1], fresh[len(fresh)/2], fresh[len(fresh)-1])
}
