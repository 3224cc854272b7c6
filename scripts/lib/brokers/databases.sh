# PostgreSQL and MariaDB.
# shellcheck shell=bash

pg_bin() { compgen -G '/usr/lib/postgresql/*/bin' | sort -V | tail -n 1; }

# PostgreSQL refuses to run as root: there it runs as its package's user, and its
# data move out of the checkout when that user cannot reach into it.
postgres_start() {
  local dir=$RUN/postgres bin port as=()
  need postgres '/usr/lib/postgresql/*/bin/initdb' postgresql
  bin=$(pg_bin)
  port=$(port postgres sql 15432)
  PG_HOME=$dir/home
  if [ "$(id -u)" -eq 0 ]; then
    as=(runuser -u postgres --)
    install -d -o postgres "$dir/home"
    if ! "${as[@]}" test -w "$dir/home"; then
      PG_HOME=/var/tmp/longshore-postgres-$(printf %s "$ROOT" | cksum | cut -d' ' -f1)
      install -d -o postgres -m 700 "$PG_HOME"
    fi
  else
    mkdir -p "$PG_HOME"
  fi
  if [ ! -s "$PG_HOME/data/PG_VERSION" ]; then
    (cd / && ${as[@]+"${as[@]}"} "$bin/initdb" -D "$PG_HOME/data" -A trust -U longshore -E UTF8 --locale=C) >>"$dir/log" 2>&1 || die "postgres: initdb failed; log: $dir/log"
  fi
  # The socket folder's name must stay short, and nobody needs the socket.
  launch postgres ${as[@]+setpriv --reuid=postgres --regid=postgres --init-groups} "$bin/postgres" -D "$PG_HOME/data" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories=
  await postgres 240 postgres_ready postgres
  local psql=("$bin/psql" -h 127.0.0.1 -p "$port" -U longshore -d postgres -qAt)
  [ "$("${psql[@]}" -c "SELECT 1 FROM pg_database WHERE datname = 'longshore'")" = 1 ] || "${psql[@]}" -c 'CREATE DATABASE longshore'
  export_line PG_DSN "postgres://longshore@127.0.0.1:$port/longshore?sslmode=disable" >"$dir/env"
}

postgres_ready() {
  "$(pg_bin)/psql" -h 127.0.0.1 -p "$(cat "$RUN/postgres/port.sql")" -U longshore -d postgres -qAt -c 'SELECT 1' >/dev/null 2>&1
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
