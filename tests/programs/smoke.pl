#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
# Perl with a child behind a pipe, a signal handler, a closure and a big hash;
# see check.h for the protocol of READY and GO.
use strict;
use warnings;
use Time::HiRes qw(sleep);

my ($ready, $go) = @ARGV;
my $hits = 0;
$SIG{USR1} = sub { $hits++ };
my %table = map { $_ => $_ * 7 } 1 .. 20000;
my $counter = do { my $n = 5; sub { return $n++ } };
$counter->() for 1 .. 10;
pipe(my $from, my $to) or die;
my $pid = fork();
if (!$pid) {
	close($to);
	my $sum = 0;
	$sum += $_ while <$from>;
	exit($sum == 10 ? 21 : 1);
}
close($from);
$to->autoflush(1) if $to->can('autoflush');
print $to "1\n2\n3\n";
open(my $file, '>', $ready) or die;
close($file);
sleep(0.02) until -e $go;
print $to "4\n";
close($to);
die 'child' unless waitpid($pid, 0) == $pid && $? >> 8 == 21;
kill('USR1', $$);
sleep(0.01) until $hits;
die 'closure' unless $counter->() == 15;
for my $key (keys %table) {
	die 'table' unless $table{$key} == $key * 7;
}
exit(0);
