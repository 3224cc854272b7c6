# RabbitMQ nodes of the distribution's version, each with its own ports, data,
# cookie and a rabbitmqctl that reaches just it. They share an epmd of this checkout,
# so that neither the host's own node nor another checkout is ever met.
# shellcheck shell=bash

RABBIT_BIN=/usr/lib/rabbitmq/bin

rabbitmq_default_port() {
  case $1 in
    rabbitmq) echo 5672 ;;
    rabbitmq-faults) echo 5671 ;;
    rabbitmq-a) echo 5674 ;;
    rabbitmq-b) echo 5675 ;;
    rabbitmq40) echo 5640 ;;
    rabbitmq43) echo 5643 ;;
  esac
}

rabbitmq_ports() {
  AMQP_PORT=$(port "$1" amqp "$(rabbitmq_default_port "$1")")
  HTTP_PORT=$(port "$1" http $((10000 + $(rabbitmq_default_port "$1"))))
  DIST_PORT=$(port "$1" dist $((20000 + $(rabbitmq_default_port "$1"))))
}

rabbitmq_start() {
  local name=$1
  need "$name" "$RABBIT_BIN/rabbitmq-server" rabbitmq-server
  rabbitmq_epmd
  rabbitmq_ports "$name"
  rabbitmq_files "$name" "$RUN/$name" "$RUN/$name"
  launch "$name" env "${RABBIT_ENV[@]}" "$RABBIT_BIN/rabbitmq-server"
  # RabbitMQ 3.10 ends when it asks the other node of its cluster for feature flags while that
  # one is starting, too (badmap in rabbit_feature_flags): the next start finds it ready.
  if ! (await "$name" 240 rabbitmq_ready "$name") && ! running "$name"; then
    say "$name: once more"
    launch "$name" env "${RABBIT_ENV[@]}" "$RABBIT_BIN/rabbitmq-server"
  fi
  await "$name" 240 rabbitmq_ready "$name"
  rabbitmq_exports "$name"
}

# rabbitmq_files NAME HOST_DIR NODE_DIR: configuration and environment; NODE_DIR is
# HOST_DIR as the node sees it (they differ in a chroot).
rabbitmq_files() {
  local name=$1 host=$2 node=$3
  rabbitmq_home "$host"
  local plugins=rabbitmq_management,rabbitmq_shovel # the shovel is measured in bench/
  # Tests of consistent-hash exchanges use this node alone.
  case $name in rabbitmq-faults | rabbitmq4?) plugins+=,rabbitmq_consistent_hash_exchange ;; esac # 4.x takes its place in the matrix
  echo "[$plugins]." >"$host/enabled_plugins"
  cat >"$host/rabbitmq.conf" <<CONF
listeners.tcp.1 = 127.0.0.1:$AMQP_PORT
management.tcp.ip = 127.0.0.1
management.tcp.port = $HTTP_PORT
collect_statistics_interval = 1000
log.file = $node/rabbit.log
log.file.level = info
disk_free_limit.absolute = 50MB
CONF
  rabbitmq_env "$node" "longshore-$name@localhost"
  RABBIT_ENV+=(
    RABBITMQ_DIST_PORT="$DIST_PORT"
    RABBITMQ_CTL_DIST_PORT_MIN="$((DIST_PORT + 10000))"
    RABBITMQ_CTL_DIST_PORT_MAX="$((DIST_PORT + 10020))"
    ERL_EPMD_PORT="$(cat "$RUN/epmd/port.epmd")"
    ERL_EPMD_ADDRESS=127.0.0.1
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="$RABBIT_ERL_ARGS"
  )
  rabbitmq_write_ctl "$name"
}

# rabbitmq_home HOST_DIR: its folders, and the cookie that nodes of a cluster share.
rabbitmq_home() {
  mkdir -p "$1/home" "$1/data"
  ( umask 077; [ -s "$1/home/.erlang.cookie" ] || printf 'longshore' >"$1/home/.erlang.cookie" )
  chmod 400 "$1/home/.erlang.cookie"
}

# Two cores are shared with the tests: schedulers sleep instead of spinning.
RABBIT_ERL_ARGS="+sbwt none +sbwtdcpu none +sbwtdio none"

# rabbitmq_env NODE_DIR NODENAME: what every node gets.
rabbitmq_env() {
  RABBIT_ENV=(
    HOME="$1/home"
    RUNNING_UNDER_SYSTEMD=true # exec the VM: the pid is the node's, kill -9 is a real crash
    RABBITMQ_CONF_ENV_FILE=/dev/null
    RABBITMQ_NODENAME="$2"
    RABBITMQ_CONFIG_FILE="$1/rabbitmq.conf"
    RABBITMQ_ENABLED_PLUGINS_FILE="$1/enabled_plugins"
    RABBITMQ_MNESIA_BASE="$1/data"
    RABBITMQ_LOG_BASE="$1"
  )
}

rabbitmq_write_ctl() {
  {
    echo '#!/bin/sh'
    echo "# rabbitmqctl for the node $1 only; written by scripts/brokers."
    printf 'exec %s %s env' "${RABBIT_NETNS:+ip netns exec $RABBIT_NETNS}" "${RABBIT_CHROOT:+chroot $RABBIT_CHROOT}"
    printf ' %q' "${RABBIT_ENV[@]}"
    printf ' %s "$@"\n' "$RABBIT_BIN/rabbitmqctl"
  } >"$RUN/$1/rabbitmqctl"
  chmod +x "$RUN/$1/rabbitmqctl"
}

# rabbitmq_ready: the AMQP port answers a protocol header with Connection.Start,
# and the management API lets guest in.
rabbitmq_ready() {
  local first auth answer
  rabbitmq_ports "$1"
  first=$(
    exec 3<>"/dev/tcp/127.0.0.1/$AMQP_PORT" || exit 1
    printf 'AMQP\x00\x00\x09\x01' >&3
    timeout 5 head -c 11 <&3 | od -An -tu1 | tr -s ' \n' ' '
  ) 2>/dev/null
  [[ $first == " 1 0 0 "* && $first == *" 0 10 0 10"* ]] || return 1
  auth=$(printf guest:guest | base64)
  answer=$(http_status 127.0.0.1 "$HTTP_PORT" /api/whoami "Authorization: Basic $auth")
  if [[ $answer == *" 401 "* ]]; then # a test was killed between a change of the password and its cleanup
    "$RUN/$1/rabbitmqctl" -q change_password guest guest >>"$RUN/$1/log" 2>&1
    answer=$(http_status 127.0.0.1 "$HTTP_PORT" /api/whoami "Authorization: Basic $auth") # one that runs is not started again
  fi
  [[ $answer == *" 200 "* ]]
}

rabbitmq_exports() {
  {
    export_line AMQP_URL "amqp://guest:guest@127.0.0.1:$AMQP_PORT/"
    export_line AMQP_MANAGEMENT "http://guest:guest@127.0.0.1:$HTTP_PORT"
    export_line AMQP_NODE "$1"
    export_line RABBITMQCTL "$RUN/$1/rabbitmqctl"
  } >"$RUN/$1/env"
}

# rabbitmq_join NODE OTHER [OTHER_IN_ERLANG]: once; a node that is already a member is left alone.
rabbitmq_join() {
  local ctl=$RUN/$1/rabbitmqctl other=${3:-longshore-$2@localhost}
  if "$ctl" cluster_status --formatter json 2>/dev/null | grep -qF "\"$other\""; then return 0; fi
  {
    "$ctl" -q stop_app && "$ctl" -q reset && "$ctl" -q join_cluster "$other" && "$ctl" -q start_app
  } >>"$RUN/$1/log" 2>&1 || die "$1 could not join the cluster of $2; log: $RUN/$1/log"
  say "$1: clustered with $2"
}

# One name server for this checkout's nodes.
rabbitmq_epmd() {
  mkdir -p "$RUN/epmd"
  (
    flock -w 60 7 || die "epmd: lock held"
    if running epmd; then exit 0; fi
    launch epmd epmd -port "$(port epmd epmd 4369)" -address 127.0.0.1
    await epmd 10 open_port "$(cat "$RUN/epmd/port.epmd")"
  ) 7>"$RUN/epmd/lock"
}

rabbitmq_stop_epmd() {
  local name
  for name in "${KNOWN[@]}"; do
    case $name in rabbitmq*) if running "$name"; then return 0; fi ;; esac
  done
  if running epmd; then stop_one epmd 2>/dev/null; fi
}
