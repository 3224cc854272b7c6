# Installing what is missing, with the machine's own package clients and mirrors.
# shellcheck shell=bash

# need NAME COMMAND PACKAGE...: COMMAND exists, or PACKAGEs bring it.
# Installs are serialised; the index is refreshed once, and again before a retry.
need() {
  local name=$1 probe=$2
  shift 2
  [ -z "$(missing "$probe")" ] && return 0
  if [ -n "${LONGSHORE_NO_INSTALL:-}" ] || [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    impossible "$name" "needs $(missing "$probe"); install it ($*), or run as root on Debian, or bring your own broker (scripts/brokers help)"
  fi
  (
    flock -w 900 8 || die "$name: another install holds $CACHE/apt.lock"
    [ -z "$(missing "$probe")" ] && exit 0
    apt_install "$name" "$@"
  ) 8>"$CACHE/apt.lock"
  [ -z "$(missing "$probe")" ] || die "$name: $* is installed, yet there is no $probe"
}

# missing PROBE: prints the probe when neither a command nor a file of that (glob) name exists.
missing() {
  case $1 in
    /*) compgen -G "$1" >/dev/null || echo "$1" ;;
    *) command -v "$1" >/dev/null || echo "$1" ;;
  esac
}

apt_install() {
  local name=$1 try
  shift
  say "$name: installing $*"
  for try in 1 2 3; do
    if [ ! -e "$CACHE/apt.updated" ] || [ "$try" -gt 1 ] || [ -n "$(find "$CACHE/apt.updated" -mmin +720)" ]; then
      apt-get update -q >>"$CACHE/apt.log" 2>&1 || warn "apt-get update failed (try $try)"
      : >"$CACHE/apt.updated"
    fi
    if no_services env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
      -o DPkg::Lock::Timeout=300 "$@" >>"$CACHE/apt.log" 2>&1; then
      return 0
    fi
    sleep $((try * 2))
  done
  tail -n 20 "$CACHE/apt.log" >&2
  die "$name: apt-get install $* failed three times; log: $CACHE/apt.log"
}

# no_services CMD...: a fresh package must not start its own service on our ports.
no_services() {
  if [ -e /usr/sbin/policy-rc.d ]; then
    "$@"
    return
  fi
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod +x /usr/sbin/policy-rc.d
  local rc=0
  "$@" || rc=$?
  rm -f /usr/sbin/policy-rc.d
  return "$rc"
}
