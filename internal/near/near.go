// Package near tells how far two names are apart, for guesses at what was meant.
// It decides nothing: what is near enough is its callers' to say.
package near

import "unicode"

// Letters are the letters and digits of a name without their case.
func Letters(name string) []rune {
	var out []rune
	for _, r := range name {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			out = append(out, unicode.ToLower(r))
		}
	}
	return out
}

// Distance is the edit distance of two short strings, or more than most.
func Distance(a, b []rune, most int) int {
	if len(a) > 64 || len(b) > 64 || len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
