# SPDX-License-Identifier: GPL-2.0
# Access to another Debian suite without changes to the host.  Sourced after
# kernel.sh.

mirror() {
	local uri
	uri=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2> /dev/null |
		grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1 | tr -d ' ')
	uri=${uri:-http://deb.debian.org/debian}
	echo "${uri%/}"
}

# suite_apt SUITE: with the options in array `apt`, apt sees only that suite, and
# nothing of the host's packages.
suite_apt() {
	local suite=$1 state=$vm_build/apt/$1 uri
	local key=/usr/share/keyrings/debian-archive-keyring.gpg
	uri=$(mirror)
	mkdir -p "$state"/{lists,archives}/partial
	{
		echo "deb [signed-by=$key] $uri $suite main"
		case $suite in
		sid | forky) ;;
		*) echo "deb [signed-by=$key] $uri-security $suite-security main" ;;
		esac
	} > "$state/sources.list"
	apt=(-qq -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o Dir::Etc::preferencesparts=/dev/null -o Dir::State="$state"
		-o Dir::State::status=/dev/null -o Dir::Cache="$state" -o APT::Architecture=amd64
		-o APT::Architectures=amd64 -o Acquire::Languages=none
		-o APT::Sandbox::User= -o Acquire::Retries=3 -o Debug::NoLocking=true)
}
