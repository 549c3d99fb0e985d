# Regular expressions, a sort, a child and a module that is loaded.
use strict;
use warnings;
use List::Util qw(sum);
use File::Temp qw(tempfile);
my %seen;
$seen{lc $1}++ while "The cat and the Hat and THE end" =~ /(\w+)/g;
my ($fh, $name) = tempfile();
print $fh join ",", map { "$_=$seen{$_}" } sort keys %seen;
close $fh;
print `cat $name`, " ", sum(values %seen), "\n";
