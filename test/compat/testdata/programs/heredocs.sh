# Here-documents, here-strings, arrays and arithmetic.
name=world
cat <<TEXT
hello $name $((6 * 7))
TEXT
cat <<'TEXT' >file.txt
$name stays
TEXT
read -r first _ <<<"$(<file.txt)"
declare -A map=([a]=1 [b]=2)
echo "$first ${#map[@]} ${name^^}"
