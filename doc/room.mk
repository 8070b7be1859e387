# SPDX-License-Identifier: GPL-2.0
# The guide: a page of HTML for each chapter, beside the manual pages, to which it links.

CHAPTERS := $(wildcard doc/*.adoc)
GUIDE    := $(CHAPTERS:doc/%.adoc=$(B)/guide/%.html)

#: doc              the guide in HTML, in build/guide/

.PHONY: doc
doc: html $(GUIDE)

# A reference that leads nowhere is a failure.
$(B)/guide/%.html: doc/%.adoc doc/room.mk $(wildcard doc/drawings/*.svg) $(wildcard examples/*)
	@mkdir -p $(@D)
	$(call say,GUIDE)
	$(Q)asciidoctor -v --failure-level=INFO -a version=$(VERSION) -a linkcss -a copycss -a webfonts! \
		-a reproducible -a nofooter -a toc -a toclevels=1 -a source-language=console \
		-a sectanchors -a idprefix -a idseparator=- -D $(@D) $<
