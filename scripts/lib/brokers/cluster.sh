# Clusters of three, for tests that cut links between nodes: RabbitMQ 4.3 (rabbitmq-n1 to n3)
# and Kafka (kafka-n1 to n3). Each node has a network namespace of its own on a bridge, so a
# link can be taken away from one node, or between two of them. Root only.
# shellcheck shell=bash

# node_hash: checkouts beside each other get networks of their own.
node_hash() { printf %s "$RUN" | cksum | cut -d' ' -f1; }
node_net() { echo "10.77.$(($(node_hash) % 250))"; }
node_bridge() { echo "ls$(($(node_hash) % 10000))"; }
node_space() { echo "$(node_bridge)-${1:0:1}${1: -1}"; }

# node_ip NAME: .11 to .13 for RabbitMQ, .21 to .23 for Kafka.
node_ip() { case $1 in rabbitmq-n?) echo "$(node_net).1${1: -1}" ;; kafka-n?) echo "$(node_net).2${1: -1}" ;; esac; }

# node_up NAME: its namespace, and its link to the bridge.
node_up() {
  local space bridge
  space=$(node_space "$1") bridge=$(node_bridge)
  [ "$(id -u)" -eq 0 ] && command -v ip >/dev/null || impossible "$1" "needs root and iproute2 (a network namespace)"
  (
    flock -w 60 7 || exit 4
    ip link show "$bridge" >/dev/null 2>&1 || {
      ip link add "$bridge" type bridge && ip addr add "$(node_net).1/24" dev "$bridge" && ip link set "$bridge" up
    }
    if ip netns list | grep -q "^$space\b"; then exit 0; fi
    { ip netns add "$space" && ip link add "$space" type veth peer name eth0 netns "$space" &&
      ip link set "$space" master "$bridge" && ip link set "$space" up &&
      ip -n "$space" addr add "$(node_ip "$1")/24" dev eth0 && ip -n "$space" link set eth0 up && ip -n "$space" link set lo up; } || { ip netns del "$space" 2>/dev/null; exit 1; }
  ) 7>"$RUN/net.lock" || case $? in
    4) die "$1: another start has had the bridge for a minute ($RUN/net.lock)" ;;
    *) impossible "$1" "this machine does not allow network namespaces" ;;
  esac
}

# node_down NAME: what still runs in the namespace (epmd), and the namespace. The bridge goes
# with the last one.
node_down() {
  local space
  space=$(node_space "$1")
  command -v ip >/dev/null || return 0
  ip netns list 2>/dev/null | grep -q "^$space\b" || return 0
  ip netns pids "$space" | xargs -r kill -9 2>/dev/null || true
  ip link del "$space" 2>/dev/null || true # the kernel takes its time with the namespace, and the name of the link is needed again
  ip netns del "$space" || true
  ip netns list | grep -q "^$(node_bridge)-" || ip link del "$(node_bridge)" 2>/dev/null || true
}

rabbitnode_start() {
  local name=$1 node_dir
  RABBIT_CHROOT=$CACHE/rabbitmq43
  [ "$(id -u)" -eq 0 ] || impossible "$name" "needs root (debootstrap, chroot)"
  (
    flock -w 900 7 || die "$name: another start builds the folder"
    chroot_build rabbitmq43 "$name"
    mountpoint -q "$RABBIT_CHROOT/proc" || mount --bind /proc "$RABBIT_CHROOT/proc" || die "$name: cannot mount /proc into $RABBIT_CHROOT"
  ) 7>"$CACHE/rabbitmq43.lock" || exit $?
  node_up "$name"
  node_dir=/var/lib/longshore-$(node_hash)-$name
  rabbitnode_files "$name" "$RABBIT_CHROOT$node_dir" "$node_dir"
  launch "$name" ip netns exec "$RABBIT_NETNS" chroot "$RABBIT_CHROOT" env "${RABBIT_ENV[@]}" "$RABBIT_BIN/rabbitmq-server"
  await "$name" 240 rabbitnode_ready "$name"
  {
    export_line AMQP_URL "amqp://guest:guest@$(node_ip "$name"):5672/"
    export_line AMQP_MANAGEMENT "http://guest:guest@$(node_ip "$name"):15672"
    export_line AMQP_NODE "$name"
    export_line RABBITMQCTL "$RUN/$name/rabbitmqctl"
    export_line NODE_SPACE "$RABBIT_NETNS"
  } >"$RUN/$name/env"
}

rabbitnode_files() {
  local name=$1 host=$2 node=$3
  RABBIT_NETNS=$(node_space "$name")
  rabbitmq_home "$host"
  echo '[rabbitmq_management].' >"$host/enabled_plugins"
  cat >"$host/rabbitmq.conf" <<CONF
loopback_users = none
collect_statistics_interval = 1000
log.file = $node/rabbit.log
log.file.level = info
disk_free_limit.absolute = 50MB
cluster_partition_handling = pause_minority
CONF
  rabbitmq_env "$node" "rabbit@$(node_ip "$name")"
  # Silence between nodes is noticed after 8 s instead of a minute.
  RABBIT_ENV+=(RABBITMQ_USE_LONGNAME=true RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="$RABBIT_ERL_ARGS -kernel net_ticktime 8")
  rabbitmq_write_ctl "$name"
}

rabbitnode_ready() { http_at "$(node_ip "$1")" 15672 /api/whoami "Authorization: Basic $(printf guest:guest | base64)"; }

# rabbitnode_join: n2 and n3 to n1, once.
rabbitnode_join() {
  local other
  for other in rabbitmq-n2 rabbitmq-n3; do
    rabbitmq_join "$other" rabbitmq-n1 "rabbit@$(node_ip rabbitmq-n1)"
    await "$other" 60 rabbitnode_ready "$other"
  done
}

# kafkanode_start NAME: KAFKA_NODE_VERSION is another version than the usual one, to be
# upgraded from.
kafkanode_start() {
  local version=${KAFKA_NODE_VERSION:-$KAFKA_VERSION} name=$1 dir=$RUN/$1 ip voters=() i
  need "$name" java default-jre-headless
  (
    flock -w 900 7 || die "$name: another start gets the jars"
    kafka_jars "$version"
  ) 7>"$CACHE/kafka.lock" || exit $?
  kafka_jars "$version" # they are there
  node_up "$name"
  ip=$(node_ip "$name")
  for i in 1 2 3; do voters+=("$i@$(node_ip "kafka-n$i"):9093"); done
  kafka_properties "$dir/data" 9092 9093 | sed \
    -e "s/^node.id=.*/node.id=${name: -1}/" \
    -e "s/^controller.quorum.voters=.*/controller.quorum.voters=$(IFS=,; echo "${voters[*]}")/" \
    -e "/^\(advertised.\)*listeners=/s/127.0.0.1/$ip/g" -e 's/replication.factor=1$/replication.factor=3/; s/min.isr=1$/min.isr=2/' >"$dir/server.properties"
  { kafka_quick_groups; kafkanode_quick_cluster; } >>"$dir/server.properties"
  # A version cannot read what a later one has written.
  if [ ! -s "$dir/data/meta.properties" ] || [ "$(printf '%s\n' "$(cat "$dir/version" 2>/dev/null || echo "$KAFKA_VERSION")" "$version" | sort -V | tail -n 1)" != "$version" ]; then
    rm -rf "$dir/data"
    java -cp "$JARS/*" kafka.tools.StorageTool format -t bG9uZ3Nob3JlLWNsdXN0ZQ -c "$dir/server.properties" >>"$dir/log" 2>&1 || die "$name: format failed; log: $dir/log"
  fi
  echo "$version" >"$dir/version"
  launch "$name" ip netns exec "$(node_space "$name")" java -Xms128m -Xmx512m -XX:+UseSerialGC -cp "$JARS/*" kafka.Kafka "$dir/server.properties"
  await "$name" 240 kafkanode_ready "$name"
  {
    export_line KAFKA_ADDRS "$ip:9092"
    export_line NODE_SPACE "$(node_space "$name")"
  } >"$dir/env"
}

# kafkanode_quick_cluster: failures are noticed within seconds.
kafkanode_quick_cluster() {
  cat <<CONF
default.replication.factor=3
min.insync.replicas=2
broker.session.timeout.ms=4000
broker.heartbeat.interval.ms=500
replica.lag.time.max.ms=4000
controller.quorum.election.timeout.ms=1500
controller.quorum.fetch.timeout.ms=2500
controlled.shutdown.enable=true
CONF
}

# kafkanode_ready NAME: a broker answers only once the controllers have a leader, so each
# waits for one of the others.
kafkanode_ready() { (exec 3<>"/dev/tcp/$(node_ip "$1")/9092") 2>/dev/null; }
