"""What an analyst sees when a language model cannot be used: the command's output and exit status, fault by fault.

    PYTHONPATH=.:tests .venv/bin/python tests/benchmarks/model_faults.py

A server on this machine speaks OpenAI's protocol and answers as the built-in model would, but for the fault.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from commands import evalkit_process
from servers.embedded import EmbeddedAnswers, stored
from servers.gemini import role_of
from servers.openai import BAD_KEY, NO_MODEL, Call, Fault, ModelServer
from system.runs.live import notes

#: Characters that the server with a small context reads.
_SMALL_CONTEXT = 4_000
_NOTES = 4


def read_prompt(body: dict[str, Any]) -> str:
    """Join the texts of a request's messages."""
    return "\n\n".join(
        content if isinstance(content := message["content"], str) else "".join(part.get("text", "") for part in content)
        for message in sorted(body["messages"], key=lambda message: message["role"] == "system")
    )


def refuse_if(
    condition: Callable[[dict[str, Any]], bool], parameter: str, message: str
) -> Callable[[Call], Fault | None]:
    """Refuse the requests that meet the condition, in the words of OpenAI's API."""
    error = {"type": "invalid_request_error", "param": parameter, "code": "unsupported_value", "message": message}
    fault = Fault(400, raw=json.dumps({"error": error}).encode())
    return lambda call: fault if condition(call.body) else None


#: By name: the fault, and what is done with the text of an answer.
FAULTS: dict[str, tuple[Callable[[Call], Fault | None], Callable[[str], str]]] = {
    "wrong key": (lambda call: BAD_KEY, str),
    "wrong model": (lambda call: NO_MODEL, str),
    "refused temperature": (
        refuse_if(
            lambda body: "temperature" in body, "temperature", "Unsupported value: 'temperature' does not support 0."
        ),
        str,
    ),
    "fenced answer": (lambda call: None, lambda text: f"Here you are:\n```json\n{text}\n```"),
    "server without schemas": (
        refuse_if(lambda body: "response_format" in body, "response_format", "response_format is not supported"),
        str,
    ),
    "context too small": (
        refuse_if(
            lambda body: len(read_prompt(body)) > _SMALL_CONTEXT,
            "messages",
            "The maximum context length is 1000 tokens.",
        ),
        str,
    ),
}


def show_fault(name: str, folder: Path) -> str:
    """Run some notes with the fault; return the command's output and exit status."""
    react, change = FAULTS[name]
    answers = EmbeddedAnswers(stored(folder / "output"))

    def answer(call: Call) -> str | Fault:
        prompt = read_prompt(call.body)
        return react(call) or change(answers(role, prompt) if (role := role_of(prompt)) else '{"ready": true}')

    with ModelServer(answer) as server:
        folder.mkdir()
        (folder / "evalkit.toml").write_text(f'openai_base_url = "{server.url}/v1"\n')
        done = evalkit_process(
            *("run", notes(folder / "notes", _NOTES), "--output", "output", "--model", "openai:house-model"), cwd=folder
        )
    return f"── {name}: exit status {done.returncode}, {len(server.calls)} calls\n{done.stderr}{done.stdout}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        for number, fault_name in enumerate(FAULTS):
            print(show_fault(fault_name, Path(temporary) / str(number)), flush=True)
