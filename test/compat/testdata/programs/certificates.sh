# A key, a certificate made with it, its verification, and a digest.
set -euo pipefail
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 -subj /CN=loadout 2>/dev/null
openssl verify -CAfile cert.pem cert.pem
printf abc | openssl dgst -sha256 -r | cut -c1-8
openssl rand -hex 8 | tr -d '\n' | wc -c
