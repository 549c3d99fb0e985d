package scan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/scan"
)

func TestFindSecrets(t *testing.T) {
	token := "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	key := "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END PRIVATE KEY-----"
	own := "lo_abcdefgh" + strings.Repeat("A1b2_-", 8) + "c"
	jwt := "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
	for text, want := range map[string][]string{
		"The token is " + token + ".":                      {token},
		"Twice: " + token + " and " + token:                {token},
		"before\n" + key + "\nafter":                       {key},
		"cut off: -----BEGIN PRIVATE KEY-----\nMIIEvQIBAD": {"-----BEGIN PRIVATE KEY-----\nMIIEvQIBAD"},
		"Use " + own + " here":                             {own},
		jwt:                                                {jwt},
		`password = "correct horse"`:                       nil, // spaces
		`password = "correct-horse-1"`:                     {"correct-horse-1"},
		"postgres://ada:tr0ub4dor@db/tides":                {"tr0ub4dor"},
		"Authorization: Bearer abcdef0123456789abcdef":     {"abcdef0123456789abcdef"},
		"the bearer internationalizations of words":        nil,
		"High water is at 10:30.":                          nil,
		"":                                                 nil,
	} {
		if got := scan.FindSecrets(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// What people and programs write: the value is found wherever it stands.
func TestFindSecretsInCommonForms(t *testing.T) {
	for text, want := range map[string]string{
		"DB_PASSWORD=Tr0ub4dor-and-3":                             "Tr0ub4dor-and-3",
		"DB_PASSWORD=swordfish":                                   "swordfish",
		"password: hunter2hunter2":                                "hunter2hunter2",
		"API_KEY=0123456789abcdef01":                              "0123456789abcdef01",
		`AWS_SECRET_ACCESS_KEY="wJalrXUtnFEMI/K7MDENG"`:           "wJalrXUtnFEMI/K7MDENG",
		"my password is hunter2hunter2.":                          "hunter2hunter2",
		"Password: `swordfish`":                                   "swordfish",
		"**Password:** hunter2hunter2":                            "hunter2hunter2",
		"密码：hunter2hunter2，请保密":                                   "hunter2hunter2",
		"密码是 hunter2hunter2":                                      "hunter2hunter2",
		"psql --password hunter22 tides":                          "hunter22",
		"curl -u ada:hunter22 https://db":                         "hunter22",
		"curl --user 'ada:hunter22' https://db":                   "hunter22",
		"PGPASSWORD=hunter22 psql":                                "hunter22",
		"https://h/x?access_token=a1b2c3d4e5&page=2":              "a1b2c3d4e5",
		"https://h/x?a=b&sig=a1b2c3d4":                            "a1b2c3d4",
		"AccountName=a;AccountKey=Zm9vYmFyMQ==;Suffix=x":          "Zm9vYmFyMQ==",
		"Cookie: session=a1b2c3d4; theme=dark":                    "a1b2c3d4",
		"redis://:hunter22@host/0":                                "hunter22",
		"[x](https://ada:short1@h/)":                              "short1",
		"postgres://ada:pa$sw0rdlong@db":                          "pa$sw0rdlong",
		"postgres://ada:p@ss{w}0rd@db":                            "p@ss{w}0rd",
		`{"body":"{\"password\": \"hunter2hunter2\"}"}`:           "hunter2hunter2",
		"https://hooks.slack.com/services/T012/B012/a1b2c3d4e5f6": "hooks.slack.com/services/T012/B012/a1b2c3d4e5f6",
		"sk-lf-12345678-9abc-4def-8123-456789abcdef":              "sk-lf-12345678-9abc-4def-8123-456789abcdef",
	} {
		if got := scan.FindSecrets(text); !slices.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestFindSecretsKeepsOrdinaryText(t *testing.T) {
	for _, text := range []string{
		"http://localhost:8080/index.html",
		"[docs](http://127.0.0.1:8484/api/v1/skills)",
		"http://localhost:8080/users/@ada",
		"ssh://git@example.org:2222/a/b",
		"sk-learn-based-classification",
		"sk-learn-based-classification-2024",
		"npm_config_registry_override",
		"hf_hub_download_something",
		"It starts with `-----BEGIN PRIVATE KEY-----` and the rest of the answer stays.",
		"It starts with -----BEGIN PRIVATE KEY----- and then come lines of base64 text.",
		"password: string;", `"password": "Password"`, "Password: required",
		"my password is incorrect", "the token is expired",
		"PASSWORD=$DB_PASSWORD", `password="${DB_PASSWORD}"`, "token = get_token2()", "password: ********",
		`"key": "ArrowDown1"`, "sort_key: created_at", "max_tokens: 4096",
		"docker run -u 1000:1000 tides", "passwd --password-stdin",
	} {
		if got := scan.FindSecrets(text); len(got) > 0 {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// The work is linear in the text: unclosed blocks, names and addresses do not add up.
func TestFindSecretsInHostileText(t *testing.T) {
	for _, part := range []string{"-----BEGIN PRIVATE KEY-----\n", "password=", "://a:", "cookie:", "token is "} {
		scan.FindSecrets(strings.Repeat(part, 1<<16/len(part)))
	}
}
