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
pid= url=

stop() {
	[[ -n $pid ]] || return 0
	kill "$pid" 2>/dev/null || true
	for ((i = 0; i < 50; i++)); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL "$pid" 2>/dev/null || true
	wait "$pid" 2>/dev/null || true
	pid=
}
trap 'stop; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# The suite needs Node 22; the npm package of that name brings it.
if [[ ! -d $suite ]]; then
	echo "conformance: installing the suite and Node 22 in $suite"
	rm -rf "$suite.part"
	npm install --prefix "$suite.part" --no-audit --no-fund --no-update-notifier --loglevel=error \
		node@22 "@modelcontextprotocol/conformance@$version"
	mv "$suite.part" "$suite"
fi
conformance() {
	"$suite/node_modules/node/bin/node" "$suite/node_modules/@modelcontextprotocol/conformance/dist/index.js" "$@"
}

(cd "$repo" && go build -o "$work/" ./cmd/loadout ./test/conformance/server ./test/conformance/report)
rm -rf "$results"
mkdir -p "$results" "$work/home"

# start COMMAND… starts a server that knows nothing of this machine, and waits
# until it says where it is.
start() {
	stop
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
stop
exit $failed
