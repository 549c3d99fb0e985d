"""multiprocessing.Pool, by fork and by spawn."""
import multiprocessing


def square(n):
    return n * n


if __name__ == "__main__":
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(3) as pool:
            print(method, sum(pool.map(square, range(100))))
