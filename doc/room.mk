# SPDX-License-Identifier: GPL-2.0
# The guide: a page of HTML for each chapter, beside the manual pages, to which it links.
# The chapter on performance is there if RESULTS= names what `make bench` has measured.

CHAPTERS := $(filter-out $(if $(RESULTS),,doc/performance.adoc),$(wildcard doc/*.adoc))
GUIDE    := $(CHAPTERS:doc/%.adoc=$(B)/guide/%.html)
PICTURES := $(if $(RESULTS),$(patsubst doc/pictures/%.jq,$(B)/pictures/%.svg,$(wildcard doc/pictures/*.jq)) $(B)/pictures/machine.adoc $(B)/pictures/programs.adoc $(B)/pictures/lazy.adoc)

#: doc              the guide in HTML, in build/guide/; RESULTS= adds pictures of
#:                  what `make bench RESULTS=` has measured

.PHONY: doc
doc: html $(GUIDE)

# A reference that leads nowhere is a failure.
$(B)/guide/%.html: doc/%.adoc doc/room.mk $(wildcard doc/drawings/*.svg) $(wildcard examples/*) $(PICTURES)
	@mkdir -p $(@D)
	$(call say,GUIDE)
	$(Q)asciidoctor -v --failure-level=INFO -a version=$(VERSION) -a linkcss -a copycss -a webfonts! \
		-a reproducible -a nofooter -a toc -a toclevels=1 -a source-language=console \
		-a sectanchors -a idprefix -a idseparator=- \
		$(if $(RESULTS),-a pictures=$(abspath $(B)/pictures)) -D $(@D) $<

# One with RESULTS is not one without, nor one with others.
$(B)/guide/index.html: $(B)/pictures/results
$(B)/pictures/results: FORCE
	@mkdir -p $(@D)
	@echo '$(RESULTS)' | cmp -s - $@ || { rm -f $(B)/guide/performance.html; echo '$(RESULTS)' > $@; }
.PHONY: FORCE
FORCE:

# A picture is a program of jq, which makes a table of the results, and one of gnuplot.
$(B)/pictures/%.svg: doc/pictures/%.jq doc/pictures/%.gp doc/pictures/common.gp $(RESULTS) $(B)/pictures/results
	@mkdir -p $(@D)
	$(call say,PICTURE)
	$(Q)jq -r -f $< $(RESULTS) > $(@:.svg=.table)
	$(Q)gnuplot -e "table='$(@:.svg=.table)'" doc/pictures/common.gp doc/pictures/$*.gp > $@

# Where it was measured, and tables.
$(B)/pictures/%.adoc: doc/%.jq $(RESULTS) $(B)/pictures/results
	@mkdir -p $(@D)
	$(Q)jq -r -f $< $(RESULTS) > $@
