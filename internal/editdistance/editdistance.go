// Package editdistance computes how similar two names are, for suggestions such
// as "did you mean". Callers decide which distance is small enough.
package editdistance

import "unicode"

// Normalize returns the letters and digits of a name in lower case.
func Normalize(name string) []rune {
	var out []rune
	for _, r := range name {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			out = append(out, unicode.ToLower(r))
		}
	}
	return out
}

// Distance returns the edit distance of two short strings. If it is greater
// than limit, the result is any number greater than limit. Strings of more than
// 64 runes are not compared; the result is limit+1.
func Distance(a, b []rune, limit int) int {
	if len(a) > 64 || len(b) > 64 || len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
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
