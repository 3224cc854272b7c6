# RabbitMQ 4.0 and 4.3 for the version matrix: each in a folder with the Debian
# release that has it, beside the host's own. Root only.
# shellcheck shell=bash

chroot_suite() { case $1 in rabbitmq40) echo trixie ;; rabbitmq43) echo forky ;; esac; }

chroot_start() {
  local name=$1 node_dir
  RABBIT_CHROOT=$CACHE/$name
  [ "$(id -u)" -eq 0 ] || impossible "$name" "needs root (debootstrap, chroot)"
  need "$name" epmd erlang-base
  chroot_build "$name"
  if ! mountpoint -q "$RABBIT_CHROOT/proc"; then
    mount --bind /proc "$RABBIT_CHROOT/proc" || die "$name: cannot mount /proc into $RABBIT_CHROOT"
  fi
  rabbitmq_epmd
  rabbitmq_ports "$name"
  # Another checkout may use the same folder: data are this checkout's own.
  node_dir=/var/lib/longshore-$(printf %s "$ROOT" | cksum | cut -d' ' -f1)
  rabbitmq_files "$name" "$RABBIT_CHROOT$node_dir" "$node_dir"
  launch "$name" chroot "$RABBIT_CHROOT" env "${RABBIT_ENV[@]}" "$RABBIT_BIN/rabbitmq-server"
  await "$name" 240 rabbitmq_ready "$name"
  rabbitmq_exports "$name"
}

chroot_ready() { rabbitmq_ready "$1"; }

# chroot_build NAME [FOR]: the folder gets its name only when it is complete.
chroot_build() {
  local name=$1 log=$RUN/${2:-$1}/log try mirror
  [ ! -x "$RABBIT_CHROOT$RABBIT_BIN/rabbitmq-server" ] || return 0
  need "$name" debootstrap debootstrap
  mirror=$(debian_mirror)
  [ -n "$mirror" ] || die "$name: no Debian mirror in this machine's apt sources"
  say "$name: building a Debian $(chroot_suite "$name") folder (600 MB, about two minutes)"
  # The script for sid serves every release since 2005, also those that this
  # machine's debootstrap is too old to know by name.
  for try in 1 2; do
    rm -rf --one-file-system "$RABBIT_CHROOT.new"
    if debootstrap --variant=minbase --include=rabbitmq-server "$(chroot_suite "$name")" "$RABBIT_CHROOT.new" "$mirror" /usr/share/debootstrap/scripts/sid >>"$log" 2>&1; then
      umount "$RABBIT_CHROOT.new/proc" 2>/dev/null || true
      cp /etc/hosts "$RABBIT_CHROOT.new/etc/hosts"
      mv "$RABBIT_CHROOT.new" "$RABBIT_CHROOT"
      return 0
    fi
    sleep $((try * 2))
  done
  tail -n 20 "$log" >&2
  die "$name: debootstrap failed; log: $log"
}

# debian_mirror: the archive that apt on this machine already uses.
debian_mirror() {
  {
    awk '/^URIs:/ {print $2}' /etc/apt/sources.list.d/*.sources
    awk '$1 == "deb" {for (i = 2; i <= NF; i++) if ($i ~ /^[a-z]+:\/\//) {print $i; break}}' /etc/apt/sources.list /etc/apt/sources.list.d/*.list
  } 2>/dev/null | grep -v security | head -n 1
}
