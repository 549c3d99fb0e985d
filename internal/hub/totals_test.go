package hub_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/llm"
)

// priced is a hub that knows the price and context window of echo:1 only.
func priced(t testing.TB) *node {
	n := start(t, hub.Options{FirstAdmin: &hub.FirstAdmin{Name: "root", Password: secret}, Accounts: true,
		Price: func(model string) (usage.Price, bool) {
			return usage.Price{Input: 3, CacheRead: 1, CacheWrite: 4, Output: 15}, model == "echo:1"
		},
		Window: func(model string) int {
			if model == "echo:1" {
				return 1000
			}
			return 0
		}})
	talker(t, n)
	return n
}

type spent struct {
	Day, Model, User, Agent, Namespace string
	UserName                           string `json:"user_name"`
	Turns, Loads, Calls, Errors        int
	Input, Output                      int
	Cost                               *float64
	Unpriced                           int
}

func (s spent) String() string {
	cost := "no price"
	if s.Cost != nil {
		cost = fmt.Sprintf("$%.6f", *s.Cost)
	}
	return fmt.Sprintf("%s%s%s%s %d/%d/%d/%d %d+%d %s, %d without", s.Day, s.Model, s.UserName, s.Agent, s.Turns, s.Loads, s.Calls, s.Errors, s.Input, s.Output, cost, s.Unpriced)
}

func (c caller) totals(t testing.TB, query string) (items []string, total string) {
	t.Helper()
	var out struct {
		Items []spent
		Total spent
	}
	c.send(t, "GET", "/api/v1/usage/totals?"+query, nil).want(t, 200).into(t, &out)
	for _, i := range out.Items {
		items = append(items, i.String())
	}
	return items, out.Total.String()
}

// What conversations took is summed up for who had them, for administrators of all, and
// for maintainers with the agents of their group. What has no price has no cost.
func TestUsageTotals(t *testing.T) {
	n := priced(t)
	root := n.signIn(t, "root", secret)
	adaID, ada := n.newUser(t, root, "ada")
	bobID, bob := n.newUser(t, root, "bob")
	session := ada.begin(t)
	ada.talk(t, session, `call load_skill {"name":"tides"}`)
	ada.talk(t, session, "hello")
	ada.talk(t, session, "call nothing")
	today := time.Now().UTC().Format(time.DateOnly)
	group := must(n.DB().Groups.Create(t.Context(), store.Group{Name: "crew"}))(t)
	if err := n.DB().Groups.SetMember(t.Context(), store.Member{GroupID: group.ID, UserID: adaID, Role: store.Role(account.Maintainer.String())}); err != nil {
		t.Fatal(err)
	}
	if err := n.DB().Groups.SetMember(t.Context(), store.Member{GroupID: group.ID, UserID: bobID, Role: store.Role(account.Reporter.String())}); err != nil {
		t.Fatal(err)
	}
	err := n.DB().Meter.Add(t.Context(),
		store.MeterEntry{Date: time.Now(), Owner: bobID, Namespace: store.GroupNamespace(group.ID), Agent: "Ghost/crew/sea", Model: "other:1", Turns: 1, Input: 100, Output: 7},
		store.MeterEntry{Date: time.Now().AddDate(0, 0, -40), Owner: adaID, Model: "other:1", Turns: 5})
	if err != nil {
		t.Fatal(err)
	}
	// Five responses of 10 and 2 tokens, two of which made calls.
	mine := "3/1/1/1 50+10 $0.000300, 0 without"
	for _, tt := range []struct {
		who   caller
		query string
		want  []string
		total string
	}{
		{ada, "", []string{today + " " + mine}, " " + mine},
		{ada, "by=model&days=1", []string{"echo:1 " + mine}, " " + mine},
		{ada, "by=user", []string{"ada " + mine}, " " + mine},
		{bob, "by=agent", []string{"Ghost/crew/sea 1/0/0/0 100+7 no price, 107 without"}, " 1/0/0/0 100+7 no price, 107 without"},
		{root, "by=user", []string{"bob 1/0/0/0 100+7 no price, 107 without", "ada " + mine}, " 4/1/1/1 150+17 $0.000300, 107 without"},
		{root, "by=model&user=" + adaID, []string{"echo:1 " + mine}, " " + mine},
		{root, "by=model&days=365&user=" + adaID, []string{"echo:1 " + mine, "other:1 5/0/0/0 0+0 no price, 0 without"}, " 8/1/1/1 50+10 $0.000300, 0 without"},
		{ada, "by=user&namespace=crew", []string{"bob 1/0/0/0 100+7 no price, 107 without"}, " 1/0/0/0 100+7 no price, 107 without"},
		{bob, "by=user&namespace=crew", []string{"bob 1/0/0/0 100+7 no price, 107 without"}, " 1/0/0/0 100+7 no price, 107 without"},
	} {
		items, total := tt.who.totals(t, tt.query)
		t.Run(tt.query, func(t *testing.T) {
			wantEqual(t, items, tt.want)
			wantEqual(t, total, tt.total)
		})
	}
	bob.send(t, "GET", "/api/v1/usage/totals?user="+adaID, nil).want(t, 404)
	bob.send(t, "GET", "/api/v1/usage/totals?namespace=crew&user="+adaID, nil).want(t, 404)
	_, eve := n.newUser(t, root, "eve")
	eve.send(t, "GET", "/api/v1/usage/totals?namespace=group:"+group.ID, nil).want(t, 404)
}

// A conversation reports its use of the model's context window and its cost.
func TestSessionMeter(t *testing.T) {
	n := priced(t)
	_, ada := n.newUser(t, n.signIn(t, "root", secret), "ada")
	session := ada.begin(t)
	var out struct {
		Models  map[string]llm.Usage
		Costs   map[string]float64
		Cost    *float64
		Context *struct {
			Model                   string
			Request, Answer, Window int
		}
	}
	ada.send(t, "GET", session+"/usage", nil).want(t, 200).into(t, &out)
	if out.Context != nil || out.Cost != nil {
		t.Errorf("before anything was said it is %+v", out)
	}
	ada.talk(t, session, "hello")
	ada.talk(t, session, "again")
	ada.send(t, "GET", session+"/usage", nil).want(t, 200).into(t, &out)
	if c := out.Context; c == nil || c.Model != "echo:1" || c.Request != 10 || c.Answer != 2 || c.Window != 1000 {
		t.Errorf("in use is %+v", c)
	}
	if out.Models["echo:1"].Input != 20 || out.Cost == nil || math.Abs(*out.Cost-0.00012) > 1e-12 || math.Abs(out.Costs["echo:1"]-*out.Cost) > 1e-12 {
		t.Errorf("it took %+v", out)
	}
}
