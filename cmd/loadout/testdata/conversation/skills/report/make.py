import sys

print("the sum is", sum(int(a) for a in sys.argv[1:]))
