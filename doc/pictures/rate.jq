# Bytes of a context file per time, written and read, beside cat: MB/s.
.checkpoint // error("no member checkpoint: use the file of make bench RESULTS=") | .median |
.bytes as $bytes | def rate(name): $bytes / 1000 / .[name];
[["cat", rate("cat")], ["checkpoint", rate("dump write")], ["restart", rate("restart fill")]][] | @tsv
