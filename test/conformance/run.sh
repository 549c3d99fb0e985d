#!/usr/bin/env bash
# Runs the official MCP conformance suite against Loadout; see README.md.
set -euo pipefail

version=0.2.0-alpha.12 # of the suite
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../.." && pwd)
mkdir -p "${LOADOUT_TEST_CACHE:-$repo/.cache}/conformance"
cache=$(cd "${LOADOUT_TEST_CACHE:-$repo/.cache}/conformance" && pwd)
suite=$cache/suite-$version
results=$cache/results
work=$(mktemp -d)
pid= behind= url=

end() {
	[[ -n $1 ]] || return 0
	kill "$1" 2>/dev/null || true
	for ((i = 0; i < 50; i++)); do
		kill -0 "$1" 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}
stop() {
	end "$pid"
	pid=
}
trap 'stop; end "$behind"; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# The suite needs Node 22; the npm package of that name brings it.
if [[ ! -d $suite ]]; then
	echo "conformance: installing the suite and Node 22 in $suite"
	rm -rf "$suite.part"
	npm install --prefix "$suite.part" --no-audit --no-fund --no-update-notifier --loglevel=error \
		node@22 "@modelcontextprotocol/conformance@$version"
	mv "$suite.part" "$suite"
fi
node=$suite/node_modules/node/bin/node
conformance() {
	"$node" "$suite/node_modules/@modelcontextprotocol/conformance/dist/index.js" "$@"
}

export CGO_ENABLED=0
ln -s "$(cd "$repo" && go run ./internal/testprogram/build cmd/loadout)" "$work/loadout"
(cd "$repo" && go build -buildvcs=false -ldflags='-s -w' -o "$work/" ./test/conformance/{server,report,proxy,client} \
	github.com/modelcontextprotocol/go-sdk/conformance/everything-server)
rm -rf "$results"
mkdir -p "$results" "$work/home"

# start COMMAND… starts a server that knows nothing of this machine, and waits
# until it says where it is.
start() {
	stop
	: >"$work/out" # or the address of the server before is read
	(cd "$work/home" && exec env -i PATH="$PATH" HOME="$work/home" "$@") >"$work/out" 2>&1 &
	pid=$!
	for ((i = 0; i < 150; i++)); do
		if url=$(grep -oEm1 'http://127\.0\.0\.1:[0-9]+/mcp' "$work/out"); then return; fi
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	echo "conformance: $1 does not serve:"
	cut -c1-300 "$work/out"
	exit 1
}

# through FLAG starts the SDK's server for the suite, and direct exposure in
# front of it.
through() {
	local port
	end "$behind"
	port=$("$node" -e 's=require("net").createServer().listen(0,"127.0.0.1",()=>{console.log(s.address().port);s.close()})')
	"$work/everything-server" -http="127.0.0.1:$port" "$1" >"$work/behind" 2>&1 &
	behind=$!
	for ((i = 0; i < 150; i++)); do
		(: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
		sleep 0.1
	done
	start "$work/proxy" "http://127.0.0.1:$port/mcp"
}

# requirements NAME REVISION EXPECTED runs what a revision requires.
requirements() {
	local name=$1 revision=$2 expected=$here/$3 dir=$results/$1-$2 code=0
	conformance list --requirements "$revision" | sed -n '/^Server scenarios/,/^$/s/^  - //p' >"$work/scored"
	conformance server --url "$url" --requirements "$revision" --expected-failures "$expected" -o "$dir" >"$dir.log" 2>&1 || code=$?
	if "$work/report" -name "$name $revision" -scored "$work/scored" -expected "$expected" "$dir"; then
		((code == 0)) && return
		echo "  the suite itself ended with $code:"
		tail -5 "$dir.log" | cut -c1-300
	fi
	failed=1
}

# client REVISION runs what a revision requires of a client.
client() {
	local revision=$1 expected=$here/client.yaml dir=$results/client-$1
	conformance list --requirements "$revision" | sed -n '/^Client scenarios/,/^$/s/^  - //p' >"$work/scored"
	conformance client --command "$work/client" --requirements "$revision" -o "$dir" >"$dir.log" 2>&1 || true # the report judges
	"$work/report" -name "client $revision" -scored "$work/scored" -expected "$expected" "$dir" || failed=1
}

# clientskills runs the client scenarios of the Skills extension, which is of no
# revision, in both eras.
clientskills() {
	local era scenario dir
	for era in legacy modern; do
		dir=$results/client-skills-$era
		for scenario in no-prefetch verify-digest verify-size verify-frontmatter; do
			LOADOUT_CONFORMANCE_ERA=$era conformance client --command "$work/client" --scenario "sep-2640-client-$scenario" -o "$dir" >>"$dir.log" 2>&1 || true # the report judges
		done
		"$work/report" -name "client, skills, $era" -expected "$here/client.yaml" "$dir" || failed=1
	done
}

# skills NAME EXPECTED runs the scenarios of the Skills extension, which is of
# no revision, in both eras.
skills() {
	local name=$1 expected=$here/$2 revision scenario dir
	for revision in 2025-11-25 2026-07-28; do
		dir=$results/$name-skills-$revision
		for scenario in enumeration manifest directory; do
			conformance server --url "$url" --scenario "sep-2640-skills-$scenario" --spec-version "$revision" --force -o "$dir" >>"$dir.log" 2>&1 || failed=1
		done
		"$work/report" -name "$name, skills, $revision" -expected "$expected" "$dir" || failed=1
	done
}

failed=0
start "$work/loadout" mcp --http 127.0.0.1:0
skills bundled expected.yaml
start "$work/loadout" mcp --http 127.0.0.1:0 --skills "$here/testdata/skills"
skills plain expected.yaml
requirements plain 2025-11-25 expected.yaml
requirements plain 2026-07-28 expected.yaml
start "$work/server" -skills "$here/testdata/skills"
skills fixtures fixtures.yaml
requirements fixtures 2025-11-25 fixtures.yaml
requirements fixtures 2026-07-28 fixtures.yaml
through -stateless=false
requirements through 2025-11-25 through.yaml
through -stateless
requirements through 2026-07-28 through.yaml
stop
client 2025-11-25
client 2026-07-28
clientskills
exit $failed
