# fish completion for cr_migrate
# SPDX-License-Identifier: GPL-2.0
complete -c cr_migrate -f
complete -c cr_migrate -a '(__fish_complete_pids)'
complete -c cr_migrate -a '(__fish_print_hostnames)'
complete -c cr_migrate -s h -l help -d 'Show help'
complete -c cr_migrate -l version -d 'Show the version'
complete -c cr_migrate -s e -l rsh -x -a '(__fish_complete_command)' -d 'Instead of ssh'
complete -c cr_migrate -l spool -x -a '(__fish_complete_directories)' -d 'Folder at the host for the images'
complete -c cr_migrate -l detach -d 'End when they run there'
complete -c cr_migrate -l rounds -x -d 'How often memory is copied while they run'
complete -c cr_migrate -l changes -x -a 'auto dirty hash' -d 'How changes are found'
complete -c cr_migrate -l compress -x -a 'auto lz4 zstd none' -d 'How to compress'
complete -c cr_migrate -l skip-unsupported -d 'Restore as closed what cannot be saved'
complete -c cr_migrate -s t -l time -x -d 'Run on here if it takes longer'
complete -c cr_migrate -l json -d 'What was done as JSON'
complete -c cr_migrate -l receive -d 'The other end'
complete -c cr_migrate -s q -l quiet -d 'No messages'
complete -c cr_migrate -s v -l verbose -d 'More messages'
