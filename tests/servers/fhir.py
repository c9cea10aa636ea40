"""A FHIR server on loopback that takes transactions: checks by R4's JSON schema, and conditional creates and updates.

It does what HL7's specification of transactions asks for and nothing more: all or nothing, references between entries are
replaced by the addresses that the resources get, and an entry whose search fits a stored resource updates or keeps it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote

import jsonschema

SCHEMA = json.loads((Path(__file__).parents[1] / "evaluation" / "fhir_r4" / "fhir.schema.json").read_text())


def list_schema_errors(bundle: Any) -> list[str]:
    """Where a Bundle breaks FHIR's schema, without what it says."""
    validator = jsonschema.Draft6Validator(SCHEMA)
    return [f"{list(error.absolute_path)} {error.validator}" for error in validator.iter_errors(bundle)]


class FhirServer:
    """Its store: resources by their address."""

    def __init__(self) -> None:
        self.resources: dict[str, dict[str, Any]] = {}
        self.address = ""

    def post(self, bundle: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if errors := list_schema_errors(bundle):
            return 400, {
                "resourceType": "OperationOutcome",
                "issue": [{"severity": "error", "diagnostics": error} for error in errors],
            }
        if bundle["type"] != "transaction":
            return 400, {
                "resourceType": "OperationOutcome",
                "issue": [{"severity": "error", "diagnostics": "no transaction"}],
            }
        addresses, statuses = {}, []
        for entry in bundle["entry"]:
            kind, request = entry["resource"]["resourceType"], entry["request"]
            search = request.get("ifNoneExist") or request["url"].partition("?")[2]
            assert request["url"].partition("?")[0] == kind
            found = self.find(kind, search)
            assert len(found) <= 1, "412: several resources fit"
            addresses[entry["fullUrl"]] = found[0] if found else f"{kind}/{len(self.resources) + len(addresses) + 1}"
            statuses.append("201" if not found else "200")
        assert len(addresses) == len(bundle["entry"])
        for entry, status in zip(bundle["entry"], statuses, strict=True):
            if status == "201" or entry["request"]["method"] == "PUT":
                text = json.dumps(entry["resource"])
                for placeholder, address in addresses.items():
                    text = text.replace(f'"{placeholder}"', f'"{address}"')
                self.resources[addresses[entry["fullUrl"]]] = json.loads(text)
        answers = [{"response": {"status": status}} for status in statuses]
        return 200, {"resourceType": "Bundle", "type": "transaction-response", "entry": answers}

    def find(self, kind: str, search: str) -> list[str]:
        name, _, token = search.partition("=")
        system, _, value = token.partition("|")
        place = {
            "identifier": lambda resource: resource.get("identifier", ()),
            "_tag": lambda resource: resource.get("meta", {}).get("tag", ()),
        }
        wanted = system, unquote(value)
        return [
            address
            for address, resource in self.resources.items()
            if address.startswith(f"{kind}/")
            and wanted in [(row["system"], row.get("value", row.get("code"))) for row in place[name](resource)]
        ]

    def select(self, kind: str) -> list[dict[str, Any]]:
        return [resource for address, resource in self.resources.items() if address.startswith(f"{kind}/")]


@contextmanager
def serve_fhir() -> Iterator[FhirServer]:
    """Run a server until the block ends."""
    store = FhirServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Type"] != "application/fhir+json":
                status, answer = 415, {"resourceType": "OperationOutcome"}
            else:
                status, answer = store.post(json.loads(body))
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/fhir+json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    store.address = f"http://127.0.0.1:{server.server_port}/fhir"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
