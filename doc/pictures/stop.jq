# How long a process stands still in a checkpoint, in milliseconds.
.checkpoint // error("no member checkpoint: use the file of make bench RESULTS=") | .median |
[["KCR", .["dump stopped"]], ["KCR --snapshot", .["snapshot stopped"]],
 ["CRIU", .["large criu frozen"]]][] | select(.[1]) | @tsv
