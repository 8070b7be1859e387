# SPDX-License-Identifier: GPL-2.0
# What all pictures have in common; `table` is the file with the figures, separated by tabs.
set terminal svg size 640,300 font "sans-serif,12" background "white"
set datafile separator "\t"
set style fill solid 0.8
set boxwidth 0.6
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror
set key outside right
set offsets 0, 0, graph 0.12, 0
