# Job control, traps and signals.
set -m
sleep 30 &
job=$!
kill -STOP "$job"
kill -CONT "$job"
kill "$job"
wait -f "$job" 2>/dev/null # until it ends, not until it stops
echo "ended by $?"
trap 'echo trapped' USR1
kill -USR1 $$
(sleep 0.05; echo later) &
wait
jobs | wc -l
