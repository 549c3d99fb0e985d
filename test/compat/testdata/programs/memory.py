"""200 MB, which is below what a script may use."""
block = bytearray(200 << 20)
for i in range(0, len(block), 4096):
    block[i] = 1
print(sum(block[::4096]))
