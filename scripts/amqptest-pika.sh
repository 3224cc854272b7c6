#!/bin/sh
# pika, RabbitMQ's Python client, against the broker at the URL given.
set -eu
cd "$(dirname "$0")/.."
venv=.cache/pika
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -c 'import pika' 2>/dev/null || "$venv/bin/pip" install -q 'pika==1.3.2'
exec "$venv/bin/python" scripts/amqptest-pika.py "$1"
