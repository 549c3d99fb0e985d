# Process substitution and named pipes.
diff <(seq 1 5) <(seq 2 6) | grep -c '^[<>]'
paste -sd+ <(seq 1 4) | tee >(cat >/dev/null)
mkfifo pipe
echo through >pipe &
cat pipe
wait
