package chat

// AdoptConversation exports adoptConversation for tests.
var AdoptConversation = (*Engine).adoptConversation
