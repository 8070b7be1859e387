# One-way times by the size of a message, µs: Open MPI's transports and btl/cr.
.mpi // error("no member mpi: use the file of make bench RESULTS=") | .median |
. as $m | [keys[] | select(startswith("vader ")) | ltrimstr("vader ") | tonumber] | sort[] |
[., $m["vader \(.)"], $m["cr shm \(.)"], $m["tcp \(.)"], $m["cr tcp \(.)"]] | @tsv
