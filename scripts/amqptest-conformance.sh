#!/bin/sh
# amqp091-go's own test suite, with its integration tests, against amqptest; then
# pika, a client that is not Go. Fails below 130 passing tests, or on a failure that
# is not named below.
set -eu

cd "$(dirname "$0")/.."
minimum=130
work=$(mktemp -d)
server=
cleanup() {
	[ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server"; } || true
	chmod -R u+w "$work" && rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

# Tests that cannot pass, and why.
named='
TestIntegrationExchangeToExchangeBindAndUnbind|exchange-to-exchange bindings answer 540
TestConnectionRecoveryAutoDeleteExchangeCascade|exchange-to-exchange bindings answer 540
TestIntegrationTxCommit|transactions answer 540
TestIntegrationTxRollback|transactions answer 540
'

# start OUT ARGS...: runs the server, waits for its addresses, sets AMQP_URL and MANAGEMENT.
start() {
	out=$1
	shift
	: >"$out"
	"$work/serve" "$@" >"$out" 2>&1 &
	server=$!
	tries=0
	until grep -q '^MANAGEMENT=' "$out"; do
		tries=$((tries + 1))
		[ $tries -le 100 ] || { cat "$out" >&2; echo "amqptest did not start" >&2; exit 1; }
		sleep 0.05
	done
	AMQP_URL=$(sed -n 's/^AMQP_URL=//p' "$out")
	MANAGEMENT=$(sed -n 's/^MANAGEMENT=//p' "$out")
	export AMQP_URL MANAGEMENT
}

go build -o "$work/serve" ./transport/amqp/amqptest/internal/serve
module=$(go list -m -f '{{.Dir}}' github.com/rabbitmq/amqp091-go)
mkdir "$work/suite"
cp -R "$module/." "$work/suite/"
chmod -R u+w "$work/suite"

start "$work/server.out"
# The suite drops connections through the management API of a fixed address.
sed -i "s#http://localhost:15672#http://$MANAGEMENT#; s#http://localhost:\"+port+\"#http://$MANAGEMENT#" "$work/suite/internal/utils/"*.go
# What the suite calls rabbitmqctl raises and ends the memory alarm.
cat >"$work/rabbitmqctl" <<CTL
#!/bin/sh
[ "\$1" = set_vm_memory_high_watermark ] || exit 1
[ "\$2" = 0.4 ] && state=off || state=on
exec curl -sf -X POST "http://$MANAGEMENT/alarm/\$state"
CTL
chmod +x "$work/rabbitmqctl"

echo "amqp091-go $(basename "$module" | sed 's/.*@//') against amqptest (two to three minutes, most of it waiting)"
(cd "$work/suite" && RABBITMQ_RABBITMQCTL_PATH="$work/rabbitmqctl" \
	go test -tags integration -count=1 -timeout 10m -v . >"$work/suite.out" 2>&1) || true

# The tests that need a broker; the others use none.
grep -l '^//go:build integration' "$work/suite/"*_test.go | xargs sed -n 's/^func \(Test[A-Za-z0-9_]*\).*/\1/p' | grep -v '^TestMain$' | sort >"$work/broker.txt"
sed -n 's/^--- PASS: \(Test[^ ]*\).*/\1/p' "$work/suite.out" | sort >"$work/pass.txt"
sed -n 's/^--- FAIL: \([^ ]*\).*/\1/p' "$work/suite.out" | sort >"$work/fail.txt"
sed -n 's/^--- SKIP: \([^ ]*\).*/\1/p' "$work/suite.out" | sort >"$work/skip.txt"

pass=$(wc -l <"$work/pass.txt")
echo "passed $pass, $(comm -12 "$work/pass.txt" "$work/broker.txt" | wc -l) of the $(wc -l <"$work/broker.txt") that need a broker among them; failed $(wc -l <"$work/fail.txt"), skipped $(wc -l <"$work/skip.txt")"
status=0
while read -r test; do
	reason=$(echo "$named" | sed -n "s/^$test|//p")
	if [ -n "$reason" ]; then
		echo "  differs: $test: $reason"
	else
		echo "  FAILED:  $test"
		sed -n "/^=== RUN   $test\$/,/^--- FAIL: $test/p" "$work/suite.out" | head -n 40
		status=1
	fi
done <"$work/fail.txt"
while read -r test; do
	echo "  skipped: $test"
done <"$work/skip.txt"
if grep -q '^panic:' "$work/suite.out"; then
	sed -n '/^panic:/,$p' "$work/suite.out" | head -n 40
	status=1
fi
[ "$pass" -ge "$minimum" ] || { echo "fewer than $minimum tests passed"; status=1; }

scripts/amqptest-pika.sh "$AMQP_URL" || status=1
exit $status
