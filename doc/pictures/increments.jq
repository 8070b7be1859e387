# Time and size of increments, in percent of a full image's.
.increments // error("no member increments: use the file of make bench RESULTS=") |
.percent as $percent | .median |
def share(kind; what): 100 * .[kind + " " + what] / .["full " + what];
[["full", 100, 100],
 ["\($percent) % written", share("increment"; "whole"), share("increment"; "bytes")],
 ["idle", share("idle"; "whole"), share("idle"; "bytes")]][] | @tsv
