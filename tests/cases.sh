# SPDX-License-Identifier: GPL-2.0
# The cases, for tests/run and tests/run-group.  AREA/NAME is a script of that name in
# tests/cases, or, where all there is to say is that a program survives, a line of
# tests/cases/AREA/table:
#	NAME  PROGRAM [ARGUMENT...]  [| [timeout:SECONDS] [OPTION OF cr_checkpoint...]]
# tests/survives runs it.  What is behind # is for readers.

declare -A rows=()	# AREA/NAME: what is behind the name
read_areas=' '

# read_table AREA: into rows; fails if a line is none.
read_table() {
	local file=$KCR_TOP/tests/cases/$1/table line lines=()
	[[ $read_areas != *" $1 "* ]] || return 0
	read_areas+="$1 "
	[ ! -r "$file" ] || mapfile -t lines < "$file"
	for line in "${lines[@]}"; do
		line=${line%%#*}
		if [[ $line =~ ^([a-z0-9_]+)[[:blank:]]+([^|[:blank:]].*) ]] &&
		   [ -z "${rows[$1/${BASH_REMATCH[1]}]-}" ] && [ ! -e "${file%table}${BASH_REMATCH[1]}" ]; then
			rows[$1/${BASH_REMATCH[1]}]=${BASH_REMATCH[2]}
		elif [[ $line = *[![:blank:]]* ]]; then
			echo "$file: no case, or one that there is already: $line" >&2
			return 1
		fi
	done
}

# names_of AREA: its cases, sorted.
names_of() {
	local script name
	read_table "$1" || return
	{
		for script in "$KCR_TOP/tests/cases/$1"/*; do
			[ ! -x "$script" ] || [ ! -f "$script" ] || echo "$1/${script##*/}"
		done
		for name in "${!rows[@]}"; do
			[[ $name != "$1"/* ]] || echo "$name"
		done
	} | sort
}

# find_case AREA/NAME: sets command, and limit as time_limit does; fails if there is no
# such case.
find_case() {
	local row options=
	read_table "${1%%/*}"
	row=${rows[$1]-}
	if [ -z "$row" ]; then
		command=("$KCR_TOP/tests/cases/$1")
		[ -x "${command[0]}" ] && [ -f "${command[0]}" ] && time_limit "${command[0]}"
		return
	fi
	[[ $row != *\|* ]] || options=${row#*|}
	limit=120
	if [[ $options =~ timeout:([0-9]+) ]]; then
		limit=${BASH_REMATCH[1]}
		options=${options/"${BASH_REMATCH[0]}"/}
	fi
	limit=$((limit * ${KCR_SLOW:-2}))
	command=("$KCR_TOP/tests/survives" "${row%%|*}" "$options")
}

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
