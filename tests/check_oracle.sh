#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Proves that tests/oracle's random programs give the sequential values in one process, for as long
# as a test may take. `make soak SECONDS=...' runs it longer.
set -eu
case ${SANITIZE-} in
'') seconds=60 ;;
*) seconds=20 ;;
esac
exec tests/oracle -s "${ORACLE_SECONDS:-$seconds}"
