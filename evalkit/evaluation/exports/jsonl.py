"""Ground truth as JSON Lines: records per document, or rows per segment or page."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalkit.evaluation.exports.content import ExportContent, require_same_rows
from evalkit.evaluation.private_files import create_private_file, replace_file_atomically


def write_jsonl(content: ExportContent, target: Path | None) -> int:
    """Write the file, or standard output if None; return the number of lines."""
    has_records = content.options.level == "document"
    records = list(content.iterate_records() if has_records else content.iterate_rows())
    if target is None:
        sys.stdout.writelines(map(_format_line, records))
        return len(records)
    with replace_file_atomically(target) as temporary_path:
        create_private_file(temporary_path, "".join(map(_format_line, records)))
        require_same_rows(_read_jsonl(temporary_path), records, target.name)
    return len(records)


def _format_line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"


def _read_jsonl(path: Path) -> list[Any]:
    with path.open(encoding="utf-8", newline="\n") as lines:
        return [json.loads(line) for line in lines]
