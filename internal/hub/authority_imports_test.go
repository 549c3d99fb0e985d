package hub_test

var authorityOfImports = []row{}
