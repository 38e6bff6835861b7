"""A certificate for loopback, made anew for each stack that wants TLS."""

import datetime as dt
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALID_DAYS = 30


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, as PEM files. It is its own authority: trust it by SSL_CERT_FILE."""

    cert: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        """For a server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, self.key)
        return context

    def client_context(self) -> ssl.SSLContext:
        """For a client that trusts it, and nothing else."""
        return ssl.create_default_context(cafile=str(self.cert))


def make_certificate(folder: Path) -> Certificate:
    """For localhost and 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    builder = x509.CertificateBuilder(
        issuer_name=name,
        subject_name=name,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - dt.timedelta(hours=1),
        not_valid_after=now + dt.timedelta(days=VALID_DAYS),
    )
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    signed = builder.sign(key, hashes.SHA256())
    made = Certificate(folder / "stack-cert.pem", folder / "stack-key.pem")
    made.cert.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    made.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    made.key.chmod(0o600)
    return made
