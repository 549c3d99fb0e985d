# Job control, traps and signals.
sleep 30 &
job=$!
kill -STOP "$job"
kill -CONT "$job"
kill "$job"
wait "$job" 2>/dev/null # without job control a stop ends no wait
echo "ended by $?"
set -m
sleep 30 &
job=$!
kill %1
wait "$job" 2>/dev/null # not %1: a job that was told of is no longer a job
echo "ended by $?"
trap 'echo trapped' USR1
kill -USR1 $$
(sleep 0.05; echo later) &
wait
jobs | wc -l
