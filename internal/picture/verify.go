package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image/gif"
	"image/jpeg"
	"io"
	"sync"
)

// Limits for decoding an image.
const (
	maxDecoded = 96 << 20 // memory, in bytes
	maxSide    = 1 << 16  // width and height, in pixels
)

// decoding is held while an image is decoded, because each image may need
// [maxDecoded] bytes.
var decoding sync.Mutex

// Verify reports whether the pixels of an image can be decoded. It fails with
// [ErrFormat] if they cannot. It does not decode WebP images, images whose width or
// height exceeds 65,536 pixels, and images that need more than 96 MiB of memory.
func Verify(data []byte) error {
	info, err := Inspect(data)
	if err != nil {
		return err
	}
	if max(info.Width, info.Height) > maxSide {
		return nil
	}
	decoding.Lock()
	defer decoding.Unlock()
	switch info.MIMEType {
	case "image/png":
		err = verifyPNG(data)
	case "image/jpeg":
		if jpegMemory(data) <= maxDecoded {
			_, err = jpeg.Decode(bytes.NewReader(data))
		}
		if _, ok := errors.AsType[jpeg.UnsupportedError](err); ok { // others may decode it
			return nil
		}
	case "image/gif":
		if info.Width*info.Height <= maxDecoded {
			_, err = gif.Decode(bytes.NewReader(data))
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %v", ErrFormat, err)
	}
	return nil
}

// verifyPNG checks the checksums and decompresses the pixels, but does not store them.
func verifyPNG(data []byte) error {
	var header []byte
	var pixels []io.Reader
	for rest := data[8:]; ; {
		if len(rest) < 12 {
			return io.ErrUnexpectedEOF
		}
		size := int64(binary.BigEndian.Uint32(rest))
		if size+12 > int64(len(rest)) {
			return io.ErrUnexpectedEOF
		}
		name, content := string(rest[4:8]), rest[8:8+size]
		if crc32.ChecksumIEEE(rest[4:8+size]) != binary.BigEndian.Uint32(rest[8+size:]) {
			return fmt.Errorf("wrong checksum of chunk %q", name)
		}
		rest = rest[12+size:]
		switch name {
		case "IHDR":
			header = content
		case "IDAT":
			pixels = append(pixels, bytes.NewReader(content))
		case "IEND":
			return verifyPixels(header, io.MultiReader(pixels...))
		}
	}
}

// pngPasses are the first column and row of each pass of an interlaced image, and the
// distances between them.
var pngPasses = [7][4]int{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}

// verifyPixels checks that the number of compressed pixels matches the header.
func verifyPixels(header []byte, compressed io.Reader) error {
	if len(header) != 13 {
		return errors.New("wrong header")
	}
	width, height := int(binary.BigEndian.Uint32(header)), int(binary.BigEndian.Uint32(header[4:]))
	samples, ok := map[byte]int{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[header[9]]
	if !ok {
		return fmt.Errorf("unknown color type %d", header[9])
	}
	bits := samples * int(header[8])
	passes := pngPasses[:]
	if header[12] == 0 {
		passes = [][4]int{{0, 0, 1, 1}}
	}
	r, err := zlib.NewReader(compressed)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, p := range passes {
		columns, rows := (width-p[0]+p[2]-1)/p[2], (height-p[1]+p[3]-1)/p[3]
		if columns <= 0 || rows <= 0 {
			continue
		}
		row := make([]byte, 1+(columns*bits+7)/8)
		for range rows {
			if _, err := io.ReadFull(r, row); err != nil {
				return err
			}
			if row[0] > 4 {
				return fmt.Errorf("unknown filter %d", row[0])
			}
		}
	}
	return nil
}

// jpegMemory returns about how many bytes are needed to decode a JPEG image.
func jpegMemory(data []byte) int {
	const coefficient = 4 // bytes for each sample of a progressive image
	for at := 2; at+4 <= len(data) && data[at] == 0xff; {
		mark := data[at+1]
		if mark == 0xff { // a fill byte
			at++
			continue
		}
		content := data[at+4:]
		if mark >= 0xc0 && mark <= 0xc2 && len(content) >= 6 {
			height, width := int(binary.BigEndian.Uint16(content[1:])), int(binary.BigEndian.Uint16(content[3:]))
			n := int(content[5])
			if n != 1 && n != 3 && n != 4 || len(content) < 6+3*n {
				return 0 // it does not decode
			}
			samples, across, down := 0, 1, 1
			for i := range n {
				h, v := int(content[7+3*i]>>4), int(content[7+3*i]&15)
				samples, across, down = samples+h*v, max(across, h), max(down, v)
			}
			size := width * height * samples / (across * down)
			if mark == 0xc2 {
				size *= 1 + coefficient
			}
			if n == 4 {
				size += 4 * width * height
			}
			return size
		}
		at += 2 + int(binary.BigEndian.Uint16(data[at+2:]))
	}
	return 0
}
