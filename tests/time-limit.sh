# SPDX-License-Identifier: GPL-2.0
# For tests/run and tests/run-group.

# time_limit SCRIPT: sets limit to the seconds that a test may take: those of the
# line `# timeout: N` in its head (120), on a machine that has little else to do,
# times KCR_SLOW (2).
time_limit() {
	local line number
	limit=120
	for ((number = 0; number < 20; number++)); do
		read -r line || break
		[[ $line =~ ^'# timeout: '([0-9]+) ]] && limit=${BASH_REMATCH[1]}
	done < "$1"
	limit=$((limit * ${KCR_SLOW:-2}))
}
