package untrusted_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/internal/untrusted/untrustedtest"
)

func TestSkeleton(t *testing.T) {
	for in, want := range map[string]string{
		"pdf": "pdf", "git-commit": "git-commit", "PDF": "pdf", "": "",
		"рdf": "pdf", "pd\u200bf": "pdf", "Ρdf": "pdf", "git‑соmmіt": "git-commit", "раураl": "paypal", "ехсеl": "excel", "docх": "docx", "ѕkіll": "skill",
		"café": "café", "文档": "文档", "\u0434\u043e\u043a\u0443\u043c\u0435\u043d\u0442": "\u0434oky\u043ce\u043d\u0442",
	} {
		if got := untrusted.Skeleton(in); got != want {
			t.Errorf("%+q: %+q, want %+q", in, got, want)
		}
	}
}

func FuzzSkeleton(f *testing.F) {
	for _, s := range append(untrustedtest.Hostile(), untrustedtest.Legitimate()...) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := untrusted.Skeleton(s)
		if again := untrusted.Skeleton(got); again != got {
			t.Fatalf("%+q: %+q became %+q", s, got, again)
		}
	})
}
