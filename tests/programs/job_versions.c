// SPDX-License-Identifier: GPL-2.0
/*
 * Callers of other releases: structures that are longer than the module's, or shorter.
 * What is in the number of an ioctl, and is not the structure's size, stays exact.
 */
#include <stddef.h>
#include <sys/mman.h>

#include "job.h"

#define MORE	24	/* bytes that a later release may have added */

/* `number` for a structure of this size. */
static unsigned int resized(unsigned int number, size_t size)
{
	return _IOC(_IOC_DIR(number), _IOC_TYPE(number), _IOC_NR(number), size);
}

static struct {
	struct kcr_info info;
	unsigned char more[MORE];
} longer;

static int ask_longer(int job)
{
	memset(&longer.info, 0, sizeof(longer.info));
	longer.info.size = sizeof(longer);
	return job_call(job, resized(KCR_IOC_INFO, sizeof(longer)), &longer);
}

/* What it does not know must be 0, and is left alone. */
static void newer(int job)
{
	CHECK(ask_longer(job) == 0);
	CHECK(longer.info.size == sizeof(longer) && longer.info.abi == KCR_ABI_VERSION);
	for (int i = 0; i < MORE; i++) {
		CHECK(longer.more[i] == 0);
		longer.more[i] = 1;
		CHECK(ask_longer(job) == -E2BIG);
		longer.more[i] = 0;
	}
	longer.info.size = sizeof(longer.info);
	CHECK(job_call(job, resized(KCR_IOC_INFO, sizeof(longer)), &longer) == -EINVAL);
}

/* There is none yet that may be shorter than it is. */
static void older(int job)
{
	struct kcr_info info = { .size = offsetof(struct kcr_info, xstate_size) };

	CHECK(job_call(job, resized(KCR_IOC_INFO, info.size), &info) == -EINVAL);
	info.size = 0;
	CHECK(job_call(job, resized(KCR_IOC_INFO, 0), &info) == -EINVAL);
	CHECK(info.abi == 0);
}

/* The end of a structure is the end of what may be read and written. */
static void edge(int job)
{
	size_t page = getpagesize(), size = sizeof(struct kcr_info);
	unsigned char *area = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kcr_info *info = (void *)(area + page - size);

	NEED(area != MAP_FAILED && !mprotect(area + page, page, PROT_NONE));
	*info = (struct kcr_info){ .size = size };
	CHECK(job_call(job, KCR_IOC_INFO, info) == 0 && info->abi == KCR_ABI_VERSION);
	info->size = size + MORE;
	CHECK(job_call(job, resized(KCR_IOC_INFO, size + MORE), info) == -EFAULT);
}

static void client(int device)
{
	struct kcr_client_new new = { .size = sizeof(new) };
	struct {
		struct kcr_client_done done;
		unsigned char more[MORE];
	} done = { .done.size = sizeof(done) };
	int fd = job_call(device, KCR_IOC_CLIENT, &new);
	unsigned int number = resized(KCR_IOC_CLIENT_DONE, sizeof(done));

	NEED(fd >= 0);
	CHECK(job_call(fd, number, &done) == -EINVAL);		/* there is nothing to end */
	done.more[MORE - 1] = 1;
	CHECK(job_call(fd, number, &done) == -E2BIG);
	close(fd);
}

int main(void)
{
	int job = job_open();

	NEED(job >= 0);
	newer(job);
	older(job);
	edge(job);
	client(job);
	CHECK(job_call(job, _IO(KCR_IOC_MAGIC, _IOC_NR(KCR_IOC_INFO)), NULL) == -ENOTTY);
	CHECK(job_call(job, _IOWR(KCR_IOC_MAGIC, 0x7f, struct kcr_info), NULL) == -ENOTTY);
	return !!check_failures;
}
