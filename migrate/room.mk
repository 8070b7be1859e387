# SPDX-License-Identifier: GPL-2.0
# Migrations without ssh use the messages and the greeting of MPI jobs.
MIGRATE_WIRE := $(foreach f,coordinator/wire coordinator/wire_wait coordinator/greeting secret/seal,\
	$(B)/user/job/$f.o)

$(B)/bin/cr_migrate: $(MIGRATE_WIRE)
$(B)/bin/cr_migrate: PROG_LIBS += $(SODIUM_LIBS)
