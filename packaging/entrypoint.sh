#!/bin/sh
# Starts the container the way the Redis image does: options or a settings file alone mean `idemd …`.
set -eu

case ${1:-} in
  -* | *.conf) set -- idemd "$@" ;;
esac

# decided NAME ARGUMENT...: an argument or the settings file says what NAME is to be.
decided() {
  name=$1
  shift
  for argument in "$@"; do
    [ "$argument" != "--$name" ] || return 0
  done
  case ${2:-} in
    *.conf) grep -Eiqs "^[[:space:]]*$name[[:space:]]" "$2" ;;
    *) return 1 ;;
  esac
}

# A container is there to be reached from outside it, and is reached only through ports that were
# published on purpose; so here the server listens on every address, unless told otherwise.
case ${1:-}:${2:-} in
  idemd:--help | idemd:-h | idemd:--version | idemd:-v | idemd:--*-page | idemd:--check | idemd:--repair) ;; # prints and ends
  idemd:*)
    if ! decided bind "$@"; then set -- "$@" --bind '*' '-::*'; fi
    if ! decided protected-mode "$@"; then set -- "$@" --protected-mode no; fi
    ;;
esac

exec "$@"
