"""A running nginx with the example that `evalkit review --example nginx` prints."""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from patience import SECONDS, eventually

from evalkit.serving.launch import read_example_configuration

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/bin")
_MAIN = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    include {folder}/evalkit.conf;
}}
"""


@dataclass(frozen=True)
class Proxy:
    """Where it listens, and the certificate that it shows."""

    port: int
    certificate: Path


@contextmanager
def proxy(folder: Path, host: str, behind: int, passwords: Mapping[str, str]) -> Iterator[Proxy]:
    """The example as it is printed, with its marked places filled in, before a server on port ``behind``."""
    folder.mkdir()
    port = free_port()
    certificate = _certificate(folder, host)
    (folder / "users").write_text("".join(f"{name}:{{PLAIN}}{word}\n" for name, word in passwords.items()))
    filled = {
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "review.example.org;": f"{host};",
        "/etc/nginx/evalkit/certificate.pem": str(certificate),
        "/etc/nginx/evalkit/key.pem": str(folder / "key.pem"),
        "/etc/nginx/evalkit/users": str(folder / "users"),
        "http://127.0.0.1:8866;": f"http://127.0.0.1:{behind};",
    }
    text = read_example_configuration("nginx")
    for before, after in filled.items():
        assert len(re.findall(rf"^[^#\n]*{re.escape(before)}", text, re.MULTILINE)) == 1, before
        text = text.replace(before, after)
    (folder / "evalkit.conf").write_text(text)
    (folder / "nginx.conf").write_text(_MAIN.format(folder=folder))
    process = subprocess.Popen(
        [str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    )
    try:
        _wait(process, port, folder / "error.log")
        yield Proxy(port, certificate)
    finally:
        process.terminate()
        process.wait(SECONDS)


def free_port() -> int:
    """One that nobody listens on just now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait(process: subprocess.Popen, port: int, log: Path) -> None:
    def answers() -> bool:
        assert process.poll() is None, log.read_text()
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), SECONDS).close()
            return True
        return False

    assert eventually(answers), log.read_text()


def _certificate(folder: Path, host: str) -> Path:
    """Signed by itself, for the host and for 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.DNSName(host), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))],
            ),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path
