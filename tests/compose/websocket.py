#!/usr/bin/env python3
"""One call over a WebSocket through the load balancer: websocket.py HOST PORT PATH prints what came back."""

import base64
import hashlib
import os
import socket
import sys

CALL = b'{"jsonrpc":"2.0","id":7,"method":"eth_chainId","params":[]}'


def main():
    host, port, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    key = base64.b64encode(os.urandom(16)).decode()
    with socket.create_connection((host, port), timeout=20) as sock, sock.makefile("rb") as answer:
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                     f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode())
        status, headers = answer.readline(), {}
        while (line := answer.readline().strip()):
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        digest = hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()
        if b" 101 " not in status or headers.get("sec-websocket-accept") != base64.b64encode(digest).decode():
            sys.exit(f"no WebSocket: {status!r} {headers}")
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(CALL))
        sock.sendall(bytes([0x81, 0x80 | len(CALL)]) + mask + masked)
        kind, length = answer.read(2)
        if kind != 0x81 or length > 125:
            sys.exit(f"not one short text frame: {kind:#x} {length}")
        print(answer.read(length).decode())


if __name__ == "__main__":
    main()
