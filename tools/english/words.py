"""A corpus so small, and a recogniser of so few words, that a test recognises it in a second or two."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

import pytest

from swsdist.io.nist.ctm import read_ctm
from tools.english.corpus import make
from tools.english.queries import speak_queries
from tools.english.speech import lacking


def small_corpus(folder: Path, hours: float = 0.012) -> Path:
    """A corpus without noise, with spoken queries; skips where flite or pocketsphinx is missing."""
    if importlib.util.find_spec("pocketsphinx") is None:
        pytest.skip("needs pocketsphinx: pip install -e '.[dev]'")
    if reason := lacking():
        pytest.skip(reason)
    make(folder / "corpus", hours, clean=True)
    speak_queries(folder / "corpus", clean=True)
    return folder / "corpus"


def small_recogniser(corpus: Path) -> dict[str, Any]:
    """Options of a recogniser that knows a corpus's words and no others, each as likely; writes its files beside the corpus."""
    import pocketsphinx

    spoken = set(read_ctm(str(corpus / "words.ctm"))["word"].to_pylist())
    entries = Path(pocketsphinx.get_model_path("en-us/cmudict-en-us.dict")).read_text(encoding="utf-8").splitlines()
    known = [entry for entry in entries if entry.split()[0].partition("(")[0] in spoken]
    words = sorted({entry.split()[0].partition("(")[0] for entry in known})
    chance = -math.log10(len(words) + 1)
    grams = ["-99 <s> 0", *(f"{chance:.4f} {word} 0" for word in ("</s>", *words))]
    lines = ["\\data\\", f"ngram 1={len(grams)}", "", "\\1-grams:", *grams, "", "\\end\\", ""]
    dictionary, model = corpus.parent / "words.dict", corpus.parent / "words.arpa"
    dictionary.write_text("\n".join([*known, ""]), encoding="ascii")
    model.write_text("\n".join(lines), encoding="ascii")
    return {
        "dictionary": str(dictionary),
        "lm": str(model),
        "parameters": {"lw": 2.0, "fwdflatlw": 2.0, "bestpathlw": 2.0},
    }
