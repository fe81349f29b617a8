"""docs/reference/api.md, from docstrings, signatures and registries."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import swsdist
from swsdist.registry import registries
from swsdist.registry.registry import Registry
from swsdist.testing import conformance

_NOTEBOOKS = Path(__file__).parents[2] / "notebooks"

_HEAD = """\
# Python

<!-- Generated from docstrings: make docs -->

`help(swsdist.search)` shows units, shapes and errors. Names that are not on this page may change without notice. `import
swsdist` is fast: libraries are loaded on first use. Errors are subclasses of `swsdist.core.errors.SwsdistError`, with
message, place, remedy and [code](codes.md). Measures of data frames are in [`swsdist.metrics`](metrics.md).

## Functions
"""

_EXAMPLE = """\
```python
import soundfile
import swsdist

result = swsdist.run("demo/config.yaml", sets=["run=api", "executor.kind=serial"])
print(result.measures()["mtwv"], len(result.detections()), result.rejected())
assert swsdist.digest("api")["all"] == swsdist.digest("demo/run")["all"]
hits = swsdist.search("api", soundfile.read("demo/corpus/queries/q001_1.wav"), top=3)
curve = swsdist.curve("api", "demo/corpus/queries/q001_1.wav", hits["doc_id"][0])
assert curve["score"].max() > -1
```

### A corpus in memory

Recordings are pairs `(samples, rate)` by name: floats of shape (n,), full scale 1. A query has one example, or a list.
References are a data frame with the columns of [a table of references](formats.md).

```python
import pandas as pd
import soundfile
import swsdist

rows = pd.read_csv("demo/corpus/docs.csv")
documents = {row.doc_id: soundfile.read("demo/corpus/" + row.path) for row in rows.itertuples()}
queries = {name: [soundfile.read(f"demo/corpus/queries/{name}_1.wav")] for name in ("q001", "q002")}
references = pd.read_csv("demo/corpus/refs.csv").query("query_id in @queries")
corpus = swsdist.save_corpus("memory", documents, queries, references)
result = swsdist.run({"run": "memory/run", "corpus": corpus, "executor": {"kind": "serial"}})
assert result.measures()["atwv"] > 0
```

### One search after the other

A `Searcher` keeps documents, extractor and prepared shards (at most `memory` bytes) between searches. Its hits are those of a
run with the same settings; given a run, it uses that run's settings, and of its `calibrate.steps` those
before the first that is fitted, or needs a cohort or the number of trials.
`stream` yields after each part of the store. `executor={"kind": "ray"}` searches on Ray actors.

```python
import swsdist

with swsdist.Searcher("demo/run", memory=500_000_000) as searcher:
    first = searcher.search("demo/corpus/queries/q001_1.wav", top=3)
    for hits in searcher.stream("demo/corpus/queries/q002_1.wav", top=3):
        print(f"{hits.part:.0%}", hits.table().num_rows)
```
"""

#: Interfaces of extensions, and the page that says how to write one.
INTERFACES = {
    "swsdist.features.interface.Extractor": "how-to/add-a-feature-extractor.md",
    "swsdist.features.interface.Precomputed": "how-to/use-your-own-features.md",
    "swsdist.features.transforms.interface.Transform": "how-to/transform-features.md",
    "swsdist.methods.method.Method": "how-to/add-a-method.md",
    "swsdist.kernels.distances.interface.Distance": "how-to/add-a-distance.md",
    "swsdist.kernels.recurrences.interface.Recurrence": "how-to/add-a-recurrence.md",
    "swsdist.methods.first_pass.interface.FirstPass": "concepts/first-passes.md",
    "swsdist.calibrate.steps.interface.Step": "how-to/add-a-calibration-step.md",
    "swsdist.score.events.Measure": "how-to/add-a-measure.md",
    "swsdist.lattices.recognition.Recogniser": "how-to/recognise-words.md",
    "swsdist.exports.interface.Material": "how-to/use-the-exports.md",
    "swsdist.pipeline.chain.Stage": "how-to/add-a-chain.md",
    "swsdist.pipeline.chain.Step": "how-to/add-a-chain.md",
    "swsdist.pipeline.chain.Chain": "how-to/add-a-chain.md",
    "swsdist.pipeline.execution.executor.Executor": "how-to/add-an-executor-or-a-command.md",
}

#: Where the names of a registry are used.
USES = {
    "FEATURES": "features.name",
    "TRANSFORMS": "features.transforms",
    "CHAINS": "chain",
    "METHODS": "search.method",
    "DISCOVERY_MEASURES": "swsdist score-discovery",
    "DISCOVERY_MODES": "swsdist score-discovery --mode",
    "DISTANCES": "search.distance",
    "RECURRENCES": "search.recurrence",
    "BACKENDS": "search.backend",
    "EXECUTORS": "executor.kind",
    "COMMANDS": "swsdist COMMAND",
    "FIRST_PASSES": "search.first_pass.name",
    "CALIBRATION": "calibrate.steps",
    "STATISTICS": "StepEntry.statistics",
    "MEASURES": "report.json",
    "PROTOCOLS": "score.protocol",
    "READERS": "swsdist calibrate --from",
    "WRITERS": "swsdist calibrate --format",
    "EXPORTS": "report.exports",
    "LATTICE_FORMATS": "options.lattices.format",
    "RECOGNISERS": "options.recogniser.name",
}

_REGISTRIES = """\
## Registries

A registry of `swsdist.registry.registries` maps names to entries: `registry[name]` has `target`, `version` and `load()`;
`registry.add(name, entry)` and `registry.remove(name)` change it for this process; workers of Ray and Dask are others, so
run with `executor.kind: serial`. A package adds entries by an entry point
of the group.

| registry | names in | entry | group |
|---|---|---|---|
"""

_SUITES = """\
## Conformance suites

They check an extension against the rules of its interface, and raise an `AssertionError`; no test framework is needed. All are
in `swsdist.testing.conformance`.

"""


def page() -> str:
    """The text of the page."""
    functions = "\n".join(f"- `{_call(f'swsdist.{name}')}`: {_line(f'swsdist.{name}')}" for name in _public())
    others = "\n".join(f"- `{name}`: {_line(name)}" for name in _of_notebooks())
    interfaces = "\n".join(f"- `{name}`: {_line(name)} [How to](../{link})" for name, link in INTERFACES.items())
    suites = "\n".join(f"- `{name}`: {_line(f'{conformance.__name__}.{name}')}" for name in conformance.__all__)
    lists = f"## Lists, figures and tables\n\n{others}\n\n## Interfaces\n\n{interfaces}\n"
    rows = "\n".join(_rows())
    return f"{_HEAD}\n{functions}\n\n{_EXAMPLE}\n{lists}\n{_REGISTRIES}{rows}\n\n{_SUITES}{suites}\n"


def _public() -> list[str]:
    return [name for name in swsdist.__all__ if name != "__version__"]


def _of_notebooks() -> list[str]:
    """Names outside of `swsdist` that the notebooks import."""
    names = set()
    for path in sorted(_NOTEBOOKS.glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "swsdist":
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
    names -= {f"swsdist.{name}" for name in swsdist.__all__}
    return sorted(names, key=lambda name: (name.rpartition(".")[0], name))


def _rows() -> Iterator[str]:
    for name, registry in vars(registries).items():
        if isinstance(registry, Registry):
            entries = [registry[one] for one in registry]
            entry = next(kind for kind in type(entries[0]).__mro__ if all(isinstance(one, kind) for one in entries))
            yield f"| `{name}` | `{USES[name]}` | `{entry.__module__}.{entry.__name__}` | `{registry.group}` |"


def _object(name: str) -> object:
    """What a dotted name stands for."""
    module, _, attribute = name.rpartition(".")
    try:
        return importlib.import_module(name)
    except ImportError:
        return getattr(importlib.import_module(module), attribute)


def _call(name: str) -> str:
    """A function with its parameters; a class by its name."""
    value = _object(name)
    if inspect.isclass(value) or not callable(value):
        return name
    parameters = inspect.signature(value).parameters.values()
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in parameters]
    return f"{name}{inspect.Signature(bare)}".replace("'", '"')


def _line(name: str) -> str:
    """The first line of a docstring; of a value, its comment."""
    value = _object(name)
    text = inspect.getdoc(value) if callable(value) or inspect.ismodule(value) else None
    if not text or (not callable(value) and not inspect.ismodule(value)):
        module, _, attribute = name.rpartition(".")
        source = inspect.getsource(importlib.import_module(module))
        match = re.search(rf"^#: (.*)\n(?:#:.*\n)*{attribute}\b", source, re.M)
        text = match[1] if match else attribute
    first = text.split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    return re.split(r"(?<=[a-z)`])(?<!\beq)\. ", first)[0].rstrip(".")


if __name__ == "__main__":
    print(page(), end="")
