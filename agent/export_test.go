package agent

// MaxResult is the size limit of a result's text in bytes.
const MaxResult = maxResult

// RenderRequest renders the request of a conversation from its events.
var RenderRequest = renderRequest
