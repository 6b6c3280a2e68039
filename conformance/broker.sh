#!/bin/sh
# BROKER_CMD of the harness: Millstream with the settings that a test wrote for its broker.
#
# MILLSTREAM: the binary. MILLSTREAM_SET: more settings, `key=value ...`. MILLSTREAM_LOG: a folder for the brokers' logs.
# The tests of Kafka compare whole answers, the interval of heartbeats among them, which Millstream adapts unless it is told.
set -eu
arguments=
for setting in ${MILLSTREAM_SET:-}; do arguments="$arguments --set $setting"; done
if [ -n "${MILLSTREAM_LOG:-}" ]; then mkdir -p "$MILLSTREAM_LOG"; exec >"$MILLSTREAM_LOG/$$.log" 2>&1; fi
# shellcheck disable=SC2086
exec "${MILLSTREAM:-millstream}" serve --config "$1" $arguments
