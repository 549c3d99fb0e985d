package picture_test

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"reflect"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/picture"
)

const place = "52.5200N 13.4050E"

// exif is Exif data with an orientation and a place.
func exif(orientation byte) []byte {
	tiff := "II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00" + string(orientation) + "\x00\x00\x00\x00\x00\x00\x00"
	return []byte("Exif\x00\x00" + tiff + place)
}

func segment(mark byte, content []byte) []byte {
	out := binary.BigEndian.AppendUint16([]byte{0xff, mark}, uint16(len(content)+2))
	return append(out, content...)
}

func pngChunk(name, content string) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(content)))
	out = append(out, name+content...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

func webpChunk(name, content string) []byte {
	out := binary.LittleEndian.AppendUint32([]byte(name), uint32(len(content)))
	return append(out, content...)
}

func squares() *image.Paletted {
	img := image.NewPaletted(image.Rect(0, 0, 24, 16), color.Palette{color.White, color.Black})
	for i := range img.Pix {
		img.Pix[i] = uint8(i % 2)
	}
	return img
}

func encode(t *testing.T, f func(b *bytes.Buffer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// webp is an image of 1 × 1 pixels.
func webp(t *testing.T) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString("UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEAAgA0JaQAA3AA/vuUAAA=")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Metadata are removed from images of each type. Their pixels, the animation and the
// orientation stay.
func TestWithoutMetadata(t *testing.T) {
	plainPNG := encode(t, func(b *bytes.Buffer) error { return png.Encode(b, squares()) })
	plainJPEG := encode(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, squares(), nil) })
	plainGIF := encode(t, func(b *bytes.Buffer) error {
		return gif.EncodeAll(b, &gif.GIF{Image: []*image.Paletted{squares(), squares()}, Delay: []int{1, 1}})
	})
	insert := func(data []byte, at int, more ...[]byte) []byte {
		return append(append(bytes.Clone(data[:at]), bytes.Join(more, nil)...), data[at:]...)
	}
	vp8x := webpChunk("VP8X", "\x0c\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	taggedWebP := append(insert(webp(t), 12, vp8x), bytes.Join([][]byte{webpChunk("EXIF", place+" "), webpChunk("XMP ", place+" "), webpChunk("priv", place+" ")}, nil)...)
	binary.LittleEndian.PutUint32(taggedWebP[4:], uint32(len(taggedWebP)-8))
	for _, tt := range []struct {
		name, mime    string
		data          []byte
		width, height int
	}{
		{"PNG", "image/png", insert(plainPNG, 33, pngChunk("tEXt", "Comment\x00"+place), pngChunk("eXIf", place)), 24, 16},
		{"PNG with unknown chunks", "image/png", insert(plainPNG, 33, pngChunk("caBX", place), pngChunk("prVt", place)), 24, 16},
		{"JPEG with a thumbnail", "image/jpeg", insert(plainJPEG, 2, segment(0xe0, []byte("JFXX\x00\x10"+place))), 24, 16},
		{"PNG with something behind it", "image/png", append(bytes.Clone(plainPNG), place...), 24, 16},
		{"JPEG", "image/jpeg", insert(plainJPEG, 2, segment(0xe1, exif(1)), segment(0xe1, []byte("http://ns.adobe.com/xap/1.0/\x00"+place)), segment(0xed, []byte(place)), segment(0xfe, []byte(place))), 24, 16},
		{"JPEG with something behind it", "image/jpeg", append(bytes.Clone(plainJPEG), place...), 24, 16},
		{"GIF", "image/gif", insert(plainGIF, 13, []byte("\x21\xfe\x11"+place+"\x00"), []byte("\x21\xff\x0bXMP DataXMP\x11"+place+"\x00")), 24, 16},
		{"GIF with text", "image/gif", insert(plainGIF, 13, []byte("\x21\x01\x0c0123456789ab\x11"+place+"\x00")), 24, 16},
		{"WebP", "image/webp", taggedWebP, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !bytes.Contains(tt.data, []byte(place)) {
				t.Fatal("the image has no metadata")
			}
			out, err := picture.WithoutMetadata(tt.data)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(out, []byte(place)) {
				t.Error("metadata are left")
			}
			for _, data := range [][]byte{tt.data, out} {
				info, err := picture.Inspect(data)
				if err != nil || info != (picture.Info{MIMEType: tt.mime, Width: tt.width, Height: tt.height}) {
					t.Errorf("got %+v, %v", info, err)
				}
			}
			if again, err := picture.WithoutMetadata(out); err != nil || !bytes.Equal(again, out) {
				t.Errorf("it changes again: %v", err)
			}
			for n := range len(out) { // no prefix panics
				_, _ = picture.WithoutMetadata(out[:n])
				_, _ = picture.Inspect(out[:n])
			}
		})
	}
	for name, data := range map[string][]byte{"PNG": plainPNG, "JPEG": plainJPEG, "GIF": plainGIF, "WebP": webp(t)} {
		if out, err := picture.WithoutMetadata(data); err != nil || !bytes.Equal(out, data) {
			t.Errorf("a %s image without metadata changes: %v", name, err)
		}
	}
	animated, err := gif.DecodeAll(bytes.NewReader(plainGIF))
	if err != nil || len(animated.Image) != 2 || !reflect.DeepEqual(animated.Image[1].Pix, squares().Pix) {
		t.Errorf("the animation changes: %v", err)
	}
	turned, err := picture.WithoutMetadata(insert(plainJPEG, 2, segment(0xe1, exif(6))))
	if err != nil || !bytes.Contains(turned, []byte("Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06")) {
		t.Errorf("the orientation is lost: %v", err)
	}
	for name, data := range map[string][]byte{"with a header": exif(6), "without a header": exif(6)[6:]} {
		at := insert(webp(t), 12, vp8x)
		at = append(at, webpChunk("EXIF", string(data)+strings.Repeat(" ", len(data)%2))...)
		binary.LittleEndian.PutUint32(at[4:], uint32(len(at)-8))
		out, err := picture.WithoutMetadata(at)
		if err != nil || bytes.Contains(out, []byte(place)) || out[20] != 0x08 || !bytes.HasSuffix(out, []byte("EXIF\x1a\x00\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00")) {
			t.Errorf("the orientation of a WebP image %s is lost, or more stays: %q, %v", name, out, err)
		}
		if again, err := picture.WithoutMetadata(out); err != nil || !bytes.Equal(again, out) {
			t.Errorf("it changes again: %v", err)
		}
	}
	if img, err := jpeg.Decode(bytes.NewReader(turned)); err != nil || img.Bounds().Dx() != 24 {
		t.Errorf("the turned image does not decode: %v", err)
	}
}

// Data that are no image, or damaged, are refused.
func TestRefused(t *testing.T) {
	for _, data := range []string{"", "\x89PNG\r\n\x1a\n", "\xff\xd8\xff", "GIF89a", "RIFF\x00\x00\x00\x00WEBPVP8 ", "<svg xmlns='http://www.w3.org/2000/svg'/>", "BM" + strings.Repeat("\x00", 60)} {
		if _, err := picture.Inspect([]byte(data)); !errors.Is(err, picture.ErrFormat) {
			t.Errorf("Inspect(%.10q): %v", data, err)
		}
		if _, err := picture.WithoutMetadata([]byte(data)); !errors.Is(err, picture.ErrFormat) {
			t.Errorf("WithoutMetadata(%.10q): %v", data, err)
		}
	}
}

// The size of an image is that of its largest frame.
func TestSizeOfFrames(t *testing.T) {
	large := "\x2f\xff\xff\xff\x0f" // 16384 × 16384
	frame := "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + string(webpChunk("VP8L", large+" "))
	for name, chunk := range map[string][]byte{"VP8L": webpChunk("VP8L", large+" "), "frame": webpChunk("ANMF", frame)} {
		data := append([]byte("RIFF\x00\x00\x00\x00WEBP"), webpChunk("VP8X", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")...)
		data = append(data, chunk...)
		binary.LittleEndian.PutUint32(data[4:], uint32(len(data)-8))
		if info, err := picture.Inspect(data); err != nil || info.Width != 16384 || info.Height != 16384 {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
	}
	small := encode(t, func(b *bytes.Buffer) error { return gif.Encode(b, squares(), nil) })
	small[6], small[8] = 1, 1
	if _, err := picture.WithoutMetadata(small); !errors.Is(err, picture.ErrFormat) {
		t.Errorf("a GIF image with a frame outside of it: %v", err)
	}
}

// An image is damaged if its pixels do not decode.
func TestVerify(t *testing.T) {
	noise := image.NewNRGBA(image.Rect(0, 0, 61, 47))
	for i := range noise.Pix {
		noise.Pix[i] = byte(i * i >> 3)
	}
	interlaced := bytes.Join([][]byte{[]byte("\x89PNG\r\n\x1a\n"), pngChunk("IHDR", "\x00\x00\x00\x03\x00\x00\x00\x03\x08\x00\x00\x00\x01"), pngChunk("IDAT", string(encode(t, func(b *bytes.Buffer) error {
		z := zlib.NewWriter(b)
		for _, columns := range []int{1, 1, 2, 1, 1, 3} { // the rows of passes 1, 4, 5, 6, 6 and 7
			if _, err := z.Write(make([]byte, 1+columns)); err != nil {
				return err
			}
		}
		return z.Close()
	}))), pngChunk("IEND", "")}, nil)
	if _, err := png.Decode(bytes.NewReader(interlaced)); err != nil {
		t.Fatal(err)
	}
	if err := picture.Verify(interlaced); err != nil {
		t.Errorf("an interlaced PNG: %v", err)
	}
	for name, data := range map[string][]byte{
		"PNG":       encode(t, func(b *bytes.Buffer) error { return png.Encode(b, noise) }),
		"1 bit PNG": encode(t, func(b *bytes.Buffer) error { return png.Encode(b, squares()) }),
		"JPEG":      encode(t, func(b *bytes.Buffer) error { return jpeg.Encode(b, noise, nil) }),
		"GIF":       encode(t, func(b *bytes.Buffer) error { return gif.Encode(b, noise, nil) }),
	} {
		if err := picture.Verify(data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		broken := bytes.Clone(data)
		at := max(len(data)/2, bytes.Index(data, []byte("IDAT"))+8)
		for i := range min(20, len(data)-at-20) {
			broken[at+i] ^= 0x5a
		}
		if name == "JPEG" { // a wrong pixel is no error, but a missing end is
			broken = append(bytes.Clone(data[:len(data)*2/3]), 0xff, 0xd9)
		}
		if _, err := picture.Inspect(broken); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := picture.Verify(broken); !errors.Is(err, picture.ErrFormat) {
			t.Errorf("%s with damaged pixels: %v", name, err)
		}
	}
	if err := picture.Verify(webp(t)); err != nil {
		t.Error(err)
	}
}
