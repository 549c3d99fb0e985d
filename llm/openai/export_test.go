package openai

var QuirksOf = quirksOf
