"""A relay on loopback that keeps every byte that goes through it."""

from __future__ import annotations

import socket
import threading


class Relay:
    """Listens on a port of its own and passes connections on; `sent` is what clients sent, a connection each."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.sent: list[bytearray] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._port))
            kept = bytearray()
            self.sent.append(kept)
            threading.Thread(target=_pass, args=(client, server, kept), daemon=True).start()
            threading.Thread(target=_pass, args=(server, client, None), daemon=True).start()


def _pass(source: socket.socket, target: socket.socket, kept: bytearray | None) -> None:
    try:
        while data := source.recv(1 << 16):
            if kept is not None:
                kept += data
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass
