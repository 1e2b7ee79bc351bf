# SPDX-License-Identifier: BSD-3-Clause
dist_man_MANS += doc/kdds.7 doc/kdds-bench.1
EXTRA_DIST += doc/main.dox

# `make doc': doc/html, from the comments in the public headers. WARN=FAIL_ON_WARNINGS makes it strict.
WARN = NO
.PHONY: doc
if HAVE_DOXYGEN
doc: doc/Doxyfile
	{ cat doc/Doxyfile; echo 'WARN_AS_ERROR = $(WARN)'; } | $(DOXYGEN) -
else
doc:
	@echo 'doc: doxygen was not found by configure' >&2; exit 1
endif

clean-local:
	rm -rf doc/html
