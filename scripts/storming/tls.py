"""Origins behind TLS: their keys are in no system's store, and one wants a certificate of the client."""
import base64
import hashlib
import ssl
import subprocess

from .origins import Origin
from .wire import Gone, Wire

UNTRUSTED, CERTIFICATE_REQUIRED, CERTIFICATE_REFUSED = -1202, -1206, -1205


class Identity:
    """A key with a certificate that it signed itself."""

    def __init__(self, folder, name):
        self.certificate_file, self.key_file = folder / f"{name}.pem", folder / f"{name}.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-days", "30", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
                        "-keyout", self.key_file, "-out", self.certificate_file], check=True, capture_output=True)
        self.certificate, self.key = self.certificate_file.read_text(), self.key_file.read_text()
        public = subprocess.run(["openssl", "pkey", "-in", self.key_file, "-pubout", "-outform", "DER"], check=True,
                                capture_output=True).stdout
        self.pin = "sha256/" + base64.b64encode(hashlib.sha256(public).digest()).decode()


class SecureOrigin(Origin):
    """An origin of https. `clients` are the certificates that it lets in; without them it asks for none."""

    scheme = "https"

    def __init__(self, registry, storm, identity, clients=None):
        self.identity, self.clients = identity, clients
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(identity.certificate_file, identity.key_file)
        if clients:
            self.context.load_verify_locations(clients.certificate_file)
            self.context.verify_mode = ssl.CERT_REQUIRED
        super().__init__(registry, storm)

    @property
    def errors(self):
        """What a task may fail with here, where its app does not answer or refuses to."""
        return {UNTRUSTED, CERTIFICATE_REQUIRED, CERTIFICATE_REFUSED} if self.clients else {UNTRUSTED}

    def _wire(self, connection):
        """The connection after its handshake, in the thread that serves it."""
        connection.settimeout(30)
        try:
            return Wire(self.context.wrap_socket(connection, server_side=True))
        except (OSError, ssl.SSLError) as error:
            connection.close()
            raise Gone from error
