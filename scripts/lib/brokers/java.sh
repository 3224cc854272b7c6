# Kafka (KRaft nodes, each a cluster of its own) and ElasticMQ, from Maven artifacts.
# shellcheck shell=bash

KAFKA_VERSION=4.3.1
ELASTICMQ_VERSION=1.6.14

# jars NAME VERSION GROUP:ARTIFACT:VERSION...: fills $CACHE/NAME-VERSION/lib once.
# The folder appears only when it is complete.
jars() {
  local name=$1 dir=$CACHE/$1-$2 try work
  shift 2
  JARS=$dir/lib
  [ ! -d "$JARS" ] || return 0
  need "$name" mvn maven
  mkdir -p "$RUN/$name" # where nodes of another name are started, it has none
  say "$name: getting the jars"
  work=$(mktemp -d "$CACHE/$name.XXXXXX")
  pom "$@" >"$work/pom.xml"
  for try in 1 2 3; do
    if (cd "$work" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib -DincludeScope=runtime) >>"$RUN/$name/log" 2>&1; then
      mkdir -p "$dir"
      mv -T "$work/lib" "$JARS" 2>/dev/null || [ -d "$JARS" ]
      rm -rf "$work"
      return 0
    fi
    sleep $((try * 2))
  done
  rm -rf "$work"
  tail -n 20 "$RUN/$name/log" >&2
  die "$name: Maven could not get $*"
}

pom() {
  local spec group artifact version
  echo '<project><modelVersion>4.0.0</modelVersion><groupId>longshore</groupId><artifactId>broker</artifactId><version>1</version><dependencies>'
  for spec in "$@"; do
    IFS=: read -r group artifact version <<<"$spec"
    echo "<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency>"
  done
  echo '</dependencies></project>'
}

# kafka_jars [VERSION]
kafka_jars() { jars kafka "${1:-$KAFKA_VERSION}" "org.apache.kafka:kafka_2.13:${1:-$KAFKA_VERSION}" "org.apache.kafka:kafka-tools:${1:-$KAFKA_VERSION}" org.slf4j:slf4j-nop:1.7.36; }

kafka_start() {
  local name=$1 dir=$RUN/$1 broker controller login='' first=19092
  need "$name" java default-jre-headless
  kafka_jars
  [ "$name" = kafka ] || first=19292
  broker=$(port "$name" broker $first)
  controller=$(port "$name" controller $((first + 1)))
  kafka_properties "$dir/data" "$broker" "$controller" >"$dir/server.properties"
  if [ "$name" != kafka ]; then
    login=$(port "$name" login $((first + 2)))
    sed -i "/^\(advertised.\)*listeners=/s|\$|,LOGIN://127.0.0.1:$login|; /^listener.security/s|\$|,LOGIN:SASL_PLAINTEXT|" "$dir/server.properties"
    { kafka_quick_groups && kafka_logins; } >>"$dir/server.properties"
  fi
  if [ ! -s "$dir/data/meta.properties" ]; then
    rm -rf "$dir/data"
    java -cp "$JARS/*" kafka.tools.StorageTool format -t "$(java -cp "$JARS/*" kafka.tools.StorageTool random-uuid)" \
      -c "$dir/server.properties" >>"$dir/log" 2>&1 || die "$name: format failed; log: $dir/log"
  fi
  launch "$name" java -Xms256m -Xmx512m -XX:+UseSerialGC -cp "$JARS/*" kafka.Kafka "$dir/server.properties"
  await "$name" 240 kafka_ready "$name"
  export_line KAFKA_ADDRS "127.0.0.1:$broker" >"$dir/env"
  [ -z "$login" ] || export_line KAFKA_LOGIN "127.0.0.1:$login" >>"$dir/env"
}

# kafka_properties DATA BROKERPORT CONTROLLERPORT
kafka_properties() {
  cat <<CONF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$3
listeners=PLAINTEXT://127.0.0.1:$2,CONTROLLER://127.0.0.1:$3
advertised.listeners=PLAINTEXT://127.0.0.1:$2
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=8
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
CONF
}

# kafka_quick_groups: who tests silence waits for a session; the default's 45 s are long.
kafka_quick_groups() {
  cat <<CONF
group.min.session.timeout.ms=1000
group.consumer.min.session.timeout.ms=1000
group.consumer.session.timeout.ms=4000
group.consumer.min.heartbeat.interval.ms=100
group.consumer.heartbeat.interval.ms=300
log.retention.check.interval.ms=1000
log.segment.delete.delay.ms=1000
CONF
}

# kafka_logins: a listener where app may do everything and guest nothing; whoever comes
# with a token is who it says, for 4 s.
kafka_logins() {
  cat <<CONF
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:app
listener.name.login.sasl.enabled.mechanisms=PLAIN,OAUTHBEARER
listener.name.login.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_app="app-secret" user_guest="guest-secret";
listener.name.login.oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;
listener.name.login.oauthbearer.connections.max.reauth.ms=4000
CONF
}

# kafka_ready NAME: answers an ApiVersions request, which a KRaft broker does only once it is up.
kafka_ready() {
  local size
  size=$(
    exec 3<>"/dev/tcp/127.0.0.1/$(cat "$RUN/$1/port.broker")" || exit 1
    printf '\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff' >&3
    timeout 5 head -c 4 <&3 | od -An -tu1 | tr -d ' \n'
  ) 2>/dev/null
  [ -n "$size" ]
}

elasticmq_start() {
  local dir=$RUN/elasticmq port
  need elasticmq java default-jre-headless
  jars elasticmq "$ELASTICMQ_VERSION" "org.elasticmq:elasticmq-rest-sqs_2.13:$ELASTICMQ_VERSION" "org.elasticmq:elasticmq-server_2.13:$ELASTICMQ_VERSION"
  port=$(port elasticmq http 9324)
  cat >"$dir/emq.conf" <<CONF
include classpath("application.conf")
node-address { protocol = http, host = "127.0.0.1", port = $port, context-path = "" }
rest-sqs { enabled = true, bind-port = $port, bind-hostname = "127.0.0.1", sqs-limits = strict }
rest-stats { enabled = false }
CONF
  launch elasticmq java "-Xmx${ELASTICMQ_HEAP:-256m}" -XX:+UseSerialGC -Dconfig.file="$dir/emq.conf" -cp "$JARS/*" org.elasticmq.server.Main
  await elasticmq 240 elasticmq_ready elasticmq
  export_line SQS_ENDPOINT "http://127.0.0.1:$port" >"$dir/env"
}

elasticmq_ready() { http_ok "$(cat "$RUN/elasticmq/port.http")" '/?Action=ListQueues'; }
