package hub_test

var authorityOfSessions = []row{}
