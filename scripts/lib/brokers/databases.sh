# PostgreSQL and MariaDB.
# shellcheck shell=bash

pg_bin() { compgen -G '/usr/lib/postgresql/*/bin' | sort -V | tail -n 1; }

# postgres_home NAME: sets PG_HOME and PG_AS. PostgreSQL refuses to run as root: there it runs
# as its package's user, and its data move out of the checkout when that user cannot reach
# into it.
postgres_home() {
  local dir=$RUN/$1
  PG_HOME=$dir/home PG_AS=()
  if [ "$(id -u)" -ne 0 ]; then
    mkdir -p "$PG_HOME"
    return
  fi
  PG_AS=(runuser -u postgres --)
  install -d -o postgres "$dir/home"
  if ! "${PG_AS[@]}" test -w "$dir/home"; then
    PG_HOME=/var/tmp/longshore-$1-$(printf %s "$ROOT" | cksum | cut -d' ' -f1)
    install -d -o postgres -m 700 "$PG_HOME"
  fi
}

# postgres_as CMD...: as the user that owns the data.
postgres_as() { (cd / && ${PG_AS[@]+"${PG_AS[@]}"} "$@"); }

postgres_init() {
  postgres_as "$(pg_bin)/initdb" -D "$PG_HOME/data" -A trust -U longshore -E UTF8 --locale=C >>"$RUN/$1/log" 2>&1 || die "$1: initdb failed; log: $RUN/$1/log"
}

# postgres_launch NAME PORT SETTING...: the socket folder's name must stay short, and nobody
# needs the socket.
postgres_launch() {
  local name=$1 port=$2 set=() one
  shift 2
  for one in "$@"; do set+=(-c "$one"); done
  launch "$name" ${PG_AS[@]+setpriv --reuid=postgres --regid=postgres --init-groups} "$(pg_bin)/postgres" -D "$PG_HOME/data" -p "$port" \
    -c listen_addresses=127.0.0.1 -c unix_socket_directories= ${set[@]+"${set[@]}"}
  await "$name" 240 postgres_ready "$name"
}

# postgres_database PORT: where commits wait for a standby, this one does not.
postgres_database() {
  local psql=("$(pg_bin)/psql" -h 127.0.0.1 -p "$1" -U longshore -d postgres -qAt)
  [ "$("${psql[@]}" -c "SELECT 1 FROM pg_database WHERE datname = 'longshore'")" = 1 ] || PGOPTIONS='-c synchronous_commit=local' "${psql[@]}" -c 'CREATE DATABASE longshore'
}

postgres_start() {
  local port
  need postgres '/usr/lib/postgresql/*/bin/initdb' postgresql
  port=$(port postgres sql 15432)
  postgres_home postgres
  [ -s "$PG_HOME/data/PG_VERSION" ] || postgres_init postgres
  postgres_launch postgres "$port"
  postgres_database "$port"
  export_line PG_DSN "postgres://longshore@127.0.0.1:$port/longshore?sslmode=disable" >"$RUN/postgres/env"
}

# pgpair_start NAME: postgres-a commits what postgres-b has, too. Both are new at each start,
# since neither can go on from what the other did after a promotion.
pgpair_start() {
  local name=$1 port first
  need "$name" '/usr/lib/postgresql/*/bin/initdb' postgresql
  port=$(port "$name" sql 15434)
  postgres_home "$name"
  if running "$name"; then
    kill -KILL "$(cat "$RUN/$name/pid")"
    await_exit "$name" 10 || die "$name did not die"
  fi
  postgres_as rm -rf "$PG_HOME/data"
  if [ "$name" = postgres-a ]; then
    postgres_init "$name"
    postgres_launch "$name" "$port" 'synchronous_standby_names=*'
    postgres_database "$port"
  else
    await_start postgres-a 120
    first=$(cat "$RUN/postgres-a/port.sql")
    postgres_as "$(pg_bin)/pg_basebackup" -h 127.0.0.1 -p "$first" -U longshore -D "$PG_HOME/data" -R -X stream -c fast >>"$RUN/$name/log" 2>&1 || die "$name: pg_basebackup failed; log: $RUN/$name/log"
    postgres_launch "$name" "$port" synchronous_standby_names=
  fi
  export_line PG_NODE_DSN "postgres://longshore@127.0.0.1:$port/longshore?sslmode=disable" >"$RUN/$name/env"
}

# pgpair_ready NAME: the standby only if it follows postgres-a; one that was promoted does not.
pgpair_ready() {
  postgres_ready "$1" || return 1
  [ "$1" = postgres-a ] || [ "$("$(pg_bin)/psql" -h 127.0.0.1 -p "$(cat "$RUN/postgres-a/port.sql")" -U longshore -d postgres -qAt -c 'SELECT count(*) FROM pg_stat_replication' 2>/dev/null)" = 1 ]
}

# await_start NAME SECONDS: another start, beside this one, is done.
await_start() {
  local deadline=$((SECONDS + $2))
  until running "$1" && [ "$RUN/$1/env" -nt "$RUN/$1/pid" ]; do
    [ "$SECONDS" -lt "$deadline" ] || die "$1 was not ready in time"
    sleep 0.2
  done
}

postgres_ready() {
  "$(pg_bin)/psql" -h 127.0.0.1 -p "$(cat "$RUN/$1/port.sql")" -U longshore -d postgres -qAt -c 'SELECT 1' >/dev/null 2>&1
}

mariadb_start() {
  local dir=$RUN/mariadb port user
  need mariadb mariadbd mariadb-server
  port=$(port mariadb sql 13306)
  user=$(id -un)
  if [ ! -d "$dir/data/mysql" ]; then
    rm -rf "$dir/data"
    mariadb-install-db --no-defaults --user="$user" --datadir="$dir/data" --auth-root-authentication-method=normal --skip-test-db >>"$dir/log" 2>&1 ||
      die "mariadb: mariadb-install-db failed; log: $dir/log"
  fi
  launch mariadb mariadbd --no-defaults --user="$user" --datadir="$dir/data" --port="$port" --bind-address=127.0.0.1 --socket= --skip-log-bin
  await mariadb 240 mariadb_ready mariadb
  mariadb --no-defaults -h 127.0.0.1 -P "$port" -u root -e "
    CREATE DATABASE IF NOT EXISTS longshore CHARACTER SET utf8mb4;
    CREATE USER IF NOT EXISTS longshore@'127.0.0.1';
    GRANT ALL ON *.* TO longshore@'127.0.0.1'" || die "mariadb: could not create the database"
  export_line MARIADB_DSN "longshore@tcp(127.0.0.1:$port)/longshore" >"$dir/env"
}

mariadb_ready() {
  mariadb --no-defaults -h 127.0.0.1 -P "$(cat "$RUN/mariadb/port.sql")" -u root -e 'SELECT 1' >/dev/null 2>&1
}
