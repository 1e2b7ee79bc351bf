# SPDX-License-Identifier: BSD-3-Clause
# The protocols as models for spin; see tests/models/README.md. Not part of `make check': they take
# some minutes. make check-models QUICK=-q leaves out the largest searches.
EXTRA_DIST += \
	tests/models/README.md \
	tests/models/call.pml \
	tests/models/claim.pml \
	tests/models/drain.pml \
	tests/models/idle.pml \
	tests/models/index.pml \
	tests/models/litmus/claim.litmus \
	tests/models/litmus/complete.litmus \
	tests/models/litmus/fenced.litmus \
	tests/models/litmus/mark.litmus \
	tests/models/litmus/nap.litmus \
	tests/models/litmus/open.litmus \
	tests/models/litmus/prompt.litmus \
	tests/models/litmus/publish.litmus \
	tests/models/litmus/renew.litmus \
	tests/models/litmus/reset.litmus \
	tests/models/litmus/run \
	tests/models/litmus/takeover.litmus \
	tests/models/litmus/unshare.litmus \
	tests/models/litmus/wait.litmus \
	tests/models/merge.pml \
	tests/models/net.pml \
	tests/models/peer.pml \
	tests/models/reserve.pml \
	tests/models/retained.pml \
	tests/models/rsteal.pml \
	tests/models/run \
	tests/models/successor.pml \
	tests/models/survive.pml \
	tests/models/tso.pml \
	tests/models/wait.pml

QUICK =
.PHONY: check-models
check-models:
	CC='$(CC)' $(srcdir)/tests/models/run $(QUICK) all
	$(srcdir)/tests/models/litmus/run || [ $$? = 77 ]
