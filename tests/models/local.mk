# SPDX-License-Identifier: BSD-3-Clause
# The protocols as models for spin; see tests/models/README.md. Not part of `make check': they take some minutes.
EXTRA_DIST += \
	tests/models/README.md \
	tests/models/claim.pml \
	tests/models/drain.pml \
	tests/models/idle.pml \
	tests/models/index.pml \
	tests/models/net.pml \
	tests/models/peer.pml \
	tests/models/rest.pml \
	tests/models/rsteal.pml \
	tests/models/run \
	tests/models/tso.pml \
	tests/models/wait.pml

.PHONY: check-models
check-models:
	CC='$(CC)' $(srcdir)/tests/models/run all
