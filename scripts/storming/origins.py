"""Origins that misbehave. A misdeed is `(name, argument)`; each request of a resource uses up one of its script."""
import itertools
import random
import re
import socket
import threading
import time

from .authentication import Authentication
from .drafts import Drafting
from .failure import Violation
from .resources import Exchange
from .wire import Gone, Wire

_connections = itertools.count(1)
DATE = "%a, %d %b %Y %H:%M:%S GMT"


class Origin:
    """One listener. All origins offer the same resources, so that a redirect may lead to any of them."""

    scheme, errors, authentication = "http", frozenset(), None

    def __init__(self, registry, storm, host="127.0.0.1"):
        self.registry, self.storm, self.host = registry, storm, host
        self.listener = socket.create_server((host, 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.others = [self]
        threading.Thread(target=self._accept, daemon=True, name=f"origin {self.port}").start()

    def url(self, path):
        return f"{self.scheme}://{self.host}:{self.port}{path}"

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True, name="exchange").start()

    def _wire(self, connection):
        return Wire(connection)

    def _serve(self, connection):
        number, wire = next(_connections), None
        try:
            wire = self._wire(connection)
            while self._exchange(wire, number):
                pass
        except (Gone, OSError):
            pass
        except Violation as violation:
            self.storm.fail(violation)
        except Exception as error:  # pylint: disable=broad-except
            self.storm.broken(error)
        finally:
            if wire is not None:
                wire.close()

    def _exchange(self, wire, number):
        """One request and its response: whether the connection is kept."""
        head = wire.head()
        resource = self.registry.find(head.path)
        if resource is None:  # Of a session that is deleted.
            for _ in wire.body(head):
                pass
            wire.send_head(404, {"Content-Length": 0})
            return True
        exchange = Exchange(resource, number, head.method, head.target, head.fields)
        resource.open(exchange)
        try:
            return Answering(self, wire, head, resource, exchange).run()
        finally:
            resource.end(exchange)


class Proxy(Origin):
    """A proxy for http: it has the resources of all origins, and asks for a credential of its own."""

    def __init__(self, registry, storm):
        super().__init__(registry, storm)
        self.authentication = Authentication(random.Random(f"{storm.seed}/proxy").choice(["Basic", "Digest"]), "proxy")


class Answering(Drafting):
    """The response of a resource to one request."""

    def __init__(self, origin, wire, head, resource, exchange):
        self.origin, self.wire, self.head, self.resource, self.exchange = origin, wire, head, resource, exchange
        # Unlike the choices of the workers those of the origin depend on time: only their kinds come from the script.
        self.random = random.Random()

    def run(self):
        refusal = self._refusal()
        if refusal is not None:
            return self._refuse(refusal)
        misdeed, argument = self.resource.next_misdeed() or (None, None)
        self.exchange.misdeed = misdeed and f"{misdeed} {argument}"
        if misdeed:
            self.resource.misdeeds.add(misdeed)
        drafted = self._draft(misdeed, argument)
        if drafted is not None:
            return drafted
        if misdeed is None and self.resource.final != 200:
            misdeed, argument = ("early" if self.resource.early else "status"), self.resource.final
        act = getattr(self, "_" + misdeed, None) if misdeed else None
        if act is not None:
            return act(argument)
        self._read()
        return self._good(misdeed, argument)

    # Authentication

    def _refusal(self):
        """The status and the field of a challenge, where the request is not authorized."""
        proxy = self.origin.authentication
        for space, status, answered, name in [(proxy, 407, "proxy-authorization", "Proxy-Authenticate"),
                                              (self.resource.authentication, 401, "authorization", "WWW-Authenticate")]:
            if space is not None:
                verdict = space.judge(self.head.method, self.head.local, self.head.fields.get(answered))
                if verdict != "right":
                    return status, {name: space.challenge(stale=verdict == "stale")}
        return None

    def _refuse(self, refusal):
        status, challenge = refusal
        if self.random.random() < 0.5:
            self._read()
        return self._answer(status, challenge, self.resource.page(status))

    # Bodies

    def _read(self, until=None, pause=0):
        """Reads the body of the request; up to about `until` bytes where that is given."""
        self._continue()
        for piece in self.wire.body(self.head):
            self.exchange.take(piece)
            if until is not None and self.exchange.received >= until:
                return
            if pause:
                time.sleep(pause)
        self.exchange.whole = True

    def _continue(self):
        if self.head.fields.get("expect", "").lower() == "100-continue" and not self.wire.buffer:
            self.wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _answer(self, status, fields, page=b""):
        """A whole response. What is not read of the request's body yet is read behind it."""
        self.resource.note(self.exchange, status)
        fields = {"Content-Length": len(page), **fields}
        keep = self.random.random() < 0.85
        if not keep:
            fields["Connection"] = "close"
        body = b"" if self.head.method == "HEAD" or status in (204, 304) else page
        if status in (204, 304):
            del fields["Content-Length"]
        lines = [f"HTTP/1.1 {status} Status"] + [f"{name}: {value}" for name, value in fields.items()]
        self.wire.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body)
        if not self.exchange.whole:
            self.wire.connection.settimeout(5)
            for piece in self.wire.body(self.head):
                self.exchange.take(piece)
            self.exchange.whole = True
        return keep

    # Misdeeds that are the whole response

    def _status(self, status):
        self._read()
        fields = {"Retry-After": self.random.choice([0, 1, 2])} if status in (429, 503) and self.random.random() < 0.7 else {}
        return self._answer(status, fields, self.resource.page(status))

    def _early(self, status):
        """Answers before it reads the body."""
        return self._answer(status, {}, self.resource.page(status))

    def _empty(self, _):
        self._read()
        return False

    def _reset(self, fraction):
        self._read(until=int(fraction * (self.resource.body.length if self.resource.body else 0)))
        self.wire.reset()
        raise Gone

    def _cut_upload(self, fraction):
        self._read(until=int(fraction * (self.resource.body.length if self.resource.body else 0)))
        return False

    def _garbage(self, text):
        self._read()
        self.wire.send(text.encode("latin-1"))
        return False

    def _stall(self, seconds):
        self._read()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.resource.calm:
            time.sleep(0.1)
        return False

    def _redirect(self, argument):
        status, elsewhere = argument
        self._read()
        origin = self.random.choice(self.origin.others) if elsewhere else self.origin
        hop = self.exchange.number
        location = origin.url(f"{self.head.path}?hop={hop}") if elsewhere else f"{self.head.path}?hop={hop}"
        return self._answer(status, {"Location": location}, self.resource.page(status))

    def _unsatisfiable(self, _):
        self._read()
        return self._answer(416, {"Content-Range": f"bytes */{self.resource.content().length}"}, self.resource.page(416))

    # Misdeeds of a response that is otherwise good

    def _good(self, misdeed, argument):
        if misdeed == "version":
            self.resource.version += 1
        if misdeed == "slow_upload":
            time.sleep(argument)
        if misdeed == "interim":
            self.wire.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n")
        if self.head.method in ("PUT", "PATCH") or (self.head.method == "POST" and self.resource.body):
            status = self.random.choice([200, 201, 201, 204])
            return self._answer(status, {}, b"" if status == 204 else self.resource.page(status))
        return self._serve_content(misdeed, argument)

    def _serve_content(self, misdeed, argument):
        resource = self.resource
        content = resource.content()
        fields = {"Content-Type": "application/octet-stream"}
        if resource.validator == "strong":
            fields["ETag"] = resource.tag()
        elif resource.validator == "weak":
            fields["ETag"] = "W/" + resource.tag()
        elif resource.validator == "date":
            fields.update({"Last-Modified": time.strftime(DATE, time.gmtime(1_600_000_000 + 86400 * resource.version)),
                           "Date": time.strftime(DATE, time.gmtime())})
        fields["Accept-Ranges"] = "bytes" if resource.ranges else "none"
        if resource.coding:
            fields["Content-Encoding"] = resource.coding
        if "ETag" in fields and self.head.fields.get("if-none-match") == fields["ETag"]:
            return self._answer(304, {"ETag": fields["ETag"]})
        start, end, status = 0, content.length, 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.head.fields.get("range", ""))
        condition = self.head.fields.get("if-range")
        if asked and resource.ranges and misdeed != "no_range" and condition in (None, fields.get("ETag"),
                                                                                 fields.get("Last-Modified")):
            start, end = int(asked[1]), min(int(asked[2] or content.length - 1) + 1, content.length)
            if start >= content.length:
                fields["Content-Range"] = f"bytes */{content.length}"
                return self._answer(416, fields, resource.page(416))
            status = 206
            fields["Content-Range"] = f"bytes {start}-{end - 1}/{content.length}"
        with resource.lock:
            resource.served.add(resource.version)
        return self._send(status, fields, content, start, end, misdeed, argument)

    def _send(self, status, fields, content, start, end, misdeed, argument):
        keep = self.random.random() < 0.85
        chunked = misdeed == "chunked"
        if chunked:
            fields["Transfer-Encoding"] = "chunked"
        else:
            fields["Content-Length"] = end - start + (1000 if misdeed == "too_long" else 0)
        if not keep:
            fields["Connection"] = "close"
        self.resource.note(self.exchange, status)
        self.wire.send_head(status, fields)
        stop = start + int((end - start) * argument) if misdeed in ("cut", "reset_download") else end
        size = max(1, min(65536, (end - start) // 10)) if misdeed == "slow" else 65536
        flipped = start + int((end - start) * argument) if misdeed == "flip" and end > start else None
        at = start
        for piece in content.pieces(start, stop, size):
            if flipped is not None and at <= flipped < at + len(piece):
                piece = piece[:flipped - at] + bytes([piece[flipped - at] ^ 1]) + piece[flipped - at + 1:]
            at += len(piece)
            if misdeed == "slow" and not self.resource.calm:
                time.sleep(argument)
            self.wire.send(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        if chunked:
            self.wire.send(b"0\r\n\r\n")
        if misdeed == "reset_download":
            self.wire.reset()
            raise Gone
        return keep and misdeed not in ("cut", "too_long")
