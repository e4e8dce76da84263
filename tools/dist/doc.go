// Command dist makes a release of understudy: the program for every system, packed
// as people expect it there, with sums, a bill of materials and a provenance
// statement. Two runs over the same commit with the same Go give the same bytes:
// every time is the commit's, every owner is root, every list is sorted, and
// nothing of the machine gets in.
//
// It knows git, Go's build information and the formats of packages. It never knows
// how the program works: what it needs of it (the template, the manual page, the
// completions) it gets by running it.
package main
