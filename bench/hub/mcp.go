//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// runMCP measures the MCP endpoint of a hub whose skills are written to the database directly,
// which is much faster than uploading them. With -talk, it measures conversations after
// that.
func (b *bench) runMCP(name string) (err error) {
	if err := os.MkdirAll(b.home, 0o700); err != nil {
		return err
	}
	b.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * manyClients}, Timeout: 10 * time.Minute}
	defer b.client.CloseIdleConnections()
	if err := b.createUsers(); err != nil {
		return err
	}
	if err := b.fill(); err != nil {
		return err
	}
	if b.node, err = b.start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.node.stop()) }()
	if err := b.measureMCP(name); err != nil || !b.talk {
		return err
	}
	return b.measureChats()
}

// fill writes the skills to the database. Of every four skills, two go to the
// public namespace, one to a group and one to a user.
func (b *bench) fill() (err error) {
	ctx := context.Background()
	db, err := store.Open(ctx, b.database, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	subjects := strings.Fields("invoices forms spreadsheets slides tickets logs maps contracts recipes images")
	for done := 0; done < b.skills; done += 500 {
		err := db.Tx(ctx, func(tx *store.Tx) error {
			for i := done; i < min(done+500, b.skills); i++ {
				in := store.Public
				switch i % 4 {
				case 2:
					in = store.GroupNamespace(b.groupIDs[i/4%len(b.groupIDs)])
				case 3:
					in = store.UserNamespace(b.userIDs[i/4%len(b.userIDs)])
				}
				subject := subjects[i%len(subjects)]
				name := fmt.Sprintf("%s-%05d", subject, i)
				about := fmt.Sprintf("Reads and writes %s, with %s where they are needed. Use it whenever the user mentions number %d or works on %s.", subject, subjects[i/3%len(subjects)], i, subject)
				body := fmt.Sprintf("---\nname: %s\ndescription: %s\n---\n# %s\n\n%s", name, about, name, strings.Repeat("Read the file, and check each \"row\" of it.\n", 100))
				hash, err := tx.Blobs.Put(ctx, []byte(body))
				if err != nil {
					return err
				}
				m := skill.Manifest{{Path: skill.FileName, SHA256: hash[0], Size: int64(len(body))}}
				s, err := tx.Skills.Create(ctx, store.Skill{Namespace: in, Name: name, CreatedBy: "bench"})
				if err != nil {
					return err
				}
				v := store.Version{SkillID: s.ID, Digest: m.Digest(), Meta: []byte(`{"tokens":1000}`), Description: about}
				if _, err := tx.Versions.Add(ctx, v, []store.File{{Path: skill.FileName, SHA256: hash[0], Size: int64(len(body))}}, nil); err != nil {
					return err
				}
				if err := tx.Skills.SetCurrent(ctx, s.ID, 1); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// call makes an MCP request with protocol 2026-07-28 and returns the response.
func (b *bench) call(token, method, params string) ([]byte, time.Duration, error) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}}}`, method, params)
	req, err := http.NewRequest("POST", b.node.url+"/mcp", strings.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	for k, v := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method} {
		req.Header.Set(k, v)
	}
	if method == "tools/call" {
		req.Header.Set("Mcp-Name", "load_skill")
	}
	start := time.Now()
	res, err := b.client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || !strings.Contains(string(data), `"result"`) || strings.Contains(string(data), `"isError":true`)) {
		err = fmt.Errorf("%s: status %s: %.500s", method, res.Status, data)
	}
	return data, time.Since(start), err
}

// measureMCP measures the first request of each user, and calls of load_skill.
func (b *bench) measureMCP(name string) error {
	tokens := b.tokens[:b.active]
	fmt.Printf("\n%s, %d skills, %d of %d users at /mcp:\n\n", name, b.skills, len(tokens), b.users)
	table := measure.Table{Name: name}
	list := func(token string) (time.Duration, error) {
		_, took, err := b.call(token, "tools/list", "")
		return took, err
	}
	const warm = 5 // the first users start what all share
	for _, t := range tokens[:warm] {
		if _, err := list(t); err != nil {
			return err
		}
	}
	before, err := measure.MemoryOf(b.node.pid())
	if err != nil {
		return err
	}
	first := table.Row(measure.Row{Name: "first tools/list of a user: CPU of the node", Unit: "ms"})
	again := table.Row(measure.Row{Name: "tools/list again: CPU of the node", Unit: "ms"})
	for _, t := range tokens[warm:] {
		cpu := measure.CPUOf(b.node.pid())
		if _, err := list(t); err != nil {
			return err
		}
		first.AddTime(measure.CPUOf(b.node.pid()) - cpu)
	}
	after, err := measure.MemoryOf(b.node.pid())
	if err != nil {
		return err
	}
	for _, t := range tokens[warm:] {
		cpu := measure.CPUOf(b.node.pid())
		if _, err := list(t); err != nil {
			return err
		}
		again.AddTime(measure.CPUOf(b.node.pid()) - cpu)
	}
	load := func(i int) error {
		n := i % b.skills / 4 * 4 // a public skill
		_, _, err := b.call(tokens[i%len(tokens)], "tools/call", fmt.Sprintf(`"name":"load_skill","arguments":{"name":"%s-%05d"},`,
			strings.Fields("invoices forms spreadsheets slides tickets logs maps contracts recipes images")[n%10], n))
		return err
	}
	one := table.Row(measure.Row{Name: "load_skill, one caller: CPU of the node", Unit: "ms"})
	cpus := table.Row(measure.Row{Name: "load_skill, 16 callers: CPU of the node", Unit: "ms"})
	rate := table.Row(measure.Row{Name: "load_skill, 16 callers: calls", Unit: "per second"})
	for round := range b.rounds + 1 {
		const calls = 100
		cpu := measure.CPUOf(b.node.pid())
		for i := range calls {
			if err := load(round*31 + i); err != nil {
				return err
			}
		}
		each := (measure.CPUOf(b.node.pid()) - cpu) / calls
		start, cpu := time.Now(), measure.CPUOf(b.node.pid())
		var group sync.WaitGroup
		errs := make([]error, manyClients)
		for c := range manyClients {
			group.Go(func() {
				for i := range calls {
					errs[c] = errors.Join(errs[c], load(round*77+c*13+i))
				}
			})
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if round > 0 {
			one.AddTime(each)
			cpus.AddTime((measure.CPUOf(b.node.pid()) - cpu) / (calls * manyClients))
			rate.Add(calls * manyClients / time.Since(start).Seconds())
		}
	}
	end, err := measure.MemoryOf(b.node.pid())
	if err != nil {
		return err
	}
	table.Print(os.Stdout)
	fmt.Printf("\nResident memory: %s MB with %d users, %s MB with %d (%s MB for each), %s MB at the end. List: %s\n", measure.FormatNumber(float64(before.Resident)/1e6), warm,
		measure.FormatNumber(float64(after.Resident)/1e6), len(tokens), measure.FormatNumber(float64(after.Resident-before.Resident)/1e6/float64(len(tokens)-warm)),
		measure.FormatNumber(float64(end.Resident)/1e6), toolsOf(b))
	return nil
}

// toolsOf returns the size of the response to tools/list as text, or "none" if
// the request fails.
func toolsOf(b *bench) string {
	data, _, err := b.call(b.tokens[0], "tools/list", "")
	if err != nil || !json.Valid(data) && !strings.Contains(string(data), "data:") {
		return "none"
	}
	return fmt.Sprint(len(data), " bytes")
}
