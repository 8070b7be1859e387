# SPDX-License-Identifier: GPL-2.0
# The MPI test programs, in build/tests/mpi/, where there is an mpicc.

ifneq ($(MPICC),)
MPI_TESTS := $(T)/mpi/torture $(T)/mpi/pingpong $(T)/mpi/pulse $(T)/mpi/job $(T)/mpi/refused $(T)/mpi/asks $(T)/mpi/callbacks \
	$(T)/mpi/reader $(T)/mpi/outside $(T)/mpi/rarely $(T)/mpi/vanished $(T)/mpi/windows \
	$(T)/mpi/orphan $(T)/mpi/swaps $(T)/mpi/scale $(T)/mpi/tamper.so $(T)/mpi/features \
	$(if $(shell command -v mpif90 2>/dev/null),$(T)/mpi/cg $(T)/mpi/features_f08) \
	$(if $(wildcard $(MPI_INC)/openmpi/ompi/instance),$(T)/mpi/session)
.PHONY: mpi-tests
mpi-tests: $(MPI_TESTS) mpi
tests test-programs bench-programs: mpi-tests

$(T)/mpi/torture $(T)/mpi/outside $(T)/mpi/swaps $(T)/mpi/features: tests/mpi/driver.c tests/mpi/driver.h \
		mpi-plugin/btl/btl_cr_control.h
$(T)/mpi/orphan: mpi-plugin/hook/runtime.c mpi-plugin/hook/launcher.c mpi-plugin/hook/rank.h $(B)/user/libproc.a
$(T)/mpi/orphan: MPI_TEST_LIBS := $(B)/user/libproc.a -isystem $(MPI_INC)/openmpi \
	-isystem $(MPI_INC) -idirafter mpi-plugin/open-mpi-5 -lopen-pal \
	$(shell pkg-config --cflags --libs pmix 2>/dev/null)
$(T)/mpi/features: $(wildcard tests/mpi/features_*.c) tests/mpi/features.h
$(T)/mpi/asks: mpi-plugin/library/kcr_mpi.h | $(KCR_MPI_LIB)
$(T)/mpi/asks: MPI_TEST_LIBS := -L$(B)/lib -lkcr_mpi -Wl,-rpath,'$$ORIGIN/../../lib'
$(T)/mpi/callbacks: | $(B)/lib/libcr.so
$(T)/mpi/callbacks: MPI_TEST_LIBS := -Ilibcr/include -L$(B)/lib -lcr -Wl,-rpath,'$$ORIGIN/../../lib'
$(T)/mpi/scale: $(wildcard tests/mpi/scale*.c) tests/mpi/scale.h $(LAUNCH_LIB) \
		$(B)/user/libjob.a $(B)/user/librestart.a $(B)/user/libreport.a $(B)/user/libproc.a
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(KCR_CFLAGS) $(CFLAGS) -o $@ $(filter-out %.h,$^) -lcjson $(SODIUM_LIBS) -lpthread -lm
$(T)/mpi/tamper.so: tests/mpi/tamper.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror -D_GNU_SOURCE -fPIC -shared -o $@ $< -ldl
$(T)/mpi/%: tests/mpi/%.c
	@mkdir -p $(@D)
	$(call say,MPICC)
	$(Q)$(MPICC) -std=gnu11 -O2 -g -Wall -Wextra -Werror -D_GNU_SOURCE -I. \
		-o $@ $(filter %.c,$^) $(MPI_TEST_LIBS) -lpthread
$(T)/mpi/%: tests/mpi/%.f90
	@mkdir -p $(@D)
	$(call say,MPIF90)
	$(Q)mpif90 -O2 -g -Wall -Werror -J$(@D) -o $@ $<
endif
