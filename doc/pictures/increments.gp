# SPDX-License-Identifier: GPL-2.0
set ylabel "% of a full image"
set yrange [0:*]
set style data histogram
set style histogram clustered gap 1
set boxwidth 0.9
plot table using 2:xtic(1) lc rgb "#1565c0" title "time", table using 3 lc rgb "#90a4ae" title "size"
