// Package filetype determines the MIME types of skill files. It uses the
// extension and the content, but never the tables of the operating system, so a
// file has the same type on every machine.
package filetype

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"
)

// Of returns the MIME type for a file's extension. If the extension is unknown,
// it detects the type from data.
func Of(name string, data []byte) string {
	switch t := ByName(name); {
	case t != "":
		return t
	case len(data) > 0 && IsText(data):
		return "text/plain"
	}
	return "application/octet-stream"
}

// ByName returns the MIME type for a file's extension, or "" if the extension
// is unknown.
func ByName(name string) string { return typesByExtension[strings.ToLower(path.Ext(name))] }

// IsText reports whether data is UTF-8 text without NUL bytes. It checks all of
// data, because encoding invalid UTF-8 as JSON would change it.
func IsText(data []byte) bool {
	return bytes.IndexByte(data, 0) < 0 && utf8.Valid(data)
}

// IsTextFile reports whether a program may show the file as text: its content is
// text, or it has the extension of a text file.
func IsTextFile(name string, data []byte) bool {
	switch t := ByName(name); t {
	case "application/json", "application/yaml", "application/toml", "application/xml", "application/sql", "image/svg+xml":
		return true
	default:
		return strings.HasPrefix(t, "text/") || IsText(data)
	}
}

// Image returns the MIME type of an image that models accept, based on its
// first bytes, or "" for other data. It does not use the file name, because
// vendors reject a request with a wrong type.
func Image(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "image/gif"
	case len(data) > 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

// typesByExtension maps extensions to MIME types.
var typesByExtension = map[string]string{
	".md": "text/markdown", ".markdown": "text/markdown", ".txt": "text/plain", ".mmd": "text/plain", ".csv": "text/csv", ".tsv": "text/tab-separated-values",
	".html": "text/html", ".htm": "text/html", ".css": "text/css", ".xml": "application/xml", ".svg": "image/svg+xml",
	".json": "application/json", ".yaml": "application/yaml", ".yml": "application/yaml", ".toml": "application/toml", ".sql": "application/sql",
	".py": "text/x-python", ".sh": "text/x-shellscript", ".bash": "text/x-shellscript", ".js": "text/javascript", ".mjs": "text/javascript", ".cjs": "text/javascript",
	".ts": "text/typescript", ".tsx": "text/typescript", ".go": "text/x-go", ".rs": "text/x-rust", ".rb": "text/x-ruby",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".bmp": "image/bmp", ".ico": "image/x-icon",
	".pdf": "application/pdf", ".zip": "application/zip", ".gz": "application/gzip", ".wasm": "application/wasm",
	".ttf": "font/ttf", ".otf": "font/otf", ".woff": "font/woff", ".woff2": "font/woff2", ".mp3": "audio/mpeg", ".wav": "audio/wav", ".mp4": "video/mp4",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}
