#!/bin/sh
# Installs Debian's gRPC and protobuf for Python, with which the tests call the service as a foreign client. The package itself never
# needs it. Does nothing where it is there; fails, saying why, where it can't be installed.
set -eu

python=/usr/bin/python3

if "$python" -c 'import grpc, google.protobuf' 2>/dev/null; then exit 0; fi
if [ "$(id -u)" -ne 0 ]; then
  echo 'python3-grpcio is not installed, and only root can install it: apt-get install python3-grpcio' >&2
  exit 1
fi
if ! command -v apt-get >/dev/null; then
  echo 'python3-grpcio is not installed, and this system has no apt-get' >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
# Lists that are missing or old make a package look gone.
apt-get install -y --no-install-recommends python3-grpcio python3-protobuf || {
  apt-get update && apt-get install -y --no-install-recommends python3-grpcio python3-protobuf
}
"$python" -c 'import grpc, google.protobuf'
