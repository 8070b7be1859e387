# SPDX-License-Identifier: GPL-2.0
set logscale xy
set xlabel "bytes"
set ylabel "one way, µs"
plot table using 1:2 with linespoints lc rgb "#90a4ae" pt 6 title "vader", \
     table using 1:3 with linespoints lc rgb "#1565c0" pt 7 title "btl/cr, shared memory", \
     table using 1:4 with linespoints lc rgb "#bcaaa4" pt 4 title "tcp", \
     table using 1:5 with linespoints lc rgb "#c62828" pt 5 title "btl/cr, TCP"
