"""A small file of each format of lattices, and what must lie beside it."""

from __future__ import annotations

import json

from tests.support.lattices import COMPACT_TEXT, CONFUSION_TEXT, CONFUSION_TIMES, HTK_TEXT, SPHINX_SLF

_WORDS = [
    {"word": " Hello,", "start": 0.0, "end": 0.5, "probability": 0.75},
    {"word": " world.", "start": 0.5, "end": 1.25, "probability": 0.5},
]
_ELAN = """<?xml version="1.0" encoding="UTF-8"?>
<ANNOTATION_DOCUMENT AUTHOR="" DATE="2020-01-01T00:00:00+00:00" FORMAT="3.0" VERSION="3.0"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
 xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/EAFv3.0.xsd">
<HEADER MEDIA_FILE="" TIME_UNITS="milliseconds"/>
<TIME_ORDER><TIME_SLOT TIME_SLOT_ID="ts1" TIME_VALUE="0"/><TIME_SLOT TIME_SLOT_ID="ts2" TIME_VALUE="1500"/></TIME_ORDER>
<TIER LINGUISTIC_TYPE_REF="t" TIER_ID="words"><ANNOTATION>
<ALIGNABLE_ANNOTATION ANNOTATION_ID="a1" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts2">
<ANNOTATION_VALUE>hello world</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION></TIER>
<LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="t" TIME_ALIGNABLE="true"/></ANNOTATION_DOCUMENT>
"""
_TEXTGRID = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 2
tiers? <exists>
size = 1
item []:
    item [1]:
        class = "IntervalTier"
        name = "words"
        xmin = 0
        xmax = 2
        intervals: size = 2
        intervals [1]:
            xmin = 0
            xmax = 1.25
            text = "hello"
        intervals [2]:
            xmin = 1.25
            xmax = 2
            text = ""
"""

#: By format: name of the file, its content, and others by name.
SAMPLES: dict[str, tuple[str, str, dict[str, str]]] = {
    "kaldi": ("lat.1", f"u1 \n{COMPACT_TEXT}\nu2 \n{COMPACT_TEXT}\n", {}),
    "pocketsphinx": ("talk.slf", SPHINX_SLF, {}),
    "htk": ("talk.lat", HTK_TEXT, {}),
    "confusion": ("mbr.txt", CONFUSION_TEXT, {"mbr.times": CONFUSION_TIMES}),
    "json": ("talk.json", json.dumps({"segments": [{"id": 0, "text": "", "words": _WORDS}]}), {}),
    "webvtt": ("talk.vtt", "WEBVTT\n\n00:00.000 --> 00:01.250\nHello world\n", {}),
    "srt": ("talk.srt", "1\n00:00:00,000 --> 00:00:01,250\nHello again\n", {}),
    "elan": ("talk.eaf", _ELAN, {}),
    "textgrid": ("talk.TextGrid", _TEXTGRID, {}),
    "table": ("talk.csv", "start;end;text;speaker\n0,5;1,25;hello world;Ann\n0;0,5;yes;\n", {}),
    "ctm": ("all.ctm", "talk 1 0 0.5 Hello 0.75\ntalk 1 0.5 0.75 world 0.5\ntalk 2 0 0.25 yes\n", {}),
}
