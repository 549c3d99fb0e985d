package direct

// rssUnit is the unit of the memory in what a process has used.
const rssUnit = 1024
