//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/internal/store"
)

// marks lists the turns of a long conversation near which measureLong takes
// measurements.
var marks = []int{20, 50, 200, 400, 1000}

// window is the number of turns that are measured at each mark.
const window = 24

// longChat is a growing conversation in one of the compared programs.
type longChat struct {
	*bench
	name            string
	chat            *chat
	cpu, first, end *measure.Row // of the turns at the current mark
}

// measureLong measures turns of a growing conversation: one in each program,
// up to the configured number of turns. The turns of the programs alternate
// with those of the baseline, which stores an event in a transaction and sends
// it to a waiting client as a server-sent event. The CPU time includes the
// demo model, which reads the whole request.
func measureLong(database string, all []*bench) (err error) {
	baseline, err := newMinimalServer(all[0].home + "-baseline.db")
	if err != nil {
		return err
	}
	defer baseline.close()
	var chats []*longChat
	for i, b := range all {
		l, err := b.startLong([]string{"", ", base"}[i])
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.close()) }()
		chats = append(chats, l)
	}
	table := measure.Table{Name: database}
	turns := 0
	for _, mark := range marks {
		if mark > all[0].turns {
			break
		}
		at := fmt.Sprint("turn ", mark)
		bare := table.Row(measure.Row{Name: at + ": baseline: an event is stored and sent", Unit: "ms"})
		for _, l := range chats {
			name := at + l.name
			l.cpu = table.Row(measure.Row{Name: name + ": CPU time of the node", Unit: "ms"})
			l.first = table.Row(measure.Row{Name: name + ": first event", Unit: "ms", Baseline: bare})
			l.end = table.Row(measure.Row{Name: name + ": end", Unit: "ms", Baseline: bare})
		}
		for last := mark + window/2; turns < last; turns++ {
			measured := turns >= mark-window/2
			for _, l := range chats {
				if err := l.turn(measured); err != nil {
					return fmt.Errorf("turn %d: %w", turns+1, err)
				}
			}
			if measured {
				took, err := baseline.exchange()
				if err != nil {
					return err
				}
				bare.AddTime(took)
			}
		}
	}
	fmt.Printf("\n%s:\n\n", database)
	table.Print(os.Stdout)
	return nil
}

// startLong starts a node with a user and a conversation.
func (b *bench) startLong(name string) (*longChat, error) {
	if err := os.MkdirAll(b.home, 0o700); err != nil {
		return nil, err
	}
	b.users, b.groups = 1, 1
	b.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 50}, Timeout: 10 * time.Minute}
	if err := b.createUsers(); err != nil {
		return nil, err
	}
	var err error
	if b.node, err = b.start(); err != nil {
		return nil, err
	}
	c, err := b.startChat(b.tokens[0])
	if err != nil {
		return nil, errors.Join(err, b.node.stop())
	}
	return &longChat{bench: b, name: name, chat: c}, nil
}

func (l *longChat) close() error {
	l.chat.close()
	l.client.CloseIdleConnections()
	return l.node.stop()
}

// turn runs a turn and, if measured is set, records its costs. The node keeps
// working for a moment after the last event. turn waits for it to finish,
// because the work would otherwise disturb the next turn, which runs in another
// program.
func (l *longChat) turn(measured bool) error {
	cpu := measure.CPUOf(l.node.pid())
	s, err := l.chat.sendMessage(l.bench)
	if err != nil || !measured {
		return err
	}
	time.Sleep(20 * time.Millisecond)
	l.cpu.AddTime(measure.CPUOf(l.node.pid()) - cpu)
	l.first.AddTime(s.first)
	l.end.AddTime(s.end)
	return nil
}

// minimalServer stores an event in an SQLite database for each request, and then
// sends it to a client.
type minimalServer struct {
	db     *store.DB
	url    string
	server *http.Server
	events *bufio.Reader
	body   func() error
}

func newMinimalServer(path string) (*minimalServer, error) {
	db, err := store.Open(context.Background(), "sqlite:"+path, nil)
	if err != nil {
		return nil, err
	}
	stored := make(chan int64)
	var mux http.ServeMux
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		last, err := db.Events.Last(r.Context(), "s")
		if err == nil {
			last, err = db.Events.Append(r.Context(), "s", last, store.Event{Kind: "x", Data: []byte(`"hello there"`)})
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		stored <- last
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		http.NewResponseController(w).Flush()
		for {
			select {
			case n := <-stored:
				fmt.Fprintf(w, "event: x\nid: %d\ndata: \"hello there\"\n\n", n)
				http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	m := &minimalServer{db: db, url: "http://" + l.Addr().String(), server: &http.Server{Handler: &mux}}
	go m.server.Serve(l)
	res, err := http.Get(m.url)
	if err != nil {
		return nil, errors.Join(err, m.server.Close(), db.Close())
	}
	m.events, m.body = bufio.NewReader(res.Body), res.Body.Close
	return m, nil
}

func (m *minimalServer) close() { errors.Join(m.body(), m.server.Close(), m.db.Close()) }

// exchange stores an event and returns the time until the client has received it.
func (m *minimalServer) exchange() (time.Duration, error) {
	start := time.Now()
	sent := make(chan error, 1)
	go func() {
		res, err := http.Post(m.url, "application/json", strings.NewReader("{}"))
		if err == nil {
			err = res.Body.Close()
		}
		sent <- err
	}()
	for {
		line, err := m.events.ReadString('\n')
		if err != nil {
			return 0, errors.Join(err, <-sent)
		}
		if line == "event: x\n" {
			took := time.Since(start)
			return took, <-sent
		}
	}
}
