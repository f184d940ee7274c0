"""HTTP/1.1 on a socket, byte for byte: what http.server would not let an origin do wrong."""
import socket
import struct


class Gone(Exception):
    """The peer has closed the connection, or the origin has."""


class Head:
    """The head of a request."""

    def __init__(self, text):
        lines = text.split("\r\n")
        self.method, self.target, _ = lines[0].split(" ", 2)
        self.fields = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.fields[name.strip().lower()] = value.strip()

    @property
    def local(self):
        """The target without scheme and host, which a request to a proxy has."""
        return "/" + self.target.split("/", 3)[3] if self.target.startswith("http://") else self.target

    @property
    def path(self):
        return self.local.partition("?")[0]


class Wire:
    """A connection with its buffer."""

    def __init__(self, connection):
        self.connection, self.buffer = connection, b""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _fill(self, limit=65536):
        try:
            piece = self.connection.recv(limit)
        except OSError as error:
            raise Gone from error
        if not piece:
            raise Gone
        self.buffer += piece

    def head(self, patience=60):
        self.connection.settimeout(patience)
        while b"\r\n\r\n" not in self.buffer:
            self._fill()
        text, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        return Head(text.decode("latin-1"))

    def _take(self, count):
        if not self.buffer:
            self._fill()
        piece, self.buffer = self.buffer[:count], self.buffer[count:]
        return piece

    def _line(self):
        while b"\r\n" not in self.buffer:
            self._fill()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line

    def body(self, head):
        """The pieces of a request's body, by its length or its chunks."""
        if "chunked" in head.fields.get("transfer-encoding", "").lower():
            while left := int(self._line().split(b";")[0], 16):
                while left:
                    piece = self._take(left)
                    left -= len(piece)
                    yield piece
                self._line()
            while self._line():
                pass
            return
        left = int(head.fields.get("content-length", "0"))
        while left:
            piece = self._take(left)
            left -= len(piece)
            yield piece

    def send(self, data):
        try:
            self.connection.sendall(data)
        except OSError as error:
            raise Gone from error

    def send_head(self, status, fields):
        lines = [f"HTTP/1.1 {status} Status"] + [f"{name}: {value}" for name, value in fields.items()]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    def close(self):
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.connection.close()

    def reset(self):
        """Closes with RST: what was sent and not yet read is lost."""
        try:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
        self.connection.close()
