// SPDX-License-Identifier: GPL-2.0
/*
 * Copying requests in and out; see request.h.  No locks.
 */
#include <linux/err.h>
#include <linux/ioctl.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "request.h"

void *kcr_request_get(unsigned int number, u32 known_flags, const void __user *argp)
{
	size_t size = _IOC_SIZE(number);
	u32 *request = kmalloc(size, GFP_KERNEL_ACCOUNT);
	int ret = 0;

	if (!request)
		return ERR_PTR(-ENOMEM);
	if (copy_from_user(request, argp, size))
		ret = -EFAULT;
	else if (request[0] != size || request[1] & ~known_flags)
		ret = -EINVAL;
	if (!ret)
		return request;
	kfree(request);
	return ERR_PTR(ret);
}

long kcr_request_put(unsigned int number, void *request, void __user *argp, long result)
{
	if (_IOC_DIR(number) & _IOC_READ && copy_to_user(argp, request, _IOC_SIZE(number)) &&
	    result >= 0)
		result = -EFAULT;
	kfree(request);
	return result;
}
