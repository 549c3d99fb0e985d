package api

import (
	"reflect"
	"testing"
)

type hidden struct {
	Query string `query:"q"`
}

// The API library ignores embedded fields of unexported types.
func TestOperationsShowAllOfTheirTypes(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it would be passed over")
		}
	}()
	checkEmbedded(reflect.TypeFor[struct {
		Body []struct{ hidden }
	}]())
}
