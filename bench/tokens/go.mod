module github.com/loadout-dev/loadout/bench/tokens

go 1.26.0

require github.com/loadout-dev/loadout v0.0.0

replace github.com/loadout-dev/loadout => ../..
