"""multiprocessing.Manager, whose server is asked over a Unix socket."""
import multiprocessing


def add(shared, lock, n):
    with lock:
        shared["sum"] += n


if __name__ == "__main__":
    with multiprocessing.Manager() as manager:
        shared, lock = manager.dict(sum=0), manager.Lock()
        children = [multiprocessing.Process(target=add, args=(shared, lock, n)) for n in range(5)]
        for c in children:
            c.start()
        for c in children:
            c.join()
        print(type(manager.address).__name__, shared["sum"])
