"""concurrent.futures with processes, and shared memory."""
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import shared_memory


def count(args):
    name, low, high = args
    memory = shared_memory.SharedMemory(name=name)
    n = sum(memory.buf[low:high])
    memory.close()
    return n


if __name__ == "__main__":
    memory = shared_memory.SharedMemory(create=True, size=1 << 20)
    memory.buf[:] = b"\1" * memory.size
    step = 1 << 18
    with ProcessPoolExecutor(2) as pool:
        jobs = [pool.submit(count, (memory.name, i, i + step)) for i in range(0, 1 << 20, step)]
        print(sum(j.result() for j in as_completed(jobs)))
    memory.close()
    memory.unlink()
