"""Do what a newcomer does in the first ten minutes, with only Python and a wheel: ``python stranger.py [DIST]``.

DIST is the folder with the wheels, by default dist/ of the repository. The wheel that fits this Python is installed in
an empty environment, its dependencies come from the package index. One line per step; the exit code is 1 if a step
fails. Times above their bar are failures too, unless ``--report`` is given.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMPORT_BAR, FIRST_MAP_BAR = 0.3, 20.0
SAMPLES = 5

# What people ask, in their words, and the heading that must be among the first answers.
QUESTIONS = {
    "same seed different map": "Same seed, different map",
    "how do I color by a column": "How do I color the map by a column?",
    "is it stochastic": "Is it stochastic?",
    "what does n_neighbors do": "What does n_neighbors do?",
    "how to cite": "How do I cite vicinal?",
    "how to save a model": "How do I save the map, or the model?",
    "add new points later": "How do I add rows later?",
    "what do the axes mean": "What do the axes mean?",
    "distance between clusters meaning": "What do the axes mean?",
    "my data has missing values nan": "My data has duplicates, NaN",
    "how much memory": "How much memory will it take?",
    "can I cluster the map": "May I cluster the map?",
    "typer is missing": "`vicinal` says that typer or polars is missing",
    "share the map with colleagues": "How do I show a map to colleagues?",
    "will an upgrade change my map": "Will an upgrade change my map?",
}
FIRST_ANSWERS = 3
# A word in a heading counts as this many in the text.
HEADING_WEIGHT = 4.0
COMMON = {
    *("a", "an", "and", "are", "be", "between", "by", "can", "do", "does", "for", "has", "how", "i", "in", "is", "it"),
    *("later", "may", "my", "of", "on", "or", "the", "to", "what", "will", "with"),
}

FIRST_MAP = """
import vicinal
from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)
embedding = vicinal.UMAP(random_state=42).fit_transform(X)
print(embedding.shape)
"""
TABLE = "name,height,weight,kind\n" + "".join(
    f"row {i},{150 + i % 40 + 15 * (i % 3)},{40 + i % 50 + 20 * (i % 3)},{'abc'[i % 3]}\n" for i in range(120)
)


class Stranger:
    """An empty environment, and a folder to work in."""

    def __init__(self, folder: Path, wheels: Path, *, keep_bars: bool) -> None:
        self.folder, self.wheels, self.keep_bars = folder, wheels, keep_bars
        self.failures: list[str] = []
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self.installed_at = 0.0

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, without anything of this repository."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VICINAL"))}
        return subprocess.run(
            [self.bin / program, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def say(self, step: str, what: str, *, holds: bool = True) -> None:
        print(f"{'ok  ' if holds else 'FAIL'} {step}: {what}", flush=True)
        if not holds:
            self.failures.append(step)

    def say_seconds(self, step: str, seconds: float, bar: float) -> None:
        self.say(step, f"{seconds:.2f} s (bar: {bar:g} s)", holds=seconds <= bar or not self.keep_bars)

    def install(self, extra: str = "") -> None:
        """Install the wheel that fits this Python."""
        started = time.perf_counter()
        find = ["--no-index", "--no-deps", "--only-binary", ":all:", "--pre", "--find-links", str(self.wheels)]
        self.run("python", "-m", "pip", "download", "--quiet", *find, "--dest", "wheel", "vicinal")
        wheels = list((self.folder / "wheel").glob("*.whl"))
        if not wheels:
            raise SystemExit(f"{self.wheels} has no wheel for {sys.executable}: `make wheel` builds one")
        done = self.run("python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", f"{wheels[0]}{extra}")
        self.installed_at = time.perf_counter()
        self.say(f"pip install vicinal{extra}", f"{self.installed_at - started:.0f} s", holds=done.returncode == 0)
        if done.returncode:
            raise SystemExit(done.stderr)

    def import_time(self) -> None:
        """Measure what `import vicinal` adds to the start of an interpreter; the best of some tries."""

        def best(code: str) -> float:
            times = []
            for _ in range(SAMPLES):
                started = time.perf_counter()
                self.run("python", "-c", code)
                times.append(time.perf_counter() - started)
            return min(times)

        self.say_seconds("import vicinal", best("import vicinal") - best("pass"), IMPORT_BAR)

    def first_map(self) -> None:
        done = self.run("python", "-c", FIRST_MAP)
        seconds = time.perf_counter() - self.installed_at
        self.say("three lines of Python", done.stdout.strip() or done.stderr, holds=done.stdout == "(1797, 2)\n")
        self.say_seconds("first map after the end of pip install", seconds, FIRST_MAP_BAR)

    def hint_without_extras(self) -> None:
        (self.folder / "data.csv").write_text(TABLE)
        for program, *start in (("vicinal",), ("python", "-m", "vicinal")):
            done = self.run(program, *start, "embed", "data.csv", "-o", "map.csv")
            lines = done.stderr.splitlines()
            holds = done.returncode == 2 and len(lines) == 1 and "pip install 'vicinal[app]'" in lines[0]
            self.say(f"{' '.join((program, *start))} embed, without extras", done.stderr.strip(), holds=holds)

    def first_pages(self) -> None:
        for command, page in (
            ("demo", "out/map.html"),
            ("embed data.csv -o map.csv --label kind --html map.html --png map.png", "map.html"),
        ):
            started = time.perf_counter()
            done = self.run("vicinal", *command.split())
            file = self.folder / page
            size = file.stat().st_size if file.exists() else 0
            seconds = time.perf_counter() - started
            told = f"{page}, {size / 1e3:.0f} kB, {seconds:.1f} s {done.stderr}".strip()
            self.say(f"vicinal {command}", told, holds=done.returncode == 0 and size > 10_000)

    def questions(self) -> None:
        for question, heading in QUESTIONS.items():
            found = answers(question)
            self.say(
                f"question {question!r}",
                found[0],
                holds=any(heading in title for title in found),
            )


def words_of(text: str) -> list[str]:
    """Return the words of a text without endings and without words that say nothing."""
    found = (word.rstrip("s") for word in re.findall(r"[a-z_]+", text.lower()) if word not in COMMON)
    return [re.sub(r"(ing|ed)$", "", word) if len(word) > 6 else word for word in found]


def sections() -> Iterator[tuple[str, str]]:
    """Yield headings and texts of the pages for users."""
    for folder in ("start", "guides"):
        for page in sorted((ROOT / "docs" / folder).glob("*.md")):
            parts = re.split(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), flags=re.M)
            yield from zip(parts[1::2], parts[2::2], strict=True)


def answers(question: str) -> list[str]:
    """Return the headings that fit a question best; rare words count more."""
    asked = set(words_of(question))
    counted: list[tuple[str, Mapping[str, int], Mapping[str, int]]] = [
        (heading, Counter(words_of(heading)), Counter(words_of(text))) for heading, text in sections()
    ]
    scores = Counter[str]()
    for word in asked:
        holding = [(heading, word in title, word in text) for heading, title, text in counted]
        frequency = sum(in_title or in_text for _, in_title, in_text in holding)
        for heading, in_title, in_text in holding:
            scores[heading] += (HEADING_WEIGHT * in_title + in_text) / (1 + frequency)
    return [heading for heading, _ in scores.most_common(FIRST_ANSWERS)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheels", type=Path, nargs="?", default=ROOT / "dist", metavar="DIST")
    parser.add_argument("--report", action="store_true", help="print times without judging them")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        one = Stranger(Path(folder), given.wheels.resolve(), keep_bars=not given.report)
        one.install()
        one.first_map()
        one.import_time()
        one.hint_without_extras()
        one.install("[app]")
        one.first_pages()
        one.questions()
    print(f"{len(one.failures)} of the steps failed" if one.failures else "all steps hold")
    return 1 if one.failures else 0


if __name__ == "__main__":
    sys.exit(main())
