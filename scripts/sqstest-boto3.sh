#!/bin/sh
# boto3, the AWS SDK for Python, and with it the AWS CLI's library, against the
# embedded SQS server; or against another endpoint: scripts/sqstest-boto3.sh URL
set -eu
cd "$(dirname "$0")/.."
venv=.cache/boto3
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c 'import boto3' 2>/dev/null || "$venv/bin/pip" install -q 'boto3>=1.40,<2'
if [ $# -gt 0 ]; then
  exec "$venv/bin/python" scripts/sqstest-boto3.py "$1"
fi
work=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
go build -o "$work/serve" ./transport/sqs/sqstest/internal/serve
"$work/serve" >"$work/url" &
server=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
  [ ! -s "$work/url" ] || break
  sleep 0.2
done
"$venv/bin/python" scripts/sqstest-boto3.py "$(cat "$work/url")"
