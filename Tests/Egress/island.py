"""An island: a separate network in which every address is this machine, and each connection is recorded.

    python3 island.py PLAN REPORT COMMAND…

COMMAND (the service) runs inside. On the island every address, IPv4 and IPv6, is local, so that a connection to any
address at all arrives at the trap, which listens on all of them at the ports of the plan and appends one line of JSON
to REPORT for each connection: its address, its port, and the number of received bytes. The name server of the
island answers according to the plan (or not at all, or records the client), and its redirector redirects requests for
/N to the Nth place of the plan.

The service's API is reached from outside: its reported port is replaced by a forwarded one. Needs root's rights in a
separate user namespace (unshare -rmn), which ends with this process.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading

PRIVATELY = ["/usr/bin/setpriv", "--pdeathsig", "KILL"]


def main():
    if sys.argv[1] == "--landed":
        return Island(int(sys.argv[2]), sys.argv[3], sys.argv[4]).run(sys.argv[5:])
    outer = socket.create_server(("127.0.0.1", 0), backlog=128)
    outer.set_inheritable(True)
    os.execv(
        "/usr/bin/unshare",
        ["/usr/bin/unshare", "-rmn", *PRIVATELY, sys.executable, __file__, "--landed", str(outer.fileno()), *sys.argv[1:]])


class Island:
    def __init__(self, descriptor, plan, report):
        self.outer = socket.socket(fileno=descriptor)
        with open(plan, encoding="utf-8") as file:
            self.plan = json.load(file)
        self.report = open(report, "a", encoding="utf-8")
        self.lock = threading.Lock()
        self.asked = {}

    def run(self, command):
        for arguments in ("link set lo up", "route add local default dev lo", "-6 route add local default dev lo"):
            subprocess.run(["ip", *arguments.split()], check=True, env={"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"})
        folder = os.path.dirname(self.report.name)
        options = self.plan.get("resolverOptions", "timeout:1 attempts:2")
        self.replace("/etc/resolv.conf", folder, f"nameserver 127.0.0.1\noptions {options}\n")
        self.replace("/etc/hosts", folder, "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n")
        self.replace("/etc/nsswitch.conf", folder, "hosts: files dns\n")
        names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        names.bind(("127.0.0.1", 53))
        self.start(self.answer_names, names)
        for port in self.plan["trapPorts"]:
            for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
                self.serve(self.listen(family, address, port), self.trap)
        redirector = self.plan["redirector"]
        self.serve(self.listen(socket.AF_INET, redirector["address"], redirector["port"]), self.redirect)

        child = subprocess.Popen([*PRIVATELY, *command], stdout=subprocess.PIPE)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: child.send_signal(number))
        line = child.stdout.readline().decode()
        start, colon, port = line.rstrip("\n").rpartition(":")
        if colon and port.isdigit():
            self.serve(self.outer, lambda connection: self.relay(connection, int(port)))
            line = f"{start}:{self.outer.getsockname()[1]}\n"
        sys.stdout.write(line)
        sys.stdout.flush()
        sys.exit(abs(child.wait()))

    @staticmethod
    def replace(path, folder, text):
        own = os.path.join(folder, os.path.basename(path))
        with open(own, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(own, 0o644)
        subprocess.run(["/usr/bin/mount", "--bind", own, path], check=True)

    @staticmethod
    def start(work, *arguments):
        threading.Thread(target=work, args=arguments, daemon=True).start()

    @staticmethod
    def listen(family, address, port):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((address, port))
        listener.listen(512)
        return listener

    def serve(self, listener, work):
        def accept():
            while True:
                connection, _ = listener.accept()
                self.start(work, connection)

        self.start(accept)

    def trap(self, connection):
        """Notes who was reached, and what came within a second."""
        connection.settimeout(1)
        count = 0
        try:
            piece = connection.recv(65536)
            count = len(piece)
            if piece.startswith((b"GET ", b"POST ", b"PUT ")):
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\ntrapped")
        except OSError:
            pass
        self.note(connection, count)
        connection.close()

    def note(self, connection, count):
        address, port = connection.getsockname()[:2]
        with self.lock:
            self.report.write(json.dumps({"address": address, "port": port, "bytes": count}) + "\n")
            self.report.flush()

    def redirect(self, connection):
        head = b""
        while b"\r\n\r\n" not in head:
            piece = connection.recv(65536)
            if not piece:
                return connection.close()
            head += piece
        target = head.split(b" ")[1]
        if not target.startswith(b"/"):
            self.note(connection, len(head))
            return connection.close()
        place = self.plan["places"][int(target[1:])]
        connection.sendall(
            b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nConnection: close\r\nLocation: " + place.encode() + b"\r\n\r\n")
        connection.close()

    def relay(self, connection, port):
        inner = socket.create_connection(("127.0.0.1", port))

        def pump(source, target):
            try:
                while piece := source.recv(1 << 16):
                    target.sendall(piece)
                target.shutdown(socket.SHUT_WR)
            except OSError:
                for end in (source, target):
                    try:
                        end.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass

        self.start(pump, inner, connection)
        pump(connection, inner)

    # A name server for A, AAAA and CNAME (RFC 1035), without compression in what it reads.

    def answer_names(self, names):
        while True:
            query, peer = names.recvfrom(4096)
            answer = self.answer(query)
            if answer:
                names.sendto(answer, peer)

    def answer(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace").lower())
            at += 1 + query[at]
        kind = int.from_bytes(query[at + 1 : at + 3], "big")
        question = query[12 : at + 5]
        name = ".".join(labels)
        entry = self.plan["names"].get(name)
        if entry == "silent":
            with self.lock:
                self.report.write(json.dumps({"asked": name, "kind": kind}) + "\n")
                self.report.flush()
            return None
        records = []
        if isinstance(entry, dict):
            # {"first": […], "then": […]}: what a name says changes after it was asked once for each kind.
            turn = self.asked.get((name, kind), 0)
            self.asked[name, kind] = turn + 1
            entry = entry["first"] if turn == 0 else entry["then"]
        for address in entry or []:
            if address.startswith("="):
                records.append((5, b"\xc0\x0c", self.encoded(address[1:])))
                target = self.encoded(address[1:])
                for inner in self.plan["names"].get(address[1:], []):
                    records += [(k, target, data) for k, data in self.data(inner) if k == kind]
            else:
                records += [(k, b"\xc0\x0c", data) for k, data in self.data(address) if k == kind]
        flags = 0x8580 if entry is not None else 0x8583
        answer = query[:2] + flags.to_bytes(2, "big") + b"\x00\x01" + len(records).to_bytes(2, "big") + bytes(4) + question
        for record, owner, data in records:
            answer += owner + record.to_bytes(2, "big") + b"\x00\x01" + bytes(4) + len(data).to_bytes(2, "big") + data
        return answer

    @staticmethod
    def encoded(name):
        return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\x00"

    @staticmethod
    def data(address):
        if ":" in address:
            return [(28, socket.inet_pton(socket.AF_INET6, address))]
        return [(1, socket.inet_pton(socket.AF_INET, address))]


main()
