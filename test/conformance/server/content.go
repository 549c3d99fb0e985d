package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// contentTools returns tools that each return one kind of content.
func contentTools() []tool {
	picture := &mcp.ImageContent{Data: redPixel, MIMEType: "image/png"}
	var tools []tool
	for _, c := range []struct {
		name, description string
		content           []mcp.Content
		isError           bool
	}{
		{name: "test_simple_text", description: "Returns a text.",
			content: []mcp.Content{&mcp.TextContent{Text: "This is a simple text response for testing."}}},
		{name: "test_image_content", description: "Returns a picture.",
			content: []mcp.Content{picture}},
		{name: "test_audio_content", description: "Returns a sound.",
			content: []mcp.Content{&mcp.AudioContent{Data: silence, MIMEType: "audio/wav"}}},
		{name: "test_embedded_resource", description: "Returns a resource.",
			content: []mcp.Content{embed("test://embedded-resource", "text/plain", "This is an embedded resource content.")}},
		{name: "test_multiple_content_types", description: "Returns a text, a picture and a resource.",
			content: []mcp.Content{&mcp.TextContent{Text: "Multiple content types test:"}, picture,
				embed("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`)}},
		{name: "test_error_handling", description: "Fails, and says so to the model.", isError: true,
			content: []mcp.Content{&mcp.TextContent{Text: "This tool intentionally returns an error for testing"}}},
	} {
		tools = append(tools, tool{name: c.name, description: c.description,
			call: func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: slices.Clone(c.content), IsError: c.isError}, nil
			}})
	}
	return tools
}

func embed(uri, mime, text string) *mcp.EmbeddedResource {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: mime, Text: text}}
}

// redPixel is a PNG of one red pixel.
var redPixel = func() []byte {
	img := image.NewRGBA(image.Rect(0, 0, 1, 1))
	img.Set(0, 0, color.RGBA{R: 255, A: 255})
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err) // memory does not fail
	}
	return b.Bytes()
}()

// silence is a WAV file of one millisecond: mono, 8,000 one-byte samples per
// second.
var silence = func() []byte {
	samples := bytes.Repeat([]byte{128}, 8)
	le := binary.LittleEndian
	b := le.AppendUint32([]byte("RIFF"), uint32(36+len(samples)))
	b = le.AppendUint32(append(b, "WAVEfmt "...), 16)
	for _, v := range []uint16{1, 1, 8000, 0, 8000, 0, 1, 8} { // PCM, channels, rates as two halves, bytes and bits a sample
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(append(b, "data"...), uint32(len(samples)))
	return append(b, samples...)
}()
