# fish completion for cr_check
# SPDX-License-Identifier: GPL-2.0
complete -c cr_check -f
complete -c cr_check -a '(__fish_complete_pids)'
complete -c cr_check -s h -l help -d 'Show help'
complete -c cr_check -l version -d 'Show the version'
complete -c cr_check -l json -d 'The answers as JSON'
complete -c cr_check -l stop -d 'Stop them for a moment to see more'
complete -c cr_check -s d -l dir -x -a '(__fish_complete_directories)' -d 'Where the context file is to go'
