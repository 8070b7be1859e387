// SPDX-License-Identifier: GPL-2.0
/*
 * Copying requests in and out; see request.h.  No locks.
 */
#include <linux/err.h>
#include <linux/ioctl.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "request.h"

#define WITHOUT_SIZE(number)	((number) & ~(_IOC_SIZEMASK << _IOC_SIZESHIFT))

bool kcr_request_is(const struct kcr_request_type *type, unsigned int number)
{
	return WITHOUT_SIZE(type->number) == WITHOUT_SIZE(number);
}

void *kcr_request_get(const struct kcr_request_type *type, unsigned int number,
		      const void __user *argp)
{
	size_t known = _IOC_SIZE(type->number), given = _IOC_SIZE(number);
	u32 *request;
	int ret;

	if (given < type->first_size)
		return ERR_PTR(-EINVAL);
	request = kmalloc(known, GFP_KERNEL_ACCOUNT);
	if (!request)
		return ERR_PTR(-ENOMEM);
	ret = copy_struct_from_user(request, known, argp, given);
	if (!ret && (request[0] != given || request[1] & ~type->known_flags))
		ret = -EINVAL;
	if (!ret)
		return request;
	kfree(request);
	return ERR_PTR(ret);
}

long kcr_request_put(const struct kcr_request_type *type, unsigned int number, void *request,
		     void __user *argp, long result)
{
	size_t size = min(_IOC_SIZE(type->number), _IOC_SIZE(number));

	if (_IOC_DIR(number) & _IOC_READ && copy_to_user(argp, request, size) && result >= 0)
		result = -EFAULT;
	kfree(request);
	return result;
}
