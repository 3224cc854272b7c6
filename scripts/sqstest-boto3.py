"""boto3's plain calls against an SQS server: sqstest-boto3.py URL"""

import sys
import time

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

c = boto3.client(
    "sqs", endpoint_url=sys.argv[1], region_name="us-east-1",
    aws_access_key_id="test", aws_secret_access_key="test", config=Config(retries={"max_attempts": 0}))
done = 0


def check(what, ok):
    global done
    if not ok:
        sys.exit("failed: " + what)
    done += 1


def code(what, want, call, **args):
    try:
        call(**args)
    except ClientError as e:
        check(f"{what}: {e.response['Error']['Code']}", e.response["Error"]["Code"] == want)
        return e
    sys.exit(f"failed: {what}: no error")


tag = str(int(time.time() * 1000))
orders, dead, fifo = "orders-" + tag, "dead-" + tag, "orders-" + tag + ".fifo"

d = c.create_queue(QueueName=dead)["QueueUrl"]
arn = c.get_queue_attributes(QueueUrl=d, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
q = c.create_queue(QueueName=orders, Attributes={
    "VisibilityTimeout": "5", "RedrivePolicy": '{"deadLetterTargetArn":"%s","maxReceiveCount":"2"}' % arn}, tags={"team": "shop"})["QueueUrl"]
check("url", c.get_queue_url(QueueName=orders)["QueueUrl"] == q)
check("tags", c.list_queue_tags(QueueUrl=q)["Tags"] == {"team": "shop"})
check("list", c.list_queues(QueueNamePrefix=orders)["QueueUrls"] == [q])
check("sources", c.list_dead_letter_source_queues(QueueUrl=d)["queueUrls"] == [q])

# boto3 checks the checksum of the body by itself, and that of the attributes.
s = c.send_message(QueueUrl=q, MessageBody="zw\u00f6lf", MessageAttributes={
    "text": {"DataType": "String", "StringValue": "v\u00e9"},
    "number": {"DataType": "Number", "StringValue": "42.5"},
    "bytes": {"DataType": "Binary", "BinaryValue": b"\x00\x01\xfe\xff"}})
check("attribute checksum", len(s["MD5OfMessageAttributes"]) == 32)
m = c.receive_message(QueueUrl=q, MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"], WaitTimeSeconds=1)["Messages"][0]
check("body", m["Body"] == "zw\u00f6lf" and m["MessageId"] == s["MessageId"])
check("attributes", m["MessageAttributes"]["bytes"]["BinaryValue"] == b"\x00\x01\xfe\xff" and m["MessageAttributes"]["number"]["StringValue"] == "42.5")
check("system attributes", m["Attributes"]["ApproximateReceiveCount"] == "1")
check("checksums agree", m["MD5OfMessageAttributes"] == s["MD5OfMessageAttributes"])
c.change_message_visibility(QueueUrl=q, ReceiptHandle=m["ReceiptHandle"], VisibilityTimeout=0)
m = c.receive_message(QueueUrl=q, AttributeNames=["All"])["Messages"][0]
check("second receive", m["Attributes"]["ApproximateReceiveCount"] == "2")
c.delete_message(QueueUrl=q, ReceiptHandle=m["ReceiptHandle"])
c.delete_message(QueueUrl=q, ReceiptHandle=m["ReceiptHandle"])

out = c.send_message_batch(QueueUrl=q, Entries=[{"Id": "good", "MessageBody": "x"}, {"Id": "late", "MessageBody": "x", "DelaySeconds": 901}])
check("batch", [x["Id"] for x in out["Successful"]] == ["good"] and out["Failed"][0]["Id"] == "late" and out["Failed"][0]["SenderFault"])
for _ in range(2):
    m = c.receive_message(QueueUrl=q)["Messages"][0]
    out = c.change_message_visibility_batch(QueueUrl=q, Entries=[
        {"Id": "a", "ReceiptHandle": m["ReceiptHandle"], "VisibilityTimeout": 0}, {"Id": "b", "ReceiptHandle": "garbage", "VisibilityTimeout": 0}])
    check("visibility batch", out["Successful"] == [{"Id": "a"}] and out["Failed"][0]["Id"] == "b")
check("exhausted", "Messages" not in c.receive_message(QueueUrl=q))
m = c.receive_message(QueueUrl=d)["Messages"][0]
c.change_message_visibility(QueueUrl=d, ReceiptHandle=m["ReceiptHandle"], VisibilityTimeout=0)
c.start_message_move_task(SourceArn=arn)
check("moved back", c.list_message_move_tasks(SourceArn=arn)["Results"][0]["ApproximateNumberOfMessagesMoved"] == 1)
m = c.receive_message(QueueUrl=q, WaitTimeSeconds=1)["Messages"][0]
out = c.delete_message_batch(QueueUrl=q, Entries=[{"Id": "a", "ReceiptHandle": m["ReceiptHandle"]}])
check("delete batch", out["Successful"] == [{"Id": "a"}])

f = c.create_queue(QueueName=fifo, Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"})["QueueUrl"]
for body in ("1", "2", "2", "3"):
    c.send_message(QueueUrl=f, MessageBody=body, MessageGroupId="g")
ms = c.receive_message(QueueUrl=f, MaxNumberOfMessages=10, MessageSystemAttributeNames=["MessageGroupId", "SequenceNumber"])["Messages"]
check("fifo", [x["Body"] for x in ms] == ["1", "2", "3"] and ms[0]["Attributes"]["SequenceNumber"] < ms[1]["Attributes"]["SequenceNumber"])
c.purge_queue(QueueUrl=f)

start = time.time()
check("long poll", "Messages" not in c.receive_message(QueueUrl=q, WaitTimeSeconds=1) and 0.9 < time.time() - start < 2)
code("missing queue", "AWS.SimpleQueueService.NonExistentQueue", c.get_queue_url, QueueName="nowhere-" + tag)
code("bad receipt", "ReceiptHandleIsInvalid", c.delete_message, QueueUrl=q, ReceiptHandle="garbage")
code("bad characters", "InvalidMessageContents", c.send_message, QueueUrl=q, MessageBody="\u0001")
code("too large", "InvalidParameterValue", c.send_message, QueueUrl=q, MessageBody="x" * (1048576 + 1))
code("exists", "QueueAlreadyExists", c.create_queue, QueueName=orders, Attributes={"VisibilityTimeout": "6"})
code("purge twice", "AWS.SimpleQueueService.PurgeQueueInProgress", c.purge_queue, QueueUrl=f)
for url in (q, d, f):
    c.delete_queue(QueueUrl=url)
code("deleted", "AWS.SimpleQueueService.NonExistentQueue", c.send_message, QueueUrl=q, MessageBody="x")
print(f"boto3 {boto3.__version__}: {done} checks passed")
