package endpoint_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/hub/endpoint"
)

// register registers an operation with the types I and O. It returns the text of the
// panic, or "".
func register[I, O any](op huma.Operation) (refused string) {
	defer func() {
		if v := recover(); v != nil {
			refused = fmt.Sprint(v)
		}
	}()
	op.OperationID, op.Method, op.Path = "id", http.MethodPost, "/"
	api := humago.New(http.NewServeMux(), huma.DefaultConfig("Test", "1"))
	endpoint.Register(api, op, reflect.TypeFor[I](), reflect.TypeFor[O](), func(context.Context, any) (any, error) { return nil, nil })
	return ""
}

type none struct{}

type oldResolver struct{}

func (*oldResolver) Resolve(huma.Context) []error { return nil }

type resolver struct{}

func (*resolver) Resolve(huma.Context, *huma.PathBuffer) []error { return nil }

type resolvers []string

func (*resolvers) Resolve(huma.Context, *huma.PathBuffer) []error { return nil }

// Registration refuses unsupported types and options, and ignores none.
func TestUnsupported(t *testing.T) {
	limited := huma.Operation{MaxBodyBytes: 1}
	for _, tt := range []struct {
		got, want string
	}{
		{register[none, none](huma.Operation{Hidden: true}), "unsupported option"},
		{register[none, none](huma.Operation{BodyReadTimeout: -1}), "unsupported option"},
		{register[struct{ Body oldResolver }, none](limited), "oldResolver cannot report faults"},
		{register[struct{ Body resolvers }, none](limited), "resolvers cannot report faults"},
		{register[resolver, none](limited), "resolver reports faults, which only values in a Body can"},
		{register[struct {
			Name resolver `query:"name"`
		}, none](limited), "resolver reports faults"},
		{register[struct {
			Name string `query:"name,deepObject"`
		}, none](limited), "unsupported option deepObject"},
		{register[struct {
			Name string `query:"name" hidden:"true"`
		}, none](limited), "unsupported tag hidden"},
		{register[none, none](huma.Operation{Errors: []int{404}}), "unsupported option"},
		{register[struct{ Name string }, none](limited), "field Name of type string cannot be a parameter"},
		{register[struct {
			Name string `cookie:"name"`
		}, none](limited), "cannot be a parameter"},
		{register[struct {
			Name *string `query:"name"`
		}, none](limited), "of type *string cannot be a parameter"},
		{register[struct {
			Names []int `query:"name"`
		}, none](limited), "of type []int cannot be a parameter"},
		{register[struct {
			At time.Time `header:"At"`
		}, none](limited), "of type time.Time cannot be a parameter"},
		{register[struct {
			Body struct {
				Names []struct {
					Name string `json:"name" default:"x"`
				} `json:"names"`
			}
		}, none](limited), "field Name of struct"},
		{register[struct {
			Body    string
			RawBody []byte
		}, none](limited), "described twice"},
		{register[struct{ RawBody []byte }, none](huma.Operation{}), "no limit for its body"},
		{register[struct{ RawBody []byte }, none](huma.Operation{MaxBodyBytes: -1}), "no limit for its body"},
		{register[none, struct{ Body []byte }](limited), "the response []uint8 of id cannot be written"},
		{register[none, struct{ Body func() }](limited), "cannot be written"},
		{register[none, struct{ Status int }](limited), "field Status of struct"},
		{register[none, struct {
			At time.Time `header:"Last-Modified"`
		}](limited), "field At of struct"},
		{register[none, struct {
			Kind string `header:"Content-Type"`
		}](limited), "cannot be a header"},
	} {
		if !strings.Contains(tt.got, tt.want) {
			t.Errorf("panic %q, want %q", tt.got, tt.want)
		}
	}
	if got := register[struct{ RawBody []byte }, struct{ Body func(huma.Context) }](limited); got != "" {
		t.Errorf("a supported operation is refused: %s", got)
	}
}
