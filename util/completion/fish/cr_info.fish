# fish completion for cr_info
# SPDX-License-Identifier: GPL-2.0
complete -c cr_info -s a -l all -d 'Also threads, memory and descriptors'
complete -c cr_info -l json -d 'For programs'
complete -c cr_info -l verify -d 'Read the whole file and check it'
complete -c cr_info -l merge -d 'Write one full image of an increment'
complete -c cr_info -l chain-path -x -a '(__fish_complete_directories)' -d 'Where older files of an increment may be'
complete -c cr_info -l core -x -d 'Write the process with this ID as a core'
complete -c cr_info -s o -l output -r -F -d 'Name of the core or full image'
complete -c cr_info -s h -l help -d 'Show help'
complete -c cr_info -l version -d 'Show the version'
