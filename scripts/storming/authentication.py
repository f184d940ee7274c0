"""The schemes that the origins ask: Basic, Digest with nonces that become stale, and Bearer."""
import base64
import collections
import hashlib
import hmac
import random
import re
import secrets


class Authentication:
    """One protection space of an app: the same user and password at each origin."""

    def __init__(self, scheme, app):
        self.scheme, self.app, self.realm = scheme, app, f"{app} {scheme}"
        self.user, self.password, self.token = f"user-{app}", f"password of {app}", f"token-{app}"
        self.nonces = collections.OrderedDict()
        self.algorithm = "SHA-256" if scheme == "Digest" and len(app) % 2 else "MD5"

    def __repr__(self):
        return f"{self.scheme} of {self.realm!r}"

    @property
    def method(self):
        """The word for it in a protection space."""
        return "HTTP" + self.scheme

    def credential(self, wrong=False):
        if self.scheme == "Bearer":
            return {"token": "wrong" if wrong else self.token}
        return {"user": self.user, "password": "wrong" if wrong else self.password}

    def challenge(self, stale=False):
        if self.scheme != "Digest":
            return f'{self.scheme} realm="{self.realm}"'
        nonce = secrets.token_hex(12)
        self.nonces[nonce] = random.choice([1, 3, 1000])
        while len(self.nonces) > 2000:
            self.nonces.popitem(last=False)
        return (f'Digest realm="{self.realm}", qop="auth", algorithm={self.algorithm}, nonce="{nonce}"'
                + (", stale=true" if stale else ""))

    def judge(self, method, target, value):
        """"right", "stale" or "wrong" for the value of `Authorization`, None where there is none."""
        scheme, _, rest = (value or "").partition(" ")
        if not value or scheme.lower() != self.scheme.lower():
            return None
        if scheme.lower() == "bearer":
            return "right" if rest == self.token else "wrong"
        if scheme.lower() == "basic":
            return "right" if base64.b64decode(rest) == f"{self.user}:{self.password}".encode() else "wrong"
        return self._judge_digest(method, target, rest)

    def _judge_digest(self, method, target, rest):
        fields = {name: quoted or plain for name, quoted, plain in re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]*))', rest)}
        hashed = hashlib.md5 if self.algorithm == "MD5" else hashlib.sha256

        def of(*parts):
            return hashed(":".join(parts).encode()).hexdigest()

        if fields.get("uri") != target or fields.get("username") != self.user:
            return "wrong"
        expected = of(of(self.user, self.realm, self.password), fields.get("nonce", ""), fields.get("nc", ""),
                      fields.get("cnonce", ""), fields.get("qop", ""), of(method, target))
        if not hmac.compare_digest(expected, fields.get("response", "")):
            return "wrong"
        left = self.nonces.get(fields["nonce"], 0)
        if left < 1:
            return "stale"
        self.nonces[fields["nonce"]] = left - 1
        return "right"
