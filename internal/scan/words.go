package scan

// wordMatcher finds all occurrences of many words in a single pass over the
// text, with the Aho-Corasick algorithm. It ignores the case of ASCII letters
// and the kind of white space. It keeps scans fast: a pattern is applied only
// near one of the words that each of its matches contains.
type wordMatcher struct {
	class   [256]uint8 // class by byte; 0 for bytes that are in no word
	classes int
	next    []uint16   // next state by state and class
	ends    [][]uint16 // by state: the words that end there
}

func newWordMatcher(list []string) *wordMatcher {
	w := &wordMatcher{classes: 1}
	for _, s := range list {
		for _, c := range []byte(s) {
			if w.class[c] == 0 {
				w.class[c] = uint8(w.classes)
				w.classes++
			}
		}
	}
	for c := byte('A'); c <= 'Z'; c++ {
		w.class[c] = w.class[c+'a'-'A']
	}
	w.class['\n'], w.class['\t'] = w.class[' '], w.class[' ']
	w.addState()
	for i, s := range list {
		w.insert(s, uint16(i))
	}
	w.completeTable()
	return w
}

func (w *wordMatcher) addState() uint16 {
	w.next = append(w.next, make([]uint16, w.classes)...)
	w.ends = append(w.ends, nil)
	if len(w.ends) > 1<<16 {
		panic("scan: too many words in the rules")
	}
	return uint16(len(w.ends) - 1)
}

func (w *wordMatcher) insert(s string, number uint16) {
	state := uint16(0)
	for _, c := range []byte(s) {
		i := int(state)*w.classes + int(w.class[c])
		if w.next[i] == 0 {
			w.next[i] = w.addState()
		}
		state = w.next[i]
	}
	w.ends[state] = append(w.ends[state], number)
}

// completeTable adds the missing transitions. If a word cannot continue, the
// next state is that of the longest suffix that starts another word.
func (w *wordMatcher) completeTable() {
	fail := make([]uint16, len(w.ends))
	queue := []uint16{0}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		for c := range w.classes {
			i := int(state)*w.classes + c
			back := uint16(0)
			if state != 0 {
				back = w.next[int(fail[state])*w.classes+c]
			}
			child := w.next[i]
			if child == 0 {
				w.next[i] = back
				continue
			}
			fail[child] = back
			w.ends[child] = append(w.ends[child], w.ends[back]...)
			queue = append(queue, child)
		}
	}
}

// findAll calls yield for every occurrence of a word, with its number and the
// offset after it.
func (w *wordMatcher) findAll(text []byte, yield func(number uint16, end int)) {
	state := 0
	for i, c := range text {
		state = int(w.next[state*w.classes+int(w.class[c])])
		if len(w.ends[state]) > 0 {
			for _, n := range w.ends[state] {
				yield(n, i+1)
			}
		}
	}
}

// ruleIndex holds the words of all rules and maps each word to its rules.
type ruleIndex struct {
	words *wordMatcher
	rules [][]int // by word: indexes of the rules that contain it
}

// newRuleIndex returns the index of all rules.
func newRuleIndex() *ruleIndex {
	var list []string
	numbers := map[string]int{}
	x := &ruleIndex{}
	for i := range rules() {
		for _, w := range rules()[i].words {
			n, ok := numbers[w]
			if !ok {
				n = len(list)
				numbers[w], list, x.rules = n, append(list, w), append(x.rules, nil)
			}
			x.rules[n] = append(x.rules[n], i)
		}
	}
	x.words = newWordMatcher(list)
	return x
}
