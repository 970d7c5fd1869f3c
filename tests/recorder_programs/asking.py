"""Coroutines that ask a server one by one."""

import asyncio


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readline()
    await asyncio.sleep(0.02)
    writer.write(b"1\n")
    await writer.drain()
    writer.close()


async def ask(port: int) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"?\n")
    got = int(await reader.readline())
    writer.close()
    return got


async def main() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    total = 0
    for _ in range(20):
        total += await ask(port)
    print(total)
    server.close()


asyncio.run(main())
