package hub_test

var authorityOfVersions = []row{}
