# Job control, traps and signals.
set -m
sleep 30 &
job=$!
kill -STOP "$job"
kill -CONT "$job"
kill "$job"
while kill -0 "$job" 2>/dev/null; do # a stop that was noticed late ends a wait too
	wait "$job" 2>/dev/null
	ended=$?
done
echo "ended by $ended"
trap 'echo trapped' USR1
kill -USR1 $$
(sleep 0.05; echo later) &
wait
jobs | wc -l
