"""A relay to Valkey whose other end can be made slow, silent or gone while it runs."""

import asyncio
import threading
from collections.abc import Coroutine


class Relay:
    """Forwards from a port of its own to `to`, on a thread of its own."""

    def __init__(self, to: int):
        self.to, self.delay_s, self.silent = to, 0.0, False
        self.server: asyncio.Server | None = None
        self.writers: set[asyncio.StreamWriter] = set()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.port = self._await(self._listen(0))

    def become(self, delay_ms: int = 0, silent: bool = False, gone: bool = False) -> None:
        """From now on every chunk takes so much longer each time it passes, or none passes, or nobody is there."""
        self.delay_s, self.silent = delay_ms / 1e3, silent
        self._await(self._leave() if gone else self._listen(self.port))

    def stop(self) -> None:
        self._await(self._leave())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def _await(self, coroutine: Coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(10)

    async def _listen(self, port: int) -> int:
        if self.server is None:
            self.server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        return self.server.sockets[0].getsockname()[1]

    async def _leave(self) -> None:
        if self.server is not None:
            self.server.close()
            self.server = None
        for writer in self.writers:
            writer.transport.abort()
        self.writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there = await asyncio.open_connection("127.0.0.1", self.to)
        self.writers |= {writer, there}
        # Commands are delayed, and answers are not: each round trip takes so much longer.
        await asyncio.gather(self._pass(reader, there, delayed=True), self._pass(there_reader, writer, delayed=False))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delayed: bool) -> None:
        due: asyncio.Queue = asyncio.Queue()

        async def send() -> None:
            while True:
                at, chunk = await due.get()
                await asyncio.sleep(at - self.loop.time())
                if not self.silent:
                    writer.write(chunk)

        sending = asyncio.create_task(send())
        try:
            while chunk := await reader.read(65536):
                due.put_nowait((self.loop.time() + self.delay_s * delayed, chunk))
        except OSError:
            pass
        finally:
            sending.cancel()
            writer.close()
