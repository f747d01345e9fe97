# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that makes a network bad on command: latency, dropped connections, partitions, cuts in mid-message.

    with FaultProxy("127.0.0.1", port) as proxy:
        ...connect to 127.0.0.1:proxy.port...
        proxy.partition(True)

It runs in a thread of its own. Every method takes effect before it returns, and may be called from any thread.
"""
import asyncio
import contextlib
import socket
import struct
import threading

CHUNK = 1 << 16
MOST_HELD = 1024  # chunks per direction; then the sender has to wait


class Captured:
    def __init__(self):
        self.to_target = bytearray()
        self.from_target = bytearray()

    def __contains__(self, data):
        return data in self.to_target or data in self.from_target


class FaultProxy:
    def __init__(self, target_host, target_port, record=False):
        """With record=True, `captured` keeps every byte that was forwarded, in both directions."""
        self._target = (target_host, target_port)
        self.captured = Captured() if record else None
        self.connections = 0  # accepted so far
        self.cuts = 0  # by cut_after, so far
        self._seconds = 0.0
        self._left = None  # bytes until the cut
        self._links = {}  # running task -> its two writers
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)
        self._thread.start()
        self._call(self._start())

    def delay(self, seconds):
        """From now on every byte takes so much longer, each way. Throughput stays what it is."""
        self._call(self._set_delay(seconds))

    def partition(self, on):
        """While on, nothing is forwarded, not even the end of a connection: bytes are held, new connections hang."""
        self._call(self._set_partition(on))

    def drop_connections(self):
        """Resets every connection there is; new ones are welcome."""
        self._call(self._drop(list(self._links)))

    def cut_after(self, count):
        """Forwards `count` more bytes, both directions together, then resets the connection that carried the last."""
        self._call(self._set_cut(count))

    def stop(self):
        if self._loop.is_closed():
            return
        self._call(self._finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=10)

    async def _start(self):
        self._open = asyncio.Event()
        self._open.set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _finish(self):
        self._server.close()
        await self._drop(list(self._links))

    async def _set_delay(self, seconds):
        self._seconds = seconds

    async def _set_partition(self, on):
        self._open.clear() if on else self._open.set()

    async def _set_cut(self, count):
        self._left = count

    async def _drop(self, tasks):
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader, writer):
        self.connections += 1
        task = asyncio.current_task()
        self._links[task] = [writer]
        with contextlib.suppress(OSError, asyncio.CancelledError):
            try:
                await self._open.wait()
                target_reader, target_writer = await asyncio.open_connection(*self._target)
                self._links[task].append(target_writer)
                ways = [self._forward(reader, target_writer, "to_target"),
                        self._forward(target_reader, writer, "from_target")]
                ways = [asyncio.ensure_future(way) for way in ways]
                try:
                    await asyncio.gather(*ways)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)
            except (OSError, asyncio.CancelledError):
                for one in self._links[task]:
                    reset(one)
            finally:
                for one in self._links.pop(task):
                    one.close()

    async def _forward(self, reader, writer, way):
        """One direction: reading and writing are apart, so that a delay holds bytes back without slowing them."""
        held = asyncio.Queue(MOST_HELD)
        reading = asyncio.ensure_future(self._read(reader, held))
        try:
            while True:
                due, data = await held.get()
                if isinstance(data, OSError):
                    await self._open.wait()
                    raise data
                await asyncio.sleep(max(0.0, due - self._loop.time()))
                await self._open.wait()
                if not data:
                    writer.write_eof()
                    return
                await self._write(writer, data, way)
        finally:
            reading.cancel()

    async def _read(self, reader, held):
        data = b"?"
        while data and not isinstance(data, OSError):
            try:
                data = await reader.read(CHUNK)
            except OSError as error:
                data = error
            await held.put((self._loop.time() + self._seconds, data))

    async def _write(self, writer, data, way):
        cut = self._left is not None and len(data) >= self._left
        if cut:
            data = data[:self._left]
            self._left = None
        elif self._left is not None:
            self._left -= len(data)
        if self.captured:
            getattr(self.captured, way).extend(data)
        writer.write(data)
        await writer.drain()
        if cut:
            self.cuts += 1
            # A reset would overtake the bytes that must still arrive: the side that gets them sees the end instead.
            writer.close()
            raise ConnectionResetError("cut")


def reset(writer):
    """Closes with a reset instead of a farewell."""
    end = writer.get_extra_info("socket")
    if end is not None and end.fileno() >= 0 and not writer.is_closing():
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
