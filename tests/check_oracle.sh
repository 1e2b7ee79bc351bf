#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# tests/oracle for as long as a test may take; `make soak SECONDS=...' runs it longer.
set -eu
case ${SANITIZE-} in
'') seconds=60 ;;
*) seconds=20 ;;
esac
exec tests/oracle -s "${ORACLE_SECONDS:-$seconds}"
