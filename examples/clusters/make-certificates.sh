#!/bin/sh
# Makes a certificate authority, one certificate for scheduler, workers and clients, and the settings
# of Dask that name them:
#
#     sh make-certificates.sh ~/.config/dask
#
# Whoever has node-key.pem can run code on the workers. Nothing needs ca-key.pem afterwards.
set -eu
mkdir -p "$1"
cd "$1"
umask 077
openssl req -x509 -newkey rsa:3072 -nodes -days 365 -subj "/CN=conformance" \
    -keyout ca-key.pem -out ca.pem
openssl req -newkey rsa:3072 -nodes -subj "/CN=node" -keyout node-key.pem -out node.csr
openssl x509 -req -in node.csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 365 \
    -out node.pem
rm node.csr
# Dask expands neither ~ nor variables in its settings.
cat > tls.yaml <<SETTINGS
distributed:
  comm:
    require-encryption: true
    tls:
      ca-file: $PWD/ca.pem
      scheduler: {cert: $PWD/node.pem, key: $PWD/node-key.pem}
      worker: {cert: $PWD/node.pem, key: $PWD/node-key.pem}
      client: {cert: $PWD/node.pem, key: $PWD/node-key.pem}
SETTINGS
