"""Apply a family of tampering to an output folder; README.md explains families, steps and operations."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
HASH = re.compile(r"[0-9a-f]{12,64}")
MISSING = object()


@dataclass(frozen=True)
class Family:
    """One way to tamper: what a person wants by it, and the steps that do it."""

    name: str
    what: str
    steps: list[dict[str, Any]]
    #: Nothing changes that a dossier rests on: to report it would be a false alarm.
    is_harmless: bool = False


class NotApplicableError(Exception):
    """A step finds nothing in the folder that it could change: the family says nothing about this folder."""


@dataclass
class Folder:
    """The files of a folder, with changes that are written only once every step has found its file."""

    root: Path
    changes: dict[str, bytes | None] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)

    def list_paths(self) -> list[str]:
        """List the relative paths, sorted, as they are after the changes so far."""
        paths = {path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file()}
        return sorted(path for path in paths | set(self.changes) if self.changes.get(path, b"") is not None)

    def read(self, path: str) -> bytes:
        """Read a file as it is after the changes so far."""
        changed = self.changes.get(path)
        return (self.root / path).read_bytes() if changed is None else changed

    def write_changes(self) -> None:
        """Write all changes into the folder."""
        for path, content in self.changes.items():
            if content is None:
                (self.root / path).unlink(missing_ok=True)
            else:
                (self.root / path).parent.mkdir(parents=True, exist_ok=True)
                (self.root / path).write_bytes(content)
        for path, target in self.links.items():
            (self.root / path).unlink()
            (self.root / path).symlink_to(os.path.relpath(self.root / target, (self.root / path).parent))
        for path in self.touched:
            os.utime(self.root / path, (0, 0))


def read_families(half: str) -> list[Family]:
    """Read the families of the half ``open`` or ``sealed``."""
    rows = tomllib.loads((HERE / f"{half}.toml").read_text("utf-8"))["families"]
    return [Family(**row) for row in rows]


def apply_family(root: Path, family: Family, seed: int) -> list[str] | None:
    """Tamper with the folder in place; return the changed paths, or None if the family finds nothing to change.

    The seed chooses among the files and places that fit. Nothing is written unless every step can be done.
    """
    folder, bound = Folder(root), {}
    chance = random.Random(f"{family.name} {seed}")
    for row in family.steps:
        step = dict(row)
        is_optional = step.pop("optional", False)
        try:
            _apply_step(folder, step, bound, chance)
        except NotApplicableError:
            if not is_optional:
                return None
    folder.write_changes()
    return sorted({*folder.changes, *folder.links, *folder.touched})


def _apply_step(folder: Folder, step: dict[str, Any], bound: dict[str, str], chance: random.Random) -> None:
    operation = OPERATIONS[step.pop("operation")]
    choose = step.pop("choose", "any")
    where, where_text = step.pop("where", {}), step.pop("where_text", "")
    candidates = [
        (path, names)
        for path, names in _match_paths(folder, step.pop("files"), bound)
        if _meets(folder.read(path), where, where_text)
    ]
    if choose == "any":
        chance.shuffle(candidates)
    if choose == "last":
        candidates.reverse()
    applied = 0
    for path, names in candidates:
        known = bound | names
        arguments = {
            key: value.format_map(known) if key in {"to", "other", "source"} else value for key, value in step.items()
        }
        try:
            operation(folder, path, chance, **arguments)
        except NotApplicableError:
            continue
        bound |= names
        applied += 1
        if choose != "all":
            return
    if not applied:
        raise NotApplicableError


def _match_paths(folder: Folder, files: str | list[str], bound: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
    patterns = [_compile_pattern(pattern, bound) for pattern in ([files] if isinstance(files, str) else files)]
    matches = ((path, pattern.fullmatch(path)) for path in folder.list_paths() for pattern in patterns)
    return [(path, match.groupdict()) for path, match in matches if match]


def _compile_pattern(pattern: str, bound: dict[str, str]) -> re.Pattern[str]:
    """Compile a pattern: ``*`` is a part of a name, ``**`` of a path; ``{case}`` is bound by the first step that has it."""
    parts = re.split(r"(\*\*|\*|\{\w+\})", pattern)
    regular = ""
    for part in parts:
        name = part[1:-1]
        if part == "**":
            regular += ".*"
        elif part == "*":
            regular += "[^/]*"
        elif part.startswith("{"):
            regular += re.escape(bound[name]) if name in bound else f"(?P<{name}>[^/]+?)"
        else:
            regular += re.escape(part)
    return re.compile(regular)


def _meets(content: bytes, where: dict[str, Any], where_text: str) -> bool:
    if where_text and not re.search(where_text, content.decode("utf-8", "replace"), re.IGNORECASE):
        return False
    if not where:
        return True
    try:
        record = json.loads(content)
    except ValueError:
        return False
    return all(
        any(record_value == value for _, _, record_value in _find(record, pointer)) for pointer, value in where.items()
    )


def _find(record: Any, pointer: str) -> Iterator[tuple[Any, Any, Any]]:
    """Find the places of a pointer as (container, key, value); ``*`` is any key or index, ``-1`` the last index."""
    containers = [record]
    *parents, last = pointer.removeprefix("/").split("/")
    for name in parents:
        containers = [value for container in containers for _, value in _list_members(container, name)]
    for container in containers:
        yield from ((container, key, value) for key, value in _list_members(container, last))


def _list_members(container: Any, name: str) -> list[tuple[Any, Any]]:
    if isinstance(container, dict):
        return list(container.items()) if name == "*" else [(name, container[name])] if name in container else []
    if isinstance(container, list):
        members = list(enumerate(container))
        if name == "*":
            return members
        return members[int(name) :][:1] if re.fullmatch(r"-?\d+", name) else []
    return []


def _list_leaves(value: Any, container: Any = None, key: Any = None) -> Iterator[tuple[Any, Any, Any]]:
    if isinstance(value, dict | list):
        for name, member in value.items() if isinstance(value, dict) else enumerate(value):
            if name != "schema_version":
                yield from _list_leaves(member, value, name)
    else:
        yield container, key, value


def _encode_like(record: Any, original: bytes) -> bytes:
    """Encode JSON in the style of the file that it replaces, so that only what was meant changes."""
    before = json.loads(original)
    for indent, separators in ((2, None), (4, None), (None, (",", ":")), (None, None)):
        for ascii_only in (False, True):
            for ending in ("\n", ""):
                style = {"indent": indent, "separators": separators, "ensure_ascii": ascii_only}
                if (json.dumps(before, **style) + ending).encode() == original:
                    return (json.dumps(record, **style) + ending).encode()
    return json.dumps(record, indent=2, ensure_ascii=False).encode()


def _change_record(folder: Folder, path: str, change: Callable[[Any], None]) -> None:
    original = folder.read(path)
    try:
        record = json.loads(original)
    except ValueError:
        raise NotApplicableError from None
    before = json.dumps(record)
    change(record)
    if json.dumps(record) == before:
        raise NotApplicableError
    folder.changes[path] = _encode_like(record, original)


def set_value(folder: Folder, path: str, chance: random.Random, pointer: str, value: Any, old: Any = MISSING) -> None:
    """Set every place of the pointer that has the old value (or any other one) to a value."""

    def change(record: Any) -> None:
        for container, key, current in list(_find(record, pointer)):
            if old is MISSING or current == old:
                container[key] = value

    _change_record(folder, path, change)


def copy_value(folder: Folder, path: str, chance: random.Random, source: str, pointer: str) -> None:
    """Copy the value at one pointer to another."""

    def change(record: Any) -> None:
        for _, _, value in list(_find(record, source))[:1]:
            for container, key, _ in list(_find(record, pointer)):
                container[key] = value

    _change_record(folder, path, change)


def scale_value(folder: Folder, path: str, chance: random.Random, pointer: str, factor: float) -> None:
    """Multiply the numbers at a pointer."""

    def change(record: Any) -> None:
        for container, key, current in list(_find(record, pointer)):
            if isinstance(current, int | float) and not isinstance(current, bool):
                container[key] = type(current)(current * factor)

    _change_record(folder, path, change)


def remove_value(folder: Folder, path: str, chance: random.Random, pointer: str) -> None:
    """Remove one of the places of a pointer."""

    def change(record: Any) -> None:
        places = list(_find(record, pointer))
        if places:
            container, key, _ = chance.choice(places)
            del container[key]

    _change_record(folder, path, change)


def rename_key(folder: Folder, path: str, chance: random.Random, pointer: str, to: str) -> None:
    """Rename one of the keys that a pointer finds."""

    def change(record: Any) -> None:
        places = [(container, key) for container, key, _ in _find(record, pointer) if isinstance(container, dict)]
        if places:
            container, key = chance.choice(places)
            items = [(to if name == key else name, value) for name, value in container.items()]
            container.clear()
            container.update(items)

    _change_record(folder, path, change)


def change_leaf(
    folder: Folder, path: str, chance: random.Random, leaf: str, factor: float = 0.5, days: float = -30.0
) -> None:
    """Change one ``number``, ``time``, ``hash``, ``text`` or ``boolean`` anywhere in a file whose keys nobody knows."""

    def change(record: Any) -> None:
        leaves = [place for place in _list_leaves(record) if _classify(place[2]) == leaf]
        if leaves:
            container, key, value = chance.choice(leaves)
            container[key] = _vary(value, leaf, factor, days)

    _change_record(folder, path, change)


def shift_time(folder: Folder, path: str, chance: random.Random, pointer: str, days: float) -> None:
    """Move the times at a pointer by days."""

    def change(record: Any) -> None:
        for container, key, value in list(_find(record, pointer)):
            if _classify(value) == "time":
                container[key] = _vary(value, "time", 1.0, days)

    _change_record(folder, path, change)


def _classify(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if not isinstance(value, str) or not value:
        return "none"
    return "time" if TIME.match(value) else "hash" if HASH.fullmatch(value) else "text"


def _vary(value: Any, leaf: str, factor: float, days: float) -> Any:
    if leaf == "boolean":
        return not value
    if leaf == "number":
        return type(value)(value * factor) if type(value)(value * factor) != value else value + 1
    if leaf == "time":
        moved = datetime.fromisoformat(value.replace("Z", "+00:00")) + timedelta(days=days)
        return moved.strftime("%Y-%m-%dT%H:%M:%S") + value[19:]
    if leaf == "hash":
        return f"{int(value[0], 16) ^ 1:x}{value[1:]}"
    return value[:-1] + ("a" if value[-1] != "a" else "b")


def delete_file(folder: Folder, path: str, chance: random.Random) -> None:
    """Delete the file."""
    folder.changes[path] = None


def swap_files(folder: Folder, path: str, chance: random.Random, other: str) -> None:
    """Swap the contents of two files."""
    others = [name for name, _ in _match_paths(folder, other, {}) if folder.read(name) != folder.read(path)]
    if not others:
        raise NotApplicableError
    partner = chance.choice(others)
    folder.changes[path], folder.changes[partner] = folder.read(partner), folder.read(path)


def bind_names(folder: Folder, path: str, chance: random.Random) -> None:
    """Change nothing: choose the file for the names that its pattern binds."""


def copy_file(folder: Folder, path: str, chance: random.Random, to: str, source: str = "") -> None:
    """Copy the file (or another ``source``) to a free path; ``<next>`` is the number after that folder's last one."""
    target = to.replace("<next>", f"{len(_list_chain(folder, to)) + 1:04d}")
    if target in folder.list_paths():
        raise NotApplicableError
    folder.changes[target] = folder.read(source or path)


def rename_file(folder: Folder, path: str, chance: random.Random, suffix: str) -> None:
    """Add a suffix to the file's name."""
    folder.changes[path + suffix], folder.changes[path] = folder.read(path), None


def replace_by_link(folder: Folder, path: str, chance: random.Random, other: str) -> None:
    """Replace the file by a symbolic link to another one of the folder."""
    others = [name for name, _ in _match_paths(folder, other, {}) if folder.read(name) != folder.read(path)]
    if not others:
        raise NotApplicableError
    folder.links[path] = chance.choice(others)


def truncate_file(folder: Folder, path: str, chance: random.Random, keep: float) -> None:
    """Keep only the first share of the file's bytes."""
    content = folder.read(path)
    folder.changes[path] = content[: int(keep * len(content))]


def append_text(folder: Folder, path: str, chance: random.Random, text: str) -> None:
    """Append a text to the file."""
    folder.changes[path] = folder.read(path) + text.encode()


def flip_bit(folder: Folder, path: str, chance: random.Random, offset: float | None = None) -> None:
    """Change the lowest bit of the byte at a relative offset, or of any byte."""
    content = bytearray(folder.read(path))
    if not content:
        raise NotApplicableError
    content[int((chance.random() if offset is None else offset) * (len(content) - 1))] ^= 1
    folder.changes[path] = bytes(content)


def replace_text(folder: Folder, path: str, chance: random.Random, pattern: str, replacement: str) -> None:
    """Replace one of the matches of a regular expression in the file's text."""
    text = folder.read(path).decode("utf-8")
    matches = [match for match in re.finditer(pattern, text) if match.expand(replacement) != match[0]]
    if not matches:
        raise NotApplicableError
    match = chance.choice(matches)
    folder.changes[path] = (text[: match.start()] + match.expand(replacement) + text[match.end() :]).encode()


def rechain_folder(folder: Folder, path: str, chance: random.Random) -> None:
    """Sign again: give every file of the folder the hash of the one before it, as the chain was made before."""
    chain = _list_chain(folder, path)
    key, hash_link = _detect_link(folder.root, path)
    for before, name in zip([None, *chain], chain, strict=False):
        original = folder.read(name)
        record = json.loads(original)
        record[key] = None if before is None else hash_link(folder.read(before))
        if json.loads(original) != record:
            folder.changes[name] = _encode_like(record, original)


def _list_chain(folder: Folder, path: str) -> list[str]:
    place = re.escape(Path(path).parent.as_posix())
    return [name for name in folder.list_paths() if re.fullmatch(place + r"/\d{4}\.json", name)]


def _hash_bytes(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _hash_canonical(content: bytes) -> str:
    record = json.loads(content)
    return _hash_bytes(json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode())


def _detect_link(root: Path, path: str) -> tuple[str, Callable[[bytes], str]]:
    """Find by which key and hash the files on disk are chained; a lone file is chained like a review."""
    chain = sorted((root / path).parent.glob("[0-9]" * 4 + ".json"))
    if len(chain) < 2:
        return "prev_sha256", _hash_bytes
    for key, value in json.loads(chain[1].read_bytes()).items():
        for hash_link in (_hash_bytes, _hash_canonical):
            if value == hash_link(chain[0].read_bytes()):
                return key, hash_link
    raise NotApplicableError


def touch_file(folder: Folder, path: str, chance: random.Random) -> None:
    """Change the file's times only."""
    folder.touched.add(path)


OPERATIONS: dict[str, Callable[..., None]] = {
    "set": set_value,
    "copy_value": copy_value,
    "scale": scale_value,
    "remove": remove_value,
    "rename_key": rename_key,
    "change_leaf": change_leaf,
    "shift_time": shift_time,
    "delete": delete_file,
    "swap": swap_files,
    "bind": bind_names,
    "copy": copy_file,
    "rename": rename_file,
    "link": replace_by_link,
    "truncate": truncate_file,
    "append": append_text,
    "flip": flip_bit,
    "replace": replace_text,
    "rechain": rechain_folder,
    "touch": touch_file,
}
