"""What the systems by transcription give on Mboshi dev and on the made English corpus, at two operating points: a table.

A row a system, corpus and protocol (`sws2013`; `nist-std06`, beta 999.9): MTWV and ATWV with their 95 % intervals, pair AUC,
Cnxe and its least over time trials, costs; of English also ATWV of words that recognisers know, and of those that they do not.
`best-encoder+us` and so on speak written terms, by the voices of that name. Runs that are in the folder are taken as they are;
`swsdist compare` tests their differences. English needs the folder that `python -m tools.english FOLDER` makes.

`--unspoken` prints another table instead: words that Whisper writes of a minute of sounds in which nobody speaks.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpora import ROOT
from benchmarks.rows import Row, say, write_json
from benchmarks.systems import figures, report_in, row
from swsdist import api
from swsdist.config import load_config
from swsdist.core.codes import lattices
from swsdist.lattices.whisper import RATE, Whisper
from tools.english.grammar import vocabulary

_SYSTEMS = ROOT / "configs" / "systems"
_ENGLISH = (
    f"features.options.weights={ROOT.parent / 'shared' / 'models' / 'phnrec' / 'EN'}",
    "options.decoding.string_insertion=-2.03125",
)
_MODEL = ROOT.parent / "shared" / "models" / "whisper-base" / "ctranslate2-int8"
_WHISPER = (
    f"options.recogniser.options.model={_MODEL}",
    "options.recogniser.options.language=en",
)
_PROTOCOLS = ("sws2013", "nist-std06")
#: Voices by name.
_SPOKEN = {
    "us": ["espeak-ng:en-us"],
    "three": ["espeak-ng:en-us", "espeak-ng:en-gb", "espeak-ng:en-us+f3"],
    "flite": ["flite:slt", "flite:rms", "flite:awb"],
}
#: What is indexed once a corpus, by system.
_STORES = {
    **dict.fromkeys(("lvcsr", "text-std"), "words"),
    **dict.fromkeys(("whisper-std", "whisper-qbe"), "whisper"),
    "whisper-text": "whisper-text",
    "whisper-std+hotwords": "whisper-hotwords",
    **dict.fromkeys(("best-encoder", "spoken"), "encoder"),
}


class Task(NamedTuple):
    """A corpus by the file that describes it; and a system's overrides on it."""

    name: str
    corpus: Path
    systems: dict[str, tuple[str, ...]]


def tasks(english: Path | None) -> list[Task]:
    """The corpora that are there."""
    of_mboshi = ("p1b", "p1b-a", "p1b-b", "p1l", "p1l-three", "p1l-spanish", "fusion-families")
    found = [Task("mboshi", ROOT / "configs" / "corpora" / "mboshi-dev.yaml", dict.fromkeys(of_mboshi, ()))]
    if english is not None:
        spoken = (
            *("p1b-a", "p1b-b", "p1l-three", "p1l-spanish", "lvcsr"),
            *("mfcc-fingerprint", "phoneme-posteriorgram", "best-single"),
            *("fusion-lvcsr", "fusion-lvcsr-fingerprint", "fusion-lvcsr-best"),
        )
        trimmed = ("queries.trim=auto",)
        systems = {"p1b": _ENGLISH, "p1l": _ENGLISH[:1], **dict.fromkeys(spoken, ()), "whisper-qbe": _WHISPER}
        systems |= {"best-encoder": trimmed, "fusion-spoken": ()}
        found.append(Task("english", english / "spoken.yaml", systems))
        by_voices = {
            f"best-encoder+{name}": (f"queries.speak={json.dumps(voices)}", "queries.trim=auto")
            for name, voices in _SPOKEN.items()
        }
        names = (
            f"options.recogniser.options.hotwords={json.dumps([name.capitalize() for name in vocabulary()['unknown']])}"
        )
        texts = {
            "text-std": (),
            "whisper-std": _WHISPER,
            "whisper-text": _WHISPER,
            "whisper-std+hotwords": (*_WHISPER, names),
            **by_voices,
            "fusion-typed": (),
        }
        found.append(Task("english", english / "corpus.yaml", texts))
    return found


def run(task: Task, name: str, protocol: str, folder: Path) -> Path:
    """The folder of a system's run, searched if it is not there; queries of which a recogniser hears nothing do not stop it."""
    path, run_folder = _SYSTEMS / f"{name.partition('+')[0]}.yaml", str(folder / f"{task.name}-{name}")
    sets = [f"score.protocol={protocol}", "force=true"]

    def own(system: str) -> list[str]:
        """What is set of a system, alone or in a fusion."""
        kind = _STORES.get(system, _STORES.get(system.partition("+")[0]))
        store = [] if kind is None else [f"index.store={folder.resolve() / f'{task.name}-{kind}'}"]
        return [*store, *task.systems.get(system, ())]

    config = load_config(path, [*sets, *own(name)], corpus=str(task.corpus), run=run_folder)
    if config.chain == "fuse":
        parts: Any = config.options["systems"]
        parts = [{**one, "set": [*one.get("set", []), *own(one["name"])]} for one in parts]
        sets.append(f"options.systems={json.dumps(parts)}")
        config = load_config(path, sets, corpus=str(task.corpus), run=run_folder)
    result = api.run(config)
    if result.outcome.failures:
        raise RuntimeError(f"{name}: {result.outcome.failures[0].message}")
    return Path(run_folder)


def by_vocabulary(path: Path) -> list[str]:
    """Mean term-weighted value at the run's thresholds of terms without and with a word that recognisers do not know."""
    unknown, values = set(vocabulary()["unknown"]), list[list[float]]([[], []])
    for query in report_in(path)["per_query"]:
        if query["twv"] is not None:
            values[not unknown.isdisjoint((query["term"] or "").split())].append(query["twv"])
    return [f"{sum(some) / len(some):.3f}" if some else "" for some in values]


def unspoken() -> dict[str, NDArray[np.float32]]:
    """A minute each of silence, white noise, chords of decaying partials, and hum of a mains."""
    times = np.arange(60 * RATE) / RATE
    beat, within = np.divmod(times, 1.5)
    chords = np.array([[0, 4, 7, 12], [-3, 0, 4, 9], [-7, -3, 0, 5], [-5, -1, 2, 7]])[beat.astype(int) % 4]
    notes = 220 * 2 ** (chords.T / 12)
    music = sum(np.sin(2 * np.pi * k * note * within) / k**2 for note in notes for k in range(1, 6)) * np.exp(
        -2 * within
    )
    sounds = {
        "silence": np.zeros(len(times)),
        "white noise": 0.1 * np.random.default_rng(0).standard_normal(len(times)),
        "music": 0.1 * music,
        "hum": 0.1 * sum(np.sin(2 * np.pi * 50 * k * times) / k for k in range(1, 9)),
    }
    return {name: sound.astype(np.float32) for name, sound in sounds.items()}


def print_unspoken() -> None:
    """Print the words of each sound as options are switched off, and the texts that each rule leaves out."""
    everything = {"speech": 0, "most_compressed": 1e9, "least_likely": -1e9}
    rules = (lattices.REPEATED_TEXT, lattices.UNLIKELY_TEXT, lattices.TEXT_OF_NO_SPEECH)
    print(
        row("sound", "words", "without detection", *(f"left out: {rule.name}" for rule in rules), "and without rules")
    )
    print("|---" * 7 + "|")
    for name, sound in unspoken().items():
        words = []
        for options in ({}, {"speech": 0}, everything):
            recogniser = Whisper.model_validate({"model": str(_MODEL), **options})
            lattice = recogniser.lattice(name, 1, [sound])
            words.append(str(len(lattice.words or ())))
            if options == {"speech": 0}:
                found = lattice.left_out.by_reason
                words += [str(found[rule.name]["items"] if rule.name in found else 0) for rule in rules]
        print(row(name, *words), flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write MTWV as rows to this file")
    parser.add_argument("--english", type=Path, metavar="FOLDER", help="of the made English corpus")
    parser.add_argument("--runs", type=Path, help="folder of the runs; by default one that is thrown away")
    parser.add_argument("--systems", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--unspoken", action="store_true", help="words that Whisper writes where nobody speaks")
    given = parser.parse_args()
    if given.unspoken:
        print_unspoken()
        return
    heads = ("MTWV", "ATWV", "pair AUC", "Cnxe", "min Cnxe", "ISF", "SSF", "PMU (GB)")
    print(row("corpus", "system", "protocol", *heads, "known", "unknown"), "|---" * (5 + len(heads)) + "|", sep="\n")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="swsdist-bench-") as scratch:
        for task in tasks(given.english):
            for name in task.systems:
                for protocol in _PROTOCOLS if name in (given.systems or task.systems) else ():
                    say(f"transcriptions: {task.name}, {name}, {protocol}")
                    path = run(task, name, protocol, given.runs or Path(scratch))
                    found = figures(path)
                    rows.append(Row(f"{task.name}, {name}, {protocol}: MTWV", report_in(path)["measures"]["mtwv"], ""))
                    ours = by_vocabulary(path) if task.name == "english" else ["", ""]
                    print(row(task.name, name, protocol, *(found[head] for head in heads), *ours), flush=True)
    if given.json is not None:
        write_json(given.json, rows)


if __name__ == "__main__":
    main()
