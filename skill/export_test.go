package skill

// SplitTools splits a list of tool patterns.
var SplitTools = splitTools
