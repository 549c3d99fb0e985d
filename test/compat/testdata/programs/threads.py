"""Threads, a lock, a condition and a pool of threads."""
import threading
from concurrent.futures import ThreadPoolExecutor

total, lock, ready = 0, threading.Lock(), threading.Event()


def work(n):
    global total
    ready.wait()
    with lock:
        total += n


threads = [threading.Thread(target=work, args=(n,)) for n in range(30)]
for t in threads:
    t.start()
ready.set()
for t in threads:
    t.join()
with ThreadPoolExecutor(8) as pool:
    print(total, sum(pool.map(len, ["a" * n for n in range(20)])))
