# Programs of ours for the JVM, built by Maven into .cache.
# shellcheck shell=bash

# jvm_build WHO DIR NAME: builds DIR/pom.xml, which builds into .cache/NAME, and sets
# JVM_CLASSPATH. Ends the script where that cannot be.
jvm_build() {
  local who=$1 dir=$2 name=$3 tool log
  for tool in java mvn timeout; do
    command -v "$tool" >/dev/null || { echo "$who: needs Java 17 or newer, Maven and coreutils; there is no $tool" >&2; exit 1; }
  done
  log=$(mktemp)
  echo "$who: building $dir (the first time downloads some 60 libraries)" >&2
  if ! timeout 20m mvn -B -q -Dstyle.color=never -f "$dir/pom.xml" compile >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    echo "$who: Maven could not build $dir within 20 minutes; it needs Java 17 or newer and a way to Maven Central, or a mirror of it in ~/.m2/settings.xml" >&2
    exit 1
  fi
  rm -f "$log"
  # shellcheck disable=SC2034 # for who calls this
  JVM_CLASSPATH=$PWD/.cache/$name/classes:$PWD/.cache/$name/lib/*
}
