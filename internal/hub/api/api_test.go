package api

import (
	"reflect"
	"testing"
)

type hidden struct {
	Query string `query:"q"`
}

// The API library would read nothing into what is embedded and not exported.
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
