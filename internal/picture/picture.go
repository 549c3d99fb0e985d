// Package picture reads the sizes of PNG, JPEG, GIF and WebP images, removes their
// metadata, such as the place where a photo was taken, and finds damaged images.
// Start with [Inspect].
package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"slices"

	"github.com/loadout-dev/loadout/internal/filetype"
)

// Info describes an image.
type Info struct {
	MIMEType      string // according to its content
	Width, Height int    // in pixels
}

// ErrFormat is returned if data is not a PNG, JPEG, GIF or WebP image, or is damaged.
var ErrFormat = errors.New("not a PNG, JPEG, GIF or WebP image, or damaged")

// Inspect returns the type and the size of an image. It fails with [ErrFormat].
func Inspect(data []byte) (Info, error) {
	info := Info{MIMEType: filetype.Image(data)}
	var c image.Config
	var err error
	switch info.MIMEType {
	case "image/png":
		c, err = png.DecodeConfig(bytes.NewReader(data))
	case "image/jpeg":
		c, err = jpeg.DecodeConfig(bytes.NewReader(data))
	case "image/gif":
		c, err = gif.DecodeConfig(bytes.NewReader(data))
	case "image/webp":
		c, err = webpConfig(data)
	default:
		return Info{}, ErrFormat
	}
	if err != nil || c.Width <= 0 || c.Height <= 0 {
		return Info{}, fmt.Errorf("%w: %v", ErrFormat, err)
	}
	info.Width, info.Height = c.Width, c.Height
	return info, nil
}

// WithoutMetadata returns an image without its metadata, such as Exif, XMP, IPTC,
// comments, thumbnails, unknown parts, and whatever follows the image. Its pixels, its
// colors, its animation and the orientation of a JPEG or WebP image stay. It fails
// with [ErrFormat].
func WithoutMetadata(data []byte) ([]byte, error) {
	var out []byte
	var ok bool
	switch filetype.Image(data) {
	case "image/png":
		out, ok = stripPNG(data)
	case "image/jpeg":
		out, ok = stripJPEG(data)
	case "image/gif":
		out, ok = stripGIF(data)
	case "image/webp":
		out, ok = stripWebP(data)
	}
	if !ok {
		return nil, ErrFormat
	}
	return out, nil
}

// pngChunks lists the PNG chunks that are kept: those that affect the pixels.
var pngChunks = []string{"IHDR", "PLTE", "tRNS", "IDAT", "IEND", "gAMA", "cHRM", "sRGB", "iCCP", "sBIT", "pHYS", "cICP", "acTL", "fcTL", "fdAT"}

func stripPNG(data []byte) ([]byte, bool) {
	const head, overhead = 8, 12
	out := bytes.Clone(data[:head])
	for rest := data[head:]; len(rest) >= overhead; {
		size := int64(binary.BigEndian.Uint32(rest)) + overhead
		if size > int64(len(rest)) {
			return nil, false
		}
		chunk := rest[:size]
		rest = rest[size:]
		name := string(chunk[4:8])
		if !slices.Contains(pngChunks, name) {
			continue
		}
		if out = append(out, chunk...); name == "IEND" {
			return out, true
		}
	}
	return nil, false
}

// JPEG markers.
const (
	markEnd   = 0xd9
	markScan  = 0xda
	markICC   = 0xe2
	markAdobe = 0xee // without it, colors may be wrong
)

func stripJPEG(data []byte) ([]byte, bool) {
	out := bytes.Clone(data[:2])
	turned := uint16(1)
	for at := 2; ; {
		for at+1 < len(data) && data[at] == 0xff && data[at+1] == 0xff { // fill bytes
			at++
		}
		if at+2 > len(data) || data[at] != 0xff {
			return nil, false
		}
		mark := data[at+1]
		if mark == markEnd {
			return append(out, 0xff, markEnd), true
		}
		if at+4 > len(data) {
			return nil, false
		}
		end := at + 2 + int(binary.BigEndian.Uint16(data[at+2:]))
		if end < at+4 || end > len(data) {
			return nil, false
		}
		segment := data[at:end]
		content := segment[4:]
		switch {
		case mark == 0xe1 && bytes.HasPrefix(content, []byte("Exif\x00\x00")):
			if o := orientation(content[6:]); turned == 1 && o > 1 && o <= 8 {
				turned = o
				out = append(out, orientationSegment(o)...)
			}
		case mark == 0xe0:
			const size = 14 // without a thumbnail
			if len(content) >= size && bytes.HasPrefix(content, []byte("JFIF\x00")) {
				out = append(out, 0xff, 0xe0, 0, size+2)
				out = append(append(out, content[:size-2]...), 0, 0)
			}
		case mark == 0xfe, mark > 0xe0 && mark <= 0xef && mark != markAdobe && (mark != markICC || !bytes.HasPrefix(content, []byte("ICC_PROFILE\x00"))):
		default:
			out = append(out, segment...)
		}
		at = end
		if mark == markScan {
			next := scanEnd(data, at)
			if next < 0 {
				return nil, false
			}
			out = append(out, data[at:next]...)
			at = next
		}
	}
}

// scanEnd returns the position of the first marker after the compressed data that
// start at a position, or -1 if there is none.
func scanEnd(data []byte, at int) int {
	for ; at+1 < len(data); at++ {
		if next := data[at+1]; data[at] == 0xff && next != 0 && next != 0xff && (next < 0xd0 || next > 0xd7) {
			return at
		}
	}
	return -1
}

// orientation returns the orientation in Exif data, or 0 if it has none.
func orientation(tiff []byte) uint16 {
	var order binary.ByteOrder
	switch {
	case len(tiff) < 8:
		return 0
	case string(tiff[:4]) == "II*\x00":
		order = binary.LittleEndian
	case string(tiff[:4]) == "MM\x00*":
		order = binary.BigEndian
	default:
		return 0
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return 0
	}
	n := int(order.Uint16(tiff[at:]))
	entries := tiff[at+2:]
	for range n {
		if len(entries) < 12 {
			return 0
		}
		if order.Uint16(entries) == 0x0112 && order.Uint16(entries[2:]) == 3 {
			return order.Uint16(entries[8:])
		}
		entries = entries[12:]
	}
	return 0
}

// orientationData returns Exif data that contain only an orientation.
func orientationData(o uint16) []byte {
	tiff := []byte("MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00")
	binary.BigEndian.PutUint16(tiff[18:], o)
	return tiff
}

// orientationSegment returns a JPEG segment that contains only an orientation.
func orientationSegment(o uint16) []byte {
	exif := append([]byte("Exif\x00\x00"), orientationData(o)...)
	return append([]byte{0xff, 0xe1, 0, byte(len(exif) + 2)}, exif...)
}

// orientationChunk returns a WebP chunk that contains only an orientation.
func orientationChunk(o uint16) []byte {
	tiff := orientationData(o)
	return append(binary.LittleEndian.AppendUint32([]byte("EXIF"), uint32(len(tiff))), tiff...)
}

func stripGIF(data []byte) ([]byte, bool) {
	at := 13
	if len(data) < at {
		return nil, false
	}
	at += colorTableSize(data[10])
	if at > len(data) {
		return nil, false
	}
	width, height := binary.LittleEndian.Uint16(data[6:]), binary.LittleEndian.Uint16(data[8:])
	out := bytes.Clone(data[:at])
	for at < len(data) {
		start := at
		drop := false
		switch data[at] {
		case 0x3b:
			return append(out, 0x3b), true
		case 0x21:
			if at+2 >= len(data) {
				return nil, false
			}
			drop = data[at+1] != 0xf9 && (data[at+1] != 0xff || !isAnimation(data[at+2:])) // 0xf9: how to show the next frame
			at += 2
		case 0x2c:
			if at+10 >= len(data) || !isFrameInside(data[at+1:], width, height) {
				return nil, false
			}
			at += 10 + colorTableSize(data[at+9]) + 1 // with the size of codes
		default:
			return nil, false
		}
		for { // blocks
			if at >= len(data) {
				return nil, false
			}
			n := int(data[at])
			if at += 1 + n; n == 0 {
				break
			}
		}
		if at > len(data) {
			return nil, false
		}
		if !drop {
			out = append(out, data[start:at]...)
		}
	}
	return nil, false
}

// colorTableSize returns the size of a color table according to its flags.
func colorTableSize(flags byte) int {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

// isFrameInside reports whether a frame lies within a GIF image of the given size.
func isFrameInside(frame []byte, width, height uint16) bool {
	at := func(i int) int { return int(binary.LittleEndian.Uint16(frame[i:])) }
	return at(0)+at(4) <= int(width) && at(2)+at(6) <= int(height)
}

// isAnimation reports whether an application extension says how often an animation
// repeats.
func isAnimation(block []byte) bool {
	return bytes.HasPrefix(block, []byte("\x0bNETSCAPE2.0")) || bytes.HasPrefix(block, []byte("\x0bANIMEXTS1.0"))
}

const webpHead = 12

// webpChunk returns the first chunk, with its padding, and the rest. It returns false
// if the chunk is incomplete.
func webpChunk(data []byte) (chunk, rest []byte, ok bool) {
	if len(data) < 8 {
		return nil, nil, false
	}
	size := int64(binary.LittleEndian.Uint32(data[4:]))
	size += 8 + size&1
	if size > int64(len(data)) {
		return nil, nil, false
	}
	return data[:size], data[size:], true
}

func stripWebP(data []byte) ([]byte, bool) {
	out := bytes.Clone(data[:webpHead])
	size := int64(binary.LittleEndian.Uint32(data[4:])) + 8
	if size < webpHead || size > int64(len(data)) {
		return nil, false
	}
	var flags int // index of the flags in out; 0 before them
	for rest := data[webpHead:size]; len(rest) > 0; {
		chunk, after, ok := webpChunk(rest)
		if !ok {
			return nil, false
		}
		rest = after
		switch string(chunk[:4]) {
		case "EXIF":
			// Some writers put the header of a JPEG segment before the data.
			if o := orientation(bytes.TrimPrefix(chunk[8:], []byte("Exif\x00\x00"))); flags > 0 && out[flags]&0x08 == 0 && o > 1 && o <= 8 {
				out = append(out, orientationChunk(o)...)
				out[flags] |= 0x08
			}
		case "VP8X":
			if len(chunk) < 18 {
				return nil, false
			}
			flags = len(out) + 8
			out = append(out, chunk...)
			out[flags] &^= 0x0c // neither Exif nor XMP yet
		case "VP8 ", "VP8L", "ALPH", "ANIM", "ANMF", "ICCP":
			out = append(out, chunk...)
		}
	}
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
	return out, true
}

// webpConfig returns the size of a WebP image, or that of its largest frame if it is
// larger.
func webpConfig(data []byte) (image.Config, error) {
	var c image.Config
	size := int64(binary.LittleEndian.Uint32(data[4:])) + 8
	if size < webpHead || size > int64(len(data)) {
		return c, errors.New("incomplete")
	}
	if err := addWebPSizes(&c, data[webpHead:size], 0); err != nil {
		return c, err
	}
	if c.Width == 0 {
		return c, errors.New("unknown WebP content")
	}
	return c, nil
}

// addWebPSizes enlarges c to the sizes in chunks. depth is 1 for the chunks of a frame.
func addWebPSizes(c *image.Config, rest []byte, depth int) error {
	grow := func(width, height int) { c.Width, c.Height = max(c.Width, width), max(c.Height, height) }
	for len(rest) > 0 {
		chunk, after, ok := webpChunk(rest)
		if !ok {
			return errors.New("incomplete")
		}
		rest = after
		content := chunk[8:]
		switch kind := string(chunk[:4]); {
		case kind == "VP8X" && len(content) >= 10:
			grow(1+uint24(content[4:]), 1+uint24(content[7:]))
		case kind == "VP8L" && len(content) >= 5 && content[0] == 0x2f:
			bits := binary.LittleEndian.Uint32(content[1:])
			grow(1+int(bits&0x3fff), 1+int(bits>>14&0x3fff))
		case kind == "VP8 " && len(content) >= 10 && bytes.Equal(content[3:6], []byte{0x9d, 0x01, 0x2a}):
			grow(int(binary.LittleEndian.Uint16(content[6:])&0x3fff), int(binary.LittleEndian.Uint16(content[8:])&0x3fff))
		case kind == "ANMF" && len(content) >= 16 && depth == 0:
			grow(1+uint24(content[6:]), 1+uint24(content[9:]))
			if err := addWebPSizes(c, content[16:], depth+1); err != nil {
				return err
			}
		case kind == "VP8X", kind == "VP8L", kind == "VP8 ", kind == "ANMF":
			return errors.New("unknown WebP content")
		}
	}
	return nil
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
