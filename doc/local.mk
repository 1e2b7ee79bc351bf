# SPDX-License-Identifier: BSD-3-Clause
dist_man_MANS += doc/kdds.7 doc/kdds-ranks.7 doc/kdds-bench.1 doc/kdds-trace.1 doc/kddsrun.1

man3_pages = \
	doc/KDDS_OP.3 \
	doc/KDDS_TASK.3 \
	doc/kdds_bind.3 \
	doc/kdds_checkpoint.3 \
	doc/kdds_fail.3 \
	doc/kdds_for.3 \
	doc/kdds_freeze.3 \
	doc/kdds_init.3 \
	doc/kdds_raise.3 \
	doc/kdds_spawn.3 \
	doc/kdds_stats_get.3 \
	doc/kdds_sync.3 \
	doc/kdds_type_create.3
dist_man_MANS += $(man3_pages)

# A page is found under every name that its NAME section has before the dash, and named after the first, or the best known, of them.
# Prints "page name" lines for the other ones.
man3_aliases = for page in $(man3_pages); do \
		file=$${page\#\#*/}; \
		sed -n '/^\.SH NAME/,/ \\- /{ /^\.SH/d; s/ \\- .*//; s/,//g; p; }' "$(srcdir)/$$page" | tr ' ' '\n' | \
			sed "/^$${file%.3}$$/d; /./s/^/$$file /p; d"; \
	done
install-data-hook:
	$(man3_aliases) | while read -r page name; do \
		echo ".so man3/$$page" > "$(DESTDIR)$(man3dir)/$$name.3" || exit 1; \
	done
uninstall-hook:
	$(man3_aliases) | while read -r page name; do rm -f "$(DESTDIR)$(man3dir)/$$name.3"; done
EXTRA_DIST += doc/design.md doc/glossary.md doc/main.dox doc/performance.md doc/protocol.md \
	doc/scaling.md doc/tutorial.md \
	doc/pictures/cholesky.svg doc/pictures/nqueens.svg doc/pictures/overhead.svg doc/pictures/speedup.svg

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

# `make pictures': runs as kdds-trace draws them, for doc/performance.md. Where a worker or a rank waits is plain to see.
PICTURES = $(srcdir)/doc/pictures
.PHONY: pictures
pictures: all
	$(MKDIR_P) $(PICTURES) doc/traces
	KDDS_WORKERS=2 KDDS_TRACE=doc/traces/cholesky examples/cholesky --no-check 2048 256
	./kdds-trace -q -s $(PICTURES)/cholesky.svg doc/traces/cholesky
	KDDS_TRACE=doc/traces/nqueens ./kddsrun -n 2 --workers 1 examples/nqueens 15
	./kdds-trace -q -s $(PICTURES)/nqueens.svg doc/traces/nqueens.0 doc/traces/nqueens.1
	rm -r doc/traces
