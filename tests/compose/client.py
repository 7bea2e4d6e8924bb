#!/usr/bin/env python3
"""A client that must not notice anything: calls over kept-alive connections until told to stop (SIGTERM).

client.py HOST PORT PATH CONNECTIONS. At the end it prints how many calls it made, LEAST on each connection however soon
it is told to stop, and every one that failed. A connection that was closed while idle is opened anew, as any client
does; a call that was sent is never repeated.
"""

import http.client
import json
import signal
import sys
import threading
import time

PAUSE = 0.05
LEAST = 50
stop = threading.Event()


class Caller(threading.Thread):
    def __init__(self, host, port, path, number):
        super().__init__()
        self.host, self.port, self.path, self.number = host, port, path, number
        self.connection, self.calls, self.failures = None, 0, []

    def run(self):
        while not stop.is_set() or self.calls < LEAST:
            self.calls += 1
            began = time.time()
            problem = self.call(f"{self.number}-{self.calls}")
            if problem:
                self.failures.append({"at": round(began, 3), "took": round(time.time() - began, 3), "what": problem})
                self.connection = None
            time.sleep(PAUSE)

    def call(self, call_id):
        body = json.dumps({"jsonrpc": "2.0", "id": call_id, "method": "eth_blockNumber", "params": []})
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
            if self.connection.sock is not None and self.is_closed():
                self.connection.close()
            self.connection.request("POST", self.path, body, {"Content-Type": "application/json"})
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            return repr(error)
        if answer.status != 200:
            return f"{answer.status} {text[:200]!r}"
        said = json.loads(text)
        return None if said.get("id") == call_id and "result" in said else f"{text[:200]!r}"

    def is_closed(self):
        """Whether the other side has closed the idle connection: then it is readable without an answer due."""
        sock = self.connection.sock
        sock.settimeout(0)
        try:
            return sock.recv(1) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            sock.settimeout(30)


def main():
    host, port, path, connections = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    callers = [Caller(host, port, path, number) for number in range(connections)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    failures = [failure for caller in callers for failure in caller.failures]
    print(json.dumps({"calls": sum(caller.calls for caller in callers), "failures": failures}))


if __name__ == "__main__":
    main()
