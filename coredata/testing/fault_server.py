"""An HTTP proxy that makes things go wrong on purpose; `FaultProxy` starts it and steers it.

It runs as a process of its own, so that it neither shares a lock with what is measured nor leaves
threads in a process that forks. Only the standard library is imported: the file is run by path.

Requests are passed on as they come, `Host` included, so that signed requests stay valid. Each line
on standard input is a command, a JSON object, and is answered by one line. The process ends when
its standard input does.
"""

import asyncio
import collections
import contextlib
import json
import re
import socket
import struct
import sys
from dataclasses import dataclass, field
from typing import Any

_PIECE = 1 << 16
_LONGEST_HEAD = 1 << 20
_NO_BODY = re.compile(rb"HTTP/1\.\d (1\d\d|204|304) ")


@dataclass
class Rule:
    """One fault, as `coredata.testing.fault_proxy.Fault` describes it, and how often it came."""

    kind: str
    match: str
    times: int | None
    skip: int
    seconds: float
    status: int
    code: str
    at_byte: int | None

    def takes(self, head: str) -> bool:
        """Whether this request is to suffer; counts it if so."""
        if re.search(self.match, head) is None:
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.times is not None:
            if self.times == 0:
                return False
            self.times -= 1
        return True


@dataclass
class State:
    """What the proxy does at the moment, and what it has seen."""

    upstream: int
    rules: list[Rule] = field(default_factory=list)
    requests: list[list[str]] = field(default_factory=list)
    faults: collections.Counter[str] = field(default_factory=collections.Counter)
    body_bytes: int = 0
    running: int = 0
    most_running: int = 0

    def begin(self, head: str) -> list[Rule]:
        """Note a request; the faults it meets: any number of delays, then at most one other."""
        line, _, headers = head.partition("\r\n")
        method, target, _ = line.split(" ", 2)
        ranged = re.search(r"^range:\s*(.*?)\s*$", headers, re.I | re.M)
        self.requests.append([method, target, ranged.group(1) if ranged else ""])
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        met: list[Rule] = []
        for rule in self.rules:
            if (rule.kind == "delay" or not met or met[-1].kind == "delay") and rule.takes(head):
                met.append(rule)
                self.faults[rule.kind] += 1
        return met

    def obey(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do what a line on standard input says."""
        if command["do"] == "set":
            self.rules = [Rule(**rule) for rule in command["rules"]]
        elif command["do"] == "clear":
            self.requests, self.body_bytes, self.most_running = [], 0, self.running
            self.faults.clear()
        return {
            "requests": self.requests,
            "faults": dict(self.faults),
            "body_bytes": self.body_bytes,
            "most_at_once": self.most_running,
        }


class _Broken(Exception):
    """The connection to the client is to end here."""


class _Connection:
    """One connection of a client, and one to the server behind it, opened when first needed."""

    def __init__(
        self, state: State, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._state = state
        self._reader, self._writer = reader, writer
        self._upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def serve(self) -> None:
        """Answer requests until either side has had enough."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, _Broken):
            while True:
                head = await self._reader.readuntil(b"\r\n\r\n")
                rules = self._state.begin(head.decode("latin1"))
                try:
                    await self._answer(head, rules)
                finally:
                    self._state.running -= 1
        for writer in (self._writer, self._upstream and self._upstream[1]):
            if writer is not None:
                writer.close()

    async def _answer(self, head: bytes, rules: list[Rule]) -> None:
        for rule in rules:
            if rule.kind == "delay":
                await asyncio.sleep(rule.seconds)
        fault = rules[-1] if rules and rules[-1].kind != "delay" else None
        if fault is None:
            return await self._pass_on(head, None)
        if fault.kind == "status" or (fault.kind == "changed" and _has(head, b"if-match")):
            return await self._refuse(head, fault)
        if fault.kind == "no_range":
            head = re.sub(rb"\r\nrange:[^\r]*", b"", head, flags=re.I)
        if fault.at_byte is None and fault.kind in ("stall", "reset"):
            await self._break_off(fault)
        await self._pass_on(head, fault)

    async def _refuse(self, head: bytes, fault: Rule) -> None:
        waits = _has(head, b"expect")  # for leave to send its body, which it does not get
        await _copy(self._reader, None, None if waits else _length(head))
        body = (
            f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{fault.code}</Code>'
            "<Message>injected</Message></Error>"
        ).encode()
        self._writer.write(
            f"HTTP/1.1 {fault.status} {fault.code}\r\nContent-Type: application/xml\r\n"
            f"Content-Length: {len(body)}\r\n"
            f"Connection: {'close' if waits else 'keep-alive'}\r\n\r\n".encode()
        )
        if not head.startswith(b"HEAD"):
            self._writer.write(body)
        await self._writer.drain()
        if waits:
            raise _Broken

    async def _break_off(self, fault: Rule) -> None:
        """Say nothing for a while if the fault is to stall, then reset the connection."""
        await self._writer.drain()
        await asyncio.sleep(fault.seconds)
        linger = struct.pack("ii", 1, 0)  # closing then sends RST
        self._writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, linger
        )
        self._writer.transport.abort()
        raise _Broken

    async def _pass_on(self, head: bytes, fault: Rule | None) -> None:
        server, to_server = await self._server()
        to_server.write(head)
        if _has(head, b"expect"):
            await to_server.drain()
            answer = await server.readuntil(b"\r\n\r\n")
            if b" 100 " in answer.split(b"\r\n")[0]:
                self._writer.write(answer)
                await _copy(self._reader, to_server, _length(head))
                answer = await server.readuntil(b"\r\n\r\n")
        else:
            await _copy(self._reader, to_server, _length(head))
            answer = await server.readuntil(b"\r\n\r\n")
        if fault is not None and fault.kind == "changed":
            answer = re.sub(rb'\r\n(etag: *")', rb"\r\n\1changed-", answer, flags=re.I)
        await self._answer_with(answer, server, fault, has_body=not head.startswith(b"HEAD"))
        if re.search(rb"\r\nconnection:\s*close", answer, re.I):
            raise _Broken

    async def _answer_with(
        self, answer: bytes, server: asyncio.StreamReader, fault: Rule | None, has_body: bool
    ) -> None:
        if not has_body or _NO_BODY.match(answer):
            self._writer.write(answer)
            return await self._writer.drain()
        length = _length(answer)
        if length is None:
            return await self._copy_chunks(answer, server)
        if fault is None or fault.at_byte is None or fault.at_byte >= length:
            self._writer.write(answer)
            return await self._copy_body(server, length)
        cut = fault.at_byte
        if fault.kind == "shrunk":
            shorter = b"\r\nContent-Length: %d" % cut
            answer = re.sub(rb"\r\ncontent-length:[^\r]*", shorter, answer, flags=re.I)
        self._writer.write(answer)
        await self._copy_body(server, cut)
        if fault.kind in ("stall", "reset"):
            await self._break_off(fault)
        if fault.kind == "short":
            raise _Broken
        if fault.kind == "flip":
            byte = await server.readexactly(1)
            self._writer.write(bytes([byte[0] ^ 0x10]))
            await self._copy_body(server, length - cut - 1)
        else:
            await _copy(server, None, length - cut)

    async def _copy_body(self, server: asyncio.StreamReader, length: int) -> None:
        await _copy(server, self._writer, length)
        self._state.body_bytes += length

    async def _copy_chunks(self, answer: bytes, server: asyncio.StreamReader) -> None:
        self._writer.write(answer)
        if not re.search(rb"\r\ntransfer-encoding:\s*chunked", answer, re.I):
            while piece := await server.read(_PIECE):
                self._writer.write(piece)
            raise _Broken
        size = -1
        while size:
            line = await server.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            self._writer.write(line)
            await _copy(server, self._writer, size + 2)
            self._state.body_bytes += size

    async def _server(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._upstream is not None and self._upstream[0].at_eof():
            self._upstream[1].close()
            self._upstream = None
        if self._upstream is None:
            self._upstream = await asyncio.open_connection(
                "127.0.0.1", self._state.upstream, limit=_LONGEST_HEAD
            )
        return self._upstream


def _has(head: bytes, name: bytes) -> bool:
    return re.search(rb"\r\n" + name + rb":", head, re.I) is not None


def _length(head: bytes) -> int | None:
    found = re.search(rb"\r\ncontent-length:\s*(\d+)", head, re.I)
    return int(found.group(1)) if found else None


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter | None, length: int | None
) -> None:
    left = length or 0
    while left:
        piece = await reader.read(min(_PIECE, left))
        if not piece:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(piece)
        if writer is not None:
            writer.write(piece)
            await writer.drain()
    if writer is not None:
        await writer.drain()


async def _main(upstream: int, port: int) -> None:
    state = State(upstream)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.CancelledError):  # the proxy ends; asyncio would complain
            await _Connection(state, reader, writer).serve()

    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=_LONGEST_HEAD, backlog=1024)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    commands = asyncio.StreamReader(limit=_LONGEST_HEAD)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        print(json.dumps(state.obey(json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), int(sys.argv[2])))
