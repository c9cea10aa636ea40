"""How much memory this process had at most."""

import gc
import re
import resource
import sys
from pathlib import Path


def peak() -> int:
    """In bytes; what getrusage tells on Linux is never less than what the process that started this one had."""
    status = Path("/proc/self/status")
    if status.exists():
        (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())
        return int(kilobytes) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def list_holders(word: str) -> list[str]:
    """The types of all objects of this process that hold a text with that word, without the caller's frame."""
    gc.collect()
    holders, caller = [], sys._getframe(1)
    for holder in gc.get_objects():
        if holder is not caller:
            for held in gc.get_referents(holder):
                if (isinstance(held, str) and word in held) or (isinstance(held, bytes) and word.encode() in held):
                    holders += [type(holder).__name__]  # no comprehension: it would hold the word itself
    return holders


def count_holders(*parts: str) -> int:
    """How many objects of a worker hold the word made of these parts."""
    return len(list_holders("".join(parts)))
