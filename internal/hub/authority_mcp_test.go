package hub_test

var authorityOfMCP = []row{}
