package hub_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/loadout-dev/loadout/internal/hub"
)

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "hub")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	h, err := hub.Open(context.Background(), hub.Options{Data: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	server := httptest.NewServer(h.Handler())
	defer server.Close()
	res, err := http.Get(server.URL + "/api/v1/login")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(body))
	// Output: {"mode":"single","setup":false,"password":false}
}
