package agents

// Both is what two allowlists let through.
var Both = intersectAllowlists
