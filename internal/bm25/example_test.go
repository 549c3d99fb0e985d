package bm25_test

import (
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/bm25"
)

func ExampleIndex_Search() {
	skills := []bm25.Doc{
		{Name: "pdf", Description: "Fill forms, merge and split PDF documents."},
		{Name: "invoice-check", Description: "Find invoices that were paid twice.", Body: "Read each PDF, then compare the totals."},
		{Name: "xlsx", Description: "Edit spreadsheets."},
	}
	index := bm25.New(slices.Values(skills))
	for _, hit := range index.Search("merging invoices in a pdf", 10) {
		fmt.Println(skills[hit.Doc].Name)
	}
	// Output:
	// pdf
	// invoice-check
}
