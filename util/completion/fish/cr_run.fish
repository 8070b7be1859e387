# fish completion for cr_run
# SPDX-License-Identifier: GPL-2.0
complete -c cr_run -n __fish_is_nth_token\ 1 -l run -d 'Make the command a client of libcr'
complete -c cr_run -n __fish_is_nth_token\ 1 -l omit -d 'Leave it out of all checkpoints'
complete -c cr_run -n __fish_is_nth_token\ 1 -s h -l help -d 'Show help'
complete -c cr_run -n __fish_is_nth_token\ 1 -l version -d 'Show the version'
complete -c cr_run -x -a '(__fish_complete_subcommand)'
