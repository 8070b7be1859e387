# A table in AsciiDoc: when a restarted program runs, and when all of its memory is loaded.
.lazy // error("no member lazy: use the file of make bench RESULTS=") |
.sizes as $sizes | .median |
def ms(name): if .[name] then "\(.[name] | round) ms" else "-" end;
"[%autowidth]", "|===",
"|program 2+|cr_restart 2+|cr_restart --lazy 2+|criu restore 2+|criu restore --lazy-pages",
"| |runs |loaded |runs |loaded |runs |loaded |runs |loaded", "",
($sizes[] as $size |
 "|\($size) MiB " + ([("eager", "lazy", "criu", "criu lazy") as $way | ("runs", "loaded") as $what |
		      "|" + ms("\($size) \($way) \($what)")] | join(" "))),
"|==="
