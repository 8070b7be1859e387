# fish completion for cr_batch
# SPDX-License-Identifier: GPL-2.0

# Behind the command: its own arguments.
function __cr_batch_option
    complete -c cr_batch -n __fish_use_subcommand $argv
end

__cr_batch_option -s h -l help -d 'Show help'
__cr_batch_option -l version -d 'Show the version'
__cr_batch_option -s d -l dir -x -a '(__fish_complete_directories)' -d 'For its checkpoints'
__cr_batch_option -l name -x -d 'Of the job there'
__cr_batch_option -l interval -x -a auto -d 'Save every TIME'
__cr_batch_option -l mttf -x -d 'Mean time to failure, for --interval=auto'
__cr_batch_option -l before-end -x -d 'Save before the allocation ends, then end'
__cr_batch_option -l time -x -d 'How long the allocation is'
__cr_batch_option -l leave-on -x -a '(__fish_complete_list , "kill -l | string split \" \"")' -d 'Save on these signals, then end'
__cr_batch_option -l save-on -x -a '(__fish_complete_list , "kill -l | string split \" \"")' -d 'Save on these signals'
__cr_batch_option -l hold -x -d 'Hold signals back from the program for so long'
__cr_batch_option -l exit-each -x -d 'Save every TIME, then end'
__cr_batch_option -l keep -x -d 'How many checkpoints to keep'
__cr_batch_option -l keep-at-end -d 'Keep them when the command has succeeded'
__cr_batch_option -l verify -d 'Read each one again before it counts'
__cr_batch_option -l snapshot -d 'Let it run while its memory is written'
__cr_batch_option -l compress -x -a 'auto lz4 zstd none' -d 'How to compress'
__cr_batch_option -l bandwidth -x -d 'Bytes written per second, at most'
__cr_batch_option -l incremental -d 'Save only what has changed'
__cr_batch_option -l full-every -x -d 'Full again after so many'
__cr_batch_option -l skip-unsupported -d 'Restore as closed what cannot be saved'
__cr_batch_option -l exit-code -x -d 'End with this after a save'
__cr_batch_option -l requeue -x -a 'slurm pbs sge auto none' -d 'Have the job run again'
__cr_batch_option -l max-restarts -x -d 'In a row without a new checkpoint'
__cr_batch_option -l pids -x -a 'try keep namespace' -d 'New process IDs if the old ones are in use?'
__cr_batch_option -l once -d 'Do not repeat a command that has succeeded'
__cr_batch_option -l require -d 'Run nothing where it cannot be saved'
__cr_batch_option -l script -d 'The command is a job script'
__cr_batch_option -l prometheus -r -F -d 'Keep the state of the job in this file'
__cr_batch_option -s q -l quiet -d 'Only failures'
__cr_batch_option -s v -l verbose -d 'All events'
__cr_batch_option -l clean -d 'Remove what a deleted job has left'
__cr_batch_option -l status -x -a '(__fish_complete_directories)' -d 'Show the jobs of a folder'

set --local shows 'string match -q -- "--status*" (commandline -poc)'
set --local with_value -d --dir --name --interval --mttf --before-end --time --leave-on --save-on --hold --exit-each \
    --keep --compress --full-every --exit-code --requeue --max-restarts --pids --prometheus
complete -c cr_batch -n "$shows" -f -l json -d 'For programs'
complete -c cr_batch -n "not $shows" -x -a "(__fish_complete_subcommand $with_value)"

functions --erase __cr_batch_option
