# Shared by scripts/brokers: words to the user, processes, ports, probes, exports.
# shellcheck shell=bash

say() { printf 'brokers: %s\n' "$*" >&2; }
warn() { printf 'brokers: WARNING: %s\n' "$*" >&2; }
die() { printf 'brokers: %s\n' "$*" >&2; exit 1; }

# impossible NAME WHY: the machine cannot have it (no root, no runtime); not a fault.
impossible() {
  : >"$RUN/$1/impossible"
  say "$1: $2"
  exit 3
}

kind_of() {
  case $1 in
    rabbitmq4?) echo chroot ;;
    rabbitmq-n?) echo rabbitnode ;;
    kafka-n?) echo kafkanode ;;
    postgres-?) echo pgpair ;;
    rabbitmq*) echo rabbitmq ;;
    kafka*) echo kafka ;;
    *) echo "$1" ;;
  esac
}

variable_of() {
  case $1 in
    rabbitmq) echo AMQP_URL ;;
    kafka) echo KAFKA_ADDRS ;;
    elasticmq) echo SQS_ENDPOINT ;;
    postgres) echo PG_DSN ;;
    mariadb) echo MARIADB_DSN ;;
    *) echo "" ;;
  esac
}

# given NAME: the caller brought a broker of their own. A value that we wrote
# ourselves (a sourced env file) is not one.
given() {
  local variable value
  variable=$(variable_of "$1")
  [ -n "$variable" ] || return 1
  value=${!variable:-}
  [ -n "$value" ] || return 1
  ! grep -qsF "export $variable='$value'" "$RUN/$1/env" "$RUN/$1/env.last"
}

# lock_instance NAME: one start or stop of an instance at a time; held until the
# calling subshell ends.
lock_instance() {
  mkdir -p "$RUN/$1"
  exec 9>"$RUN/$1/lock"
  flock -w 900 9 || die "$1: another scripts/brokers has been busy with it for 15 minutes ($RUN/$1/lock)"
}

running() {
  local pid
  pid=$(cat "$RUN/$1/pid" 2>/dev/null) || return 1
  [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && same_process "$1" "$pid"
}

# same_process: a pid that was reused after a reboot is not ours. The start time
# (field 22 of stat, counted behind the command name) tells them apart.
start_time() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
same_process() {
  [ -r "/proc/$2/stat" ] || return 0
  ! grep -q '^[0-9]* (.*) [ZX]' "/proc/$2/stat" || return 1 # dead, not reaped yet
  [ "$(start_time "$2")" = "$(cat "$RUN/$1/started" 2>/dev/null)" ]
}

# launch NAME CMD...: in the background, away from the caller's terminal, job
# and lock; the process itself becomes CMD, so that the pid is the server's.
launch() {
  local name=$1
  shift
  setsid bash -c 'echo $$ >"$1"; shift; exec "$@"' launch "$RUN/$name/pid.new" "$@" \
    </dev/null >>"$RUN/$name/log" 2>&1 7>&- 8>&- 9>&- &
  until [ -s "$RUN/$name/pid.new" ]; do sleep 0.05; done
  start_time "$(cat "$RUN/$name/pid.new")" >"$RUN/$name/started"
  mv "$RUN/$name/pid.new" "$RUN/$name/pid"
}

# await NAME SECONDS CMD...: polls until CMD succeeds; gives up early when the process died.
await() {
  local name=$1 deadline=$((SECONDS + $2))
  shift 2
  until "$@" 2>/dev/null; do
    if ! running "$name"; then
      tail -n 20 "$RUN/$name/log" >&2
      die "$name ended while starting; log: $RUN/$name/log"
    fi
    if [ "$SECONDS" -ge "$deadline" ]; then
      tail -n 20 "$RUN/$name/log" >&2
      die "$name was not ready in time; log: $RUN/$name/log"
    fi
    sleep 0.2
  done
}

await_exit() {
  local deadline=$((SECONDS + $2))
  while running "$1"; do
    [ "$SECONDS" -lt "$deadline" ] || return 1
    sleep 0.1
  done
}

stop_one() {
  local name=$1
  if running "$name"; then
    kill -CONT "$(cat "$RUN/$name/pid")" 2>/dev/null || true
    kill -TERM "$(cat "$RUN/$name/pid")" 2>/dev/null || true
    if ! await_exit "$name" 30; then
      warn "$name did not stop in 30 s, killing it"
      kill -KILL "$(cat "$RUN/$name/pid")" 2>/dev/null || true
      await_exit "$name" 10 || true
    fi
    say "$name: stopped"
  fi
  rm -f "$RUN/$name/pid" "$RUN/$name/keep"
  case $name in *-n?) node_down "$name" ;; esac
  case $name in rabbitmq4?) umount "$CACHE/$name/proc" 2>/dev/null || true ;; esac # busy: another checkout's
  [ ! -e "$RUN/$name/env" ] || mv -f "$RUN/$name/env" "$RUN/$name/env.last"
}

open_port() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# port NAME LABEL DEFAULT: the port the instance has used before, else the default,
# else the next free one (another checkout or the user's own server has it).
port() {
  local file=$RUN/$1/port.$2 port=$3 try
  # A server that was killed can take a moment to let go of it.
  for try in {1..50}; do
    [ -s "$file" ] && ! running "$1" && open_port "$(cat "$file")" || break
    sleep 0.1
  done
  if [ ! -s "$file" ] || { ! running "$1" && ! { ! open_port "$(cat "$file")" && claim "$1" "$(cat "$file")"; }; }; then
    while open_port "$port" || ! claim "$1" "$port"; do port=$((port + 100)); done
    echo "$port" >"$file"
  fi
  cat "$file"
}

# claim NAME PORT: keeps other checkouts from a port that nobody listens on yet, or
# just now: a server takes seconds to start, and tests kill it. Its claim ends when it
# is stopped in good order, or its folder is gone.
claim() {
  local file=$CACHE/ports/$2 mine owner
  mine=$(realpath "$RUN/$1")
  mkdir -p "$CACHE/ports"
  (
    flock 8
    owner=$(cat "$file" 2>/dev/null) || true
    if [ -n "$owner" ] && [ "$owner" != "$mine" ]; then
      [ ! -e "$owner/pid" ] || exit 1
      [ ! -d "$owner" ] || [ -z "$(find "$file" -mmin -3)" ] || exit 1
    fi
    echo "$mine" >"$file"
  ) 8>"$CACHE/ports/lock"
}

# http_ok PORT PATH [HEADER]: status 200, without needing curl; http_at HOST ... elsewhere.
http_ok() { http_at 127.0.0.1 "$@"; }
http_at() { [[ $(http_status "$@") == *" 200 "* ]]; }

# http_status HOST PORT PATH [HEADER]: the first line of the answer.
http_status() {
  (
    exec 3<>"/dev/tcp/$1/$2" || exit 1
    printf 'GET %s HTTP/1.0\r\nHost: %s\r\n%s\r\n' "$3" "$1" "${4:+$4$'\r\n'}" >&3
    timeout 5 head -n 1 <&3
  ) 2>/dev/null
}

export_line() { printf "export %s='%s'\n" "$1" "$2"; }

# write_env: one file with the exports of everything that runs or was given.
write_env() {
  local name variable
  {
    echo "# Written by scripts/brokers; source it."
    for name in "${BASIC[@]}"; do
      variable=$(variable_of "$name")
      if given "$name"; then
        export_line "$variable" "${!variable}"
      elif [ -s "$RUN/$name/env" ]; then
        cat "$RUN/$name/env"
      fi
    done
    if given rabbitmq && [ -n "${AMQP_MANAGEMENT:-}" ]; then export_line AMQP_MANAGEMENT "$AMQP_MANAGEMENT"; fi
    if [ -s "$RUN/rabbitmq-a/env" ] && [ -s "$RUN/rabbitmq-b/env" ]; then
      export_line AMQP_CLUSTER "$(value_of rabbitmq-a AMQP_URL),$(value_of rabbitmq-b AMQP_URL)"
    fi
    if [ -s "$RUN/postgres-a/env" ] && [ -s "$RUN/postgres-b/env" ]; then
      export_line PG_PAIR "postgres://longshore@127.0.0.1:$(cat "$RUN/postgres-a/port.sql"),127.0.0.1:$(cat "$RUN/postgres-b/port.sql")/longshore?sslmode=disable&target_session_attrs=read-write"
    fi
  } >"$RUN/env.$$"
  mv "$RUN/env.$$" "$RUN/env"
}

value_of() { sed -n "s/^export $2='\(.*\)'\$/\1/p" "$RUN/$1/env"; }

env_of_node() {
  [ -s "$RUN/$1/env" ] || die "$1 does not run"
  cat "$RUN/$1/env"
}

address_of() { sed -n "1s/^export [A-Z_]*='\(.*\)'\$/\1/p" "$RUN/$1/env"; }

status() {
  local name
  for name in "${KNOWN[@]}"; do
    if given "$name"; then
      printf '%-16s given by %s\n' "$name" "$(variable_of "$name")"
    elif running "$name"; then
      printf '%-16s pid %-7s %s\n' "$name" "$(cat "$RUN/$name/pid")" "$(address_of "$name")"
    else
      printf '%-16s -\n' "$name"
    fi
  done
}
