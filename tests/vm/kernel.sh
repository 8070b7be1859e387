# SPDX-License-Identifier: GPL-2.0
# Finds a kernel: an installed one, or one unpacked in a directory.
# Sourced by the other scripts of tests/vm.

vm_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
vm_build=$vm_top/build

vm_die() {
	echo "${0##*/}: $*" >&2
	exit 125
}

# The kernel the Makefile builds for by default: the running one if its headers
# are installed, else the newest with headers.
kernel_default() {
	local running
	running=$(uname -r)
	if [ -e "/lib/modules/$running/build" ]; then
		echo "$running"
	else
		find /usr/src -maxdepth 1 -name 'linux-headers-*-amd64' -printf '%f\n' |
			sed 's/^linux-headers-//' | sort -V | tail -n 1
	fi
}

# kernel_use NAME: a version, a directory with an unpacked kernel, `debug`, `kcsan` or
# nothing.  Sets KROOT (holds lib/modules), KVER, KIMAGE and KDIR (headers).
kernel_use() {
	local name=${1:-$(kernel_default)} modules

	[ -n "$name" ] || vm_die "no kernel here: install linux-image-amd64 and linux-headers-amd64"
	if [[ $name = @(debug|kcsan) ]] && [ ! -d "$vm_build/kernels/$name" ]; then
		"$vm_top/tests/vm/build-debug-kernel" "${name/debug/kasan}" >&2 || vm_die "no $name kernel"
	fi
	if [ -d "$name/lib/modules" ]; then
		KROOT=$(cd "$name" && pwd)
	elif [ -d "$vm_build/kernels/$name" ]; then
		KROOT=$vm_build/kernels/$name
	elif [ -d "/lib/modules/$name/kernel" ]; then
		KROOT=/ KVER=$name
	else
		vm_die "no kernel '$name' (tests/vm/kernel-fetch gets Debian's)"
	fi
	if [ "$KROOT" != / ]; then
		modules=("$KROOT"/lib/modules/*/kernel)
		KVER=$(basename "$(dirname "${modules[0]}")")
	fi
	KIMAGE=${KROOT%/}/boot/vmlinuz-$KVER
	[ -r "$KIMAGE" ] || KIMAGE=${KROOT%/}/lib/modules/$KVER/vmlinuz
	[ -r "$KIMAGE" ] || vm_die "no kernel image for $KVER in $KROOT"
	KDIR=${KROOT%/}/usr/src/linux-headers-$KVER
}
