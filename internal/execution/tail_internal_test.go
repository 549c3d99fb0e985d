package execution

import "testing"

func TestTail(t *testing.T) {
	s := &tailBuffer{limit: 4}
	for _, w := range []string{"ab", "cde", "", "fghijkl", "m"} {
		if n, err := s.Write([]byte(w)); n != len(w) || err != nil {
			t.Errorf("Write(%q) is %d, %v", w, n, err)
		}
	}
	if got := string(s.bytes()); got != "jklm" {
		t.Errorf("stored:  %q", got)
	}
}
