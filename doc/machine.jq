# A line of AsciiDoc for each machine that the results are of.
to_entries | map({name: .key} + .value) |
group_by([.kernel, .processors, .emulated, .rounds])[] |
"* \(map(.name) | join(", ")): Linux \(.[0].kernel), \(.[0].processors) processors, medians of \(.[0].rounds) rounds"
+ if .[0].emulated then "; an emulated machine, of which only the ratios say something" else "" end + "."
