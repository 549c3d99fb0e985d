"""Tasks, a queue, a subprocess, and a server with a client on the loopback."""
import asyncio
import sys


async def main():
    queue = asyncio.Queue()

    async def work(n):
        await asyncio.sleep(0.01)
        await queue.put(n * n)

    await asyncio.gather(*(work(n) for n in range(10)))
    total = sum([queue.get_nowait() for _ in range(10)])

    async def serve(reader, writer):
        writer.write((await reader.readline()).upper())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"hello\n")
    answer = (await reader.readline()).decode().strip()
    writer.close()
    server.close()

    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(6 * 7)", stdout=asyncio.subprocess.PIPE)
    out, _ = await child.communicate()
    print(total, answer, out.decode().strip())


asyncio.run(main())
