"""Debian's PostgreSQL on a free port of this machine, in a folder of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

PASSWORD = "p%40ss:word"
"""As it stands in the address; it is ``p@ss:word``."""
_SYSTEM_USER = "postgres"


def programs() -> Path | None:
    """The folder of the newest server that is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


class PostgreSQLServer:
    """An empty server; it may be stopped and started again on the same port."""

    def __init__(self, *, syncs: bool = False) -> None:
        """``syncs``: what is committed outlives a power cut, as in earnest."""
        self._bin, self._syncs = programs(), syncs
        self._folder = Path(tempfile.mkdtemp(prefix="evalkit-postgresql-"))
        if os.geteuid() == 0:  # the server refuses to run as root
            owner = pwd.getpwnam(_SYSTEM_USER)
            os.chown(self._folder, owner.pw_uid, owner.pw_gid)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._run("initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        with (self._data / "pg_hba.conf").open("w") as rules:
            rules.write("local all postgres trust\nhost all evalkit 127.0.0.1/32 scram-sha-256\n")
        self.start()
        self.execute("CREATE ROLE evalkit LOGIN PASSWORD 'p@ss:word'")
        # As many servers are set up, not as SQLite compares: the tests show that it makes no difference.
        self.execute("CREATE DATABASE evalkit OWNER evalkit TEMPLATE template0 ICU_LOCALE 'en-US' LOCALE_PROVIDER icu")

    @property
    def url(self) -> str:
        """The address for the setting ``database``."""
        return f"postgresql://evalkit:{PASSWORD}@127.0.0.1:{self.port}/evalkit"

    @property
    def socket_folder(self) -> str:
        """Where programs of this machine reach it as its superuser."""
        return str(self._folder)

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self._folder,
            "fsync": "on" if self._syncs else "off",
            "max_connections": 200,
        }
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        log = str(self._folder / "log")
        self._run("pg_ctl", "start", "-w", "-s", "-D", str(self._data), "-l", log, "-o", options)

    def stop(self, mode: str = "immediate") -> None:
        """Stop it; connections break."""
        self._run("pg_ctl", "stop", "-w", "-s", "-D", str(self._data), "-m", mode)

    def remove(self) -> None:
        """Stop it for good."""
        self.stop()
        shutil.rmtree(self._folder)

    def execute(self, sql: str, database: str = "postgres") -> str:
        """What a superuser's statement gives, as text."""
        words = ("-h", str(self._folder), "-p", str(self.port), "-U", "postgres", "-d", database)
        return self._run("psql", "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", *words, "-c", sql).strip()

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _run(self, program: str, *words: str) -> str:
        assert self._bin is not None
        command = [str(self._bin / program), *words]
        if os.geteuid() == 0:
            command = ["runuser", "-u", _SYSTEM_USER, "--", *command]
        done = subprocess.run(
            command, cwd=self._folder, capture_output=program != "pg_ctl", text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout or ""
