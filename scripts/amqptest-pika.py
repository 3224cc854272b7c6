"""What a client that is not Go sees: publish, confirm, consume, nack, dead-letter."""

import sys

import pika
from pika.exceptions import ChannelClosedByBroker, NackError, UnroutableError

params = pika.URLParameters(sys.argv[1])


def check(what, ok):
    print(("ok      " if ok else "FAILED  ") + what)
    if not ok:
        sys.exit(1)


conn = pika.BlockingConnection(params)
ch = conn.channel()
for q in ("pika.work", "pika.dead", "pika.full"):
    ch.queue_delete(q)
ch.queue_declare("pika.dead", durable=True)
ch.queue_declare("pika.work", durable=True, arguments={
    "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "pika.dead", "x-queue-type": "quorum"})

ch.confirm_delivery()
props = pika.BasicProperties(delivery_mode=2, message_id="m1", headers={
    "n": 1, "big": 2**40, "text": "ü", "list": [1, "a", True], "table": {"x": None}})
ch.basic_publish("", "pika.work", b"a" * 300_000, props, mandatory=True)
check("publish and confirm", True)

try:
    ch.basic_publish("", "pika.nowhere", b"x", mandatory=True)
    check("mandatory return", False)
except UnroutableError as e:
    check("mandatory return", e.messages[0].method.reply_code == 312)

method, got, body = next(ch.consume("pika.work", inactivity_timeout=5))
check("consume", body == b"a" * 300_000 and got.headers == props.headers and not method.redelivered)
ch.basic_nack(method.delivery_tag, requeue=True)
method, got, body = next(ch.consume("pika.work", inactivity_timeout=5))
check("nack and redelivery", method.redelivered and got.headers["x-delivery-count"] == 1)
ch.basic_nack(method.delivery_tag, requeue=False)
ch.cancel()

method, got, body = next(ch.consume("pika.dead", inactivity_timeout=5))
death = got.headers["x-death"][0]
check("dead-letter", death["reason"] == "rejected" and death["queue"] == "pika.work" and death["count"] == 1)
ch.basic_ack(method.delivery_tag)
ch.cancel()

ch.queue_declare("pika.full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"}, exclusive=True)
ch.basic_publish("", "pika.full", b"1")
try:
    ch.basic_publish("", "pika.full", b"2")
    check("nacked confirm", False)
except NackError:
    check("nacked confirm", True)

try:
    ch.queue_declare("pika.work", durable=False)
    check("channel error", False)
except ChannelClosedByBroker as e:
    check("channel error", e.reply_code == 406)
ch = conn.channel()
ch.queue_delete("pika.work")
ch.queue_delete("pika.dead")
conn.close()
check("close", True)
