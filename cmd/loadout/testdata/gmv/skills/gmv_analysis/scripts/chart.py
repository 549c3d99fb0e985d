"""Draws bar charts as PNG files."""
import struct
import zlib


def bars(path, values, marked, width=4, height=60):
    """Draws one bar per value. The bars with the indexes in marked are red."""
    top = max(values)
    rows = bytearray()
    for y in range(height):
        rows.append(0)
        for i, value in enumerate(values):
            filled = value / top >= 1 - y / height
            color = (255, 255, 255) if not filled else (200, 0, 0) if i in marked else (0, 90, 200)
            rows += bytes(color * width)
    head = struct.pack(">IIBBBBB", width * len(values), height, 8, 2, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n")
        for kind, data in ((b"IHDR", head), (b"IDAT", zlib.compress(bytes(rows))), (b"IEND", b"")):
            f.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))
