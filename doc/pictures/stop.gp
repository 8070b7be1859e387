# SPDX-License-Identifier: GPL-2.0
set ylabel "stopped, ms"
set yrange [0:*]
plot table using 2:xtic(1) with boxes lc rgb "#1565c0" notitle, \
     table using 0:2:(sprintf("%.1f", $2)) with labels offset 0,0.7 notitle
