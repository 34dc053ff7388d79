#!/usr/bin/env bash
# Says whether the server in this container answers a PING; asks with bash alone, for the image has no client.
# IDEMD_PORT is for those who changed the port. A server that wants a password, or still loads, is alive.
exec 3<>"/dev/tcp/127.0.0.1/${IDEMD_PORT:-6379}" || exit 1
printf 'PING\r\n' >&3
read -r -t 2 reply <&3 || exit 1
case $reply in
  +PONG* | -NOAUTH* | -LOADING*) exit 0 ;;
  *) exit 1 ;;
esac
