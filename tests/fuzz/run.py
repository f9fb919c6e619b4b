"""Fuzz the readers of files: models, and every format of the command line.

    python tests/fuzz/run.py [--seconds 60] [--seed 0] [TARGET ...]

Uses atheris (coverage-guided) if it is installed; otherwise mutates the seed files and inputs that reached new lines.
Each target runs in a separate process with an equal share of the time and a memory limit. A failing input is kept
beside its traceback, and the exit status is then not 0.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import nullcontext
from pathlib import Path
from typing import IO

sys.path.insert(0, str(Path(__file__).parents[1]))
from fuzz.mutations import MUTATIONS, spliced, wrong_header, wrong_length

atheris = importlib.import_module("atheris") if importlib.util.find_spec("atheris") else None
with atheris.instrument_imports(include=["vicinal"]) if atheris else nullcontext():
    from fuzz.targets import FOLDER, TARGETS, Target

MOST_MEMORY = 8 << 30  # bytes of address space, mostly libraries: a reader that trusts a claimed size exceeds it
SLOWEST = 120.0
TIMED_OUT = 70  # exit status of libFuzzer after -timeout
ENDLESS = 120.0  # seconds beyond its share after which a target is stopped
POOL = 200
LAST_LINES = 100  # of a failing target's messages, the traceback among them


def by_mutation(target: Target, seconds: float, seed: int, binary: bool) -> int:
    """Mutate a pool of inputs at random; inputs that run new lines join the pool."""
    rng = random.Random(seed)
    pool = target.seeds()
    for content in pool:
        target.feed(content)
    ways = [*MUTATIONS, *([wrong_length, wrong_header] if binary else [])]
    seen: set[tuple[str, int]] = set()
    tried, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        content = rng.choice(pool)
        for _ in range(rng.choice((1, 1, 2, 4))):
            if not content:
                break
            if rng.random() < 0.1:
                content = spliced(rng, content, rng.choice(pool))
            else:
                try:
                    content = rng.choice(ways)(rng, content)
                except (ValueError, RecursionError, AttributeError):
                    continue  # no longer a container with a valid header
        tried += 1
        fresh = _lines_of(target, content, seen) if tried % 8 == 0 else _fed(target, content)
        if fresh and len(pool) < POOL:
            pool.append(content)
    return tried


def _fed(target: Target, content: bytes) -> bool:
    start = time.monotonic()
    try:
        target.feed(content)
    except BaseException:
        (FOLDER / "find").write_bytes(content)
        raise
    assert time.monotonic() - start < SLOWEST, f"{time.monotonic() - start:.1f} s for {len(content)} bytes"
    return False


def _lines_of(target: Target, content: bytes, seen: set[tuple[str, int]]) -> bool:
    """Feed the bytes and return whether they ran lines of ours for the first time."""
    before = len(seen)

    def trace(frame: object, event: str, _: object) -> object:
        code = frame.f_code  # type: ignore[attr-defined]
        if "vicinal" not in code.co_filename:
            return None
        if event == "line":
            seen.add((code.co_name, frame.f_lineno))  # type: ignore[attr-defined]
        return trace

    sys.settrace(trace)
    try:
        _fed(target, content)
    finally:
        sys.settrace(None)
    return len(seen) > before


def by_coverage(target: Target, seconds: float, seed: int) -> None:
    corpus = FOLDER / "corpus"
    corpus.mkdir()
    for i, content in enumerate(target.seeds()):
        (corpus / str(i)).write_bytes(content)
    limits = ["-rss_limit_mb=4096", "-timeout=25", "-max_len=100000", "-verbosity=0", "-print_final_stats=1"]
    asked = [f"-max_total_time={max(1, round(seconds))}", f"-seed={seed + 1}", f"-artifact_prefix={FOLDER}/"]
    atheris.Setup([sys.argv[0], *limits, *asked, str(corpus)], target.feed)
    atheris.Fuzz()  # exits the process


def alone(name: str, seconds: float, seed: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    target = TARGETS[name]
    if atheris is not None:
        by_coverage(target, seconds, seed)
    try:
        tried = by_mutation(target, seconds, seed, binary=name == "model")
    except BaseException:
        traceback.print_exc()
        print(f"{name}: failure, input kept as {FOLDER / 'find'}", flush=True)
        sys.exit(1)
    print(f"{name}: {tried} inputs", flush=True)


def _last_lines(messages: IO[bytes]) -> str:
    messages.seek(0)
    return "\n".join(messages.read().decode(errors="replace").splitlines()[-LAST_LINES:])


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("targets", nargs="*", help=f"any of {', '.join(TARGETS)}; default: all")
    asked.add_argument("--seconds", type=float, default=60.0)
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--alone", action="store_true", help="run in this process")
    options = asked.parse_args()
    names = options.targets or list(TARGETS)
    share = options.seconds / len(names)
    if options.alone:
        for name in names:
            alone(name, share, options.seed)
        return
    failed = []
    for name in names:
        command = [sys.executable, __file__, "--alone", "--seconds", str(share), "--seed", str(options.seed), name]
        # polars prints a trace for every damaged file that it refuses: megabytes that hide a failure of another step
        with tempfile.TemporaryFile() as messages:
            try:
                status = subprocess.run(command, stderr=messages, timeout=share + ENDLESS).returncode
            except subprocess.TimeoutExpired:
                status = TIMED_OUT
            if status == TIMED_OUT and TARGETS[name].endless:
                print(f"{name}: endless loop in {TARGETS[name].endless}, a known problem", flush=True)
            elif status:
                failed.append(name)
                print(_last_lines(messages), file=sys.stderr, flush=True)
    if failed:
        sys.exit(f"failures in {', '.join(failed)}")


if __name__ == "__main__":
    main()
