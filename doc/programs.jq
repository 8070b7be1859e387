# A table in AsciiDoc: a full image, an increment and a compressed one of each program.
.programs // error("no member programs: use the file of make bench RESULTS=") |
.wait as $wait | .names as $names | .median |
def cells(kind): "\(.[kind + " bytes"] / 1e6 * 10 | round / 10) MB", "\(.[kind + " ms"] | round) ms";
"[%autowidth]", "|===",
"|program 2+|full image 2+|increment, \($wait | round) s later |of it 2+|increment, zstd", "",
($names[] as $n |
 "|\($n) " + ([cells($n + " full"), cells($n + " increment"),
	       "\(100 * .[$n + " increment bytes"] / .[$n + " full bytes"] * 10 | round / 10) %",
	       cells($n + " zstd")] | map("|" + .) | join(" "))),
"|==="
