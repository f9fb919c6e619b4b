"""Mutations of files: damage that happens by accident, and changes that an attacker would try."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

INTERESTING = (0, 1, 7, 8, 255, 2**16, 2**24 - 1, 2**24, 2**31 - 1, 2**31, 2**32, 2**62, 2**63, 2**64 - 1)
DEEP = 100_000

Mutation = Callable[[random.Random, bytes], bytes]


def flipped(rng: random.Random, content: bytes) -> bytes:
    """Change a few bits."""
    out = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 8)) if out else 0):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def cut(rng: random.Random, content: bytes) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def lengthened(rng: random.Random, content: bytes) -> bytes:
    return content + rng.randbytes(rng.choice((1, 8, 1000)))


def overwritten(rng: random.Random, content: bytes) -> bytes:
    """Overwrite a block with zeros, ones or noise, as a disk that lost a block."""
    length = min(len(content), rng.choice((4, 64, 512, 4096)))
    at = rng.randrange(len(content) - length + 1)
    block = rng.choice((bytes(length), b"\xff" * length, rng.randbytes(length)))
    return content[:at] + block + content[at + length :]


def moved(rng: random.Random, content: bytes) -> bytes:
    """Move a block to another position."""
    a, b = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    rest, at = content[:a] + content[b:], rng.randrange(len(content) - (b - a) + 1)
    return rest[:at] + content[a:b] + rest[at:]


def spliced(rng: random.Random, content: bytes, other: bytes) -> bytes:
    """Join the beginning of one file with the end of another."""
    return content[: rng.randrange(len(content) + 1)] + other[rng.randrange(len(other) + 1) :]


MUTATIONS: tuple[Mutation, ...] = (flipped, cut, lengthened, overwritten, moved)


def wrong_length(rng: random.Random, content: bytes) -> bytes:
    """Change the length of the header that a container states."""
    length = rng.choice((*INTERESTING, rng.getrandbits(64), int.from_bytes(content[:8], "little") + rng.randint(-9, 9)))
    return (length % 2**64).to_bytes(8, "little") + content[8:]


def wrong_header(rng: random.Random, content: bytes) -> bytes:
    """Change the header of a container, keeping it valid JSON."""
    length = int.from_bytes(content[:8], "little")
    written = json.dumps(changed(rng, json.loads(content[8 : 8 + length]))).encode()
    if rng.random() < 0.1:
        written = b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}"
    return len(written).to_bytes(8, "little") + written + content[8 + length :]


def changed(rng: random.Random, tree: Any) -> Any:
    """Replace, remove, rename or duplicate one value of a JSON tree."""
    parents = [tree]
    leaves: list[tuple[Any, Any]] = []
    for parent in parents:
        items = parent.items() if isinstance(parent, dict) else enumerate(parent) if isinstance(parent, list) else ()
        for key, value in items:
            leaves.append((parent, key))
            if isinstance(value, dict | list):
                parents.append(value)
    if not leaves:
        return tree
    parent, key = rng.choice(leaves)
    value = parent[key]
    action = rng.randrange(4)
    if action == 0 and isinstance(parent, dict):
        del parent[key]
    elif action == 1 and isinstance(parent, dict):
        parent[rng.choice(("x", "", "\ud800", "__class__", "transform", f"{key}x"))] = parent.pop(key)
    elif action == 2:
        other, name = rng.choice(leaves)
        parent[key] = copy.deepcopy(other[name])
    else:
        parent[key] = _other_value(rng, value)
    return tree


def _other_value(rng: random.Random, value: Any) -> Any:
    if type(value) is int and rng.random() < 0.7:
        return rng.choice((*INTERESTING, -1, value + 1, value - 1, 2 * value, -value, float(value)))
    others = (None, True, -1, 0.5, 1e308, 10**30, "", "x" * 1000, [], {}, [value], {"list": [value]}, {"array": value})
    return rng.choice(others)
