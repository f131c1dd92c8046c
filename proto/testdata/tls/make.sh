#!/bin/sh
# Makes the certificates of the TLS tests anew: an authority, and a server for 127.0.0.1 and localhost.
# They protect nothing, and hold for a hundred years so that no test breaks on a date.
set -eu
cd "$(dirname "$0")"
new_key() { openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "$1.key"; }
new_key ca
openssl req -x509 -new -key ca.key -days 36500 -subj "/CN=kgfleet test authority" -out ca.pem \
  -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign"
sign() {
  new_key "$1"
  printf 'subjectAltName=%s\nextendedKeyUsage=%s\nbasicConstraints=CA:FALSE\n' "$2" "$3" >"$1.ext"
  openssl req -new -key "$1.key" -subj "/CN=kgfleet test $1" |
    openssl x509 -req -CA ca.pem -CAkey ca.key -days 36500 -extfile "$1.ext" -out "$1.pem"
  rm "$1.ext"
}
sign server "IP:127.0.0.1,DNS:localhost" serverAuth
rm -f ca.key ca.srl
