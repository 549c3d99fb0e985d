package hub_test

var authorityOfKinds = []row{}
