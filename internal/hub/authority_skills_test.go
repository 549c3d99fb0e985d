package hub_test

var authorityOfSkills = []row{}
