# SPDX-License-Identifier: GPL-2.0
# The manual pages in HTML, for reading in a browser.

MAN_PAGES := $(wildcard man/*.[1-9])
HTML      := $(MAN_PAGES:man/%=$(B)/html/%.html)
# Most pages of section 3 have no text of their own but name another: .so man3/libcr.3
MAN_TEXTS  = $(shell grep -L '^\.so ' $(MAN_PAGES))

#: html             the manual pages in HTML, in build/html/

.PHONY: html
html: $(B)/html/index.html

$(B)/html/%.html: man/%
	@mkdir -p $(@D)
	$(call say,HTML)
	$(Q)other=$$(sed -n 's,^\.so .*/,,p' $<); \
	if [ -n "$$other" ]; then ln -sf "$$other.html" $@; \
	else mandoc -Thtml -O toc $< > $@; fi

# What whatis(1) would say of each page, as a list.
$(B)/html/index.html: $(HTML)
	$(Q){ echo '<!DOCTYPE html><meta charset="utf-8"><title>KCR</title><h1>KCR $(VERSION)</h1><dl>'; \
	awk '/^\.SH/ { if (inside) print ""; inside = /NAME/; \
			if (inside) { page = FILENAME; sub(".*/", "", page); \
				printf "<dt><a href=\"%s.html\">%s</a><dd>", page, page } next } \
		inside { gsub(/\\/, ""); printf "%s ", $$0 }' $(MAN_TEXTS); \
	echo '</dl>'; } > $@
