package agents

// Both is what two allow-lists let through.
var Both = intersectAllow
