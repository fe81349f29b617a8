"""One corpus with documents of each kind, which several properties are tried on."""

from pathlib import Path

import pytest
from kinds_of_corpora import KINDS, Made, make

from swsdist.testing.synthesis import make_corpus


@pytest.fixture(scope="session")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Made, Path]]:
    """By kind of document: the corpus, and the folder of its runs, which share what they can."""
    corpus = tmp_path_factory.mktemp("corpus")
    make_corpus(corpus, documents=16, queries=6, voices=3)
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in KINDS}
    return {kind: (make(kind, corpus, folder), folder / "run") for kind, folder in folders.items()}
