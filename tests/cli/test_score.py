"""`swsdist score` on lists: NIST's options, what is printed and written, and what is said of odd or broken input."""

import csv
import gzip
import json
import math
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import untold

ECF = """<ecf source_signal_duration="600" version="v1">
<excerpt audio_filename="audio/F1.sph" channel="1" tbeg="0" dur="300" language="x" source_type="cts"/>
<excerpt audio_filename="audio/F2.sph" channel="1" tbeg="0" dur="300" language="x" source_type="bnews"/>
</ecf>
"""
TLIST = """<termlist ecf_filename="ecf.xml" language="x" version="v1">
<term termid="T1"><termtext>one</termtext></term>
<term termid="T2"><termtext>two words</termtext></term>
<term termid="T3"><termtext>never</termtext></term>
</termlist>
"""
RTTM = """SPEAKER F1 1 0 60 <NA> <NA> ann <NA>
SPEAKER F2 1 0 60 <NA> <NA> bob <NA>
LEXEME F1 1 10 0.5 one lex ann <NA>
LEXEME F1 1 20 0.5 two lex ann <NA>
LEXEME F1 1 20.75 0.5 words lex ann <NA>
LEXEME F2 1 30 0.5 One lex bob <NA>
"""
HEAD = '<stdlist termlist_filename="t" indexing_time="1" language="x" index_size="1" system_id="mine">\n'
STDLIST = (
    HEAD
    + """<detected_termlist termid="T1" term_search_time="1.5" oov_term_count="0">
<term file="F1" channel="1" tbeg="10" dur="0.5" score="0.9" decision="YES"/>
<term file="F2" channel="1" tbeg="100" dur="0.5" score="0.7" decision="YES"/>
<term file="F2" channel="1" tbeg="30.1" dur="0.5" score="0.2" decision="NO"/>
</detected_termlist>
<detected_termlist termid="T2" term_search_time="1.5" oov_term_count="0">
<term file="audio/F1.wav" channel="1" tbeg="20" dur="1.25" score="0.8" decision="YES"/>
</detected_termlist>
<detected_termlist termid="T3" term_search_time="1.5" oov_term_count="0">
<term file="F1" channel="1" tbeg="50" dur="0.5" score="0.95" decision="YES"/>
</detected_termlist>
</stdlist>
"""
)
KWLIST = TLIST.replace("termlist ", 'kwlist encoding="UTF-8" compareNormalize="lowercase" ').replace("term", "kw")
KWLIST = KWLIST.replace("kwlist_filename", "termlist_filename")
LISTS = ("-e", "ecf.xml", "-r", "ref.rttm", "-t", "tlist.xml", "-s", "stdlist.xml")
KLISTS = ("-e", "ecf.xml", "-r", "ref.rttm", "-t", "kwlist.xml", "-s", "kwslist.xml")
BETA = 0.1 * (1 / 0.0001 - 1)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    files = {"ecf.xml": ECF, "tlist.xml": TLIST, "ref.rttm": RTTM, "stdlist.xml": STDLIST, "kwlist.xml": KWLIST}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    kwslist = STDLIST.replace("detected_termlist", "detected_kwlist").replace("stdlist", "kwslist")
    kwslist = kwslist.replace("termid", "kwid").replace("<term ", "<kw ").replace("term_search_time", "search_time")
    (tmp_path / "kwslist.xml").write_text(kwslist.replace("oov_term_count", "oov_count"), encoding="utf-8")
    return tmp_path


def change(here: Path, name: str, old: str, new: str) -> None:
    text = (here / name).read_text(encoding="utf-8")
    assert old in text
    (here / name).write_text(text.replace(old, new), encoding="utf-8")


@contextmanager
def changed(here: Path, name: str, old: str, new: str) -> Iterator[None]:
    """The files with a change."""
    before = (here / name).read_bytes()
    change(here, name, old, new)
    yield
    (here / name).write_bytes(before)


def scored(swsdist, here: Path, *more: str) -> dict:
    return json.loads(swsdist("score", *LISTS, "--json", *more, cwd=here).out)


ROWS = """T1,F1,1,10,0.5,0.9,YES
T1,F2,1,100,0.5,0.7,YES
T1,F2,1,30.1,0.5,0.2,NO
T2,audio/F1.wav,1,20,1.25,0.8,YES
T3,F1,1,50,0.5,0.95,YES
"""


def test_a_table_is_scored_as_the_list_of_the_same_rows(swsdist, here: Path) -> None:
    """Documents have folders and endings, and columns NIST's names or ours."""
    rows = [line.split(",") for line in ROWS.splitlines()]
    ours = [[*row[:4], str(float(row[3]) + float(row[4])), *row[5:]] for row in rows]
    tables = {
        "termid,file,channel,tbeg,dur,score,decision": rows,
        "query_id,doc_id,channel,start,end,score,decision": ours,
    }
    listed = scored(swsdist, here)
    for head, table in tables.items():
        (here / "list.csv").write_text("\n".join([head, *map(",".join, table), ""]))
        found = json.loads(swsdist("score", *LISTS[:-1], "list.csv", "--json", cwd=here).out)
        assert found | {"system": {}} == listed | {"system": {}}
    (here / "refs.csv").write_text("query_id,doc_id,start,end\nT1,F1,10,10.5\nT1,F2,30,30.5\nT2,F1,20,21.25\n")
    change(here, "list.csv", "audio/F1.wav", "F1")
    given = ("--references", "refs.csv", "--seconds", "600", "-s", "list.csv", "--protocol", "stdeval", "--json")
    found = json.loads(swsdist("score", *given, cwd=here).out)["measures"]
    assert found["atwv"] == pytest.approx(listed["measures"]["atwv"], abs=1e-12)


def test_counts_and_values_by_hand(swsdist, here: Path) -> None:
    found = scored(swsdist, here)
    assert (found["seconds"], found["trials"], found["beta"]) == (600.0, 600, BETA)
    counts = {row["query_id"]: [row[name] for name in ("ntrue", "ncorr", "nfa", "nmiss")] for row in found["terms"]}
    assert counts == {"T1": [2, 1, 1, 1], "T2": [1, 1, 0, 0], "T3": [0, 0, 1, 0]}
    pmiss, pfa = 0.25, 0.5 / 598
    values = found["measures"]
    assert values["atwv"] == pytest.approx(1 - pmiss - BETA * pfa, abs=1e-12)
    assert values["mtwv"] == pytest.approx(0.75, abs=1e-12)
    assert (values["mtwv_threshold"], values["stwv"]) == (0.8, 1.0)
    assert set(found["by_source_type"]) == {"cts", "bnews"}
    assert found["notices"] == []


def test_options_of_nist(swsdist, here: Path) -> None:
    base = scored(swsdist, here)["measures"]
    dear = scored(swsdist, here, "-k", "1", "-K", "100", "-p", "0.00015")
    assert dear["beta"] == pytest.approx(66.6567, abs=1e-4)
    assert scored(swsdist, here, "--protocol", "sws2013")["measures"] == dear["measures"]
    assert scored(swsdist, here, "-n", "2")["trials"] == 1200
    assert scored(swsdist, here, "-F", "0.1")["totals"]["ntrue"] == 2  # the two words are 0.25 s apart
    assert scored(swsdist, here, "-S", "90")["protocol"]["tolerance"] == 90
    assert scored(swsdist, here, "-S", "90", "-k", "1")["protocol"]["cost"] == 1
    assert scored(swsdist, here, "--beta", "10")["beta"] == 10
    assert scored(swsdist, here, "--protocol", "sws2012")["beta"] == (600 - 3) / 3
    assert base == scored(swsdist, here, "-E")["measures"]
    more = scored(swsdist, here, "--all-measures")["measures"]
    assert more["map"] == pytest.approx((5 / 6 + 1) / 2)
    assert {"eer", "cnxe", "cnxe_min", "p_at_10"} <= set(more)


def test_a_list_without_decisions_says_so(swsdist, here: Path) -> None:
    """STDEval knows no such list; its start values of 9999 are no scores of it."""
    rows = ["query_id,doc_id,channel,start,end,score", "T1,talk,1,10,10.5,0.9", "T2,talk,1,30,30.5,0.8"]
    (here / "open.csv").write_text("\n".join(rows) + "\n")
    options = (*LISTS[:6], "-s", "open.csv", "--force")
    for protocol in ("stdeval", "sws2013"):
        out = swsdist("score", *options, "--protocol", protocol, cwd=here).out
        assert "of which 2 have no decision" in out
        assert "ATWV n/a" in out
        assert "None" not in out
        assert "9999" not in out
    found = json.loads(swsdist("score", *options, "--json", cwd=here).out)
    assert [(notice["code"], notice["count"]) for notice in found["notices"]] == [("outside-ecf", 2), ("all-missed", 3)]
    assert found["notices"][1]["first"] == "open.csv"
    assert found["score_limits"] == {"highest_no": None, "lowest_yes": None}
    (here / "open.csv").write_text("\n".join([f"{rows[0]},decision", f"{rows[1]},YES", f"{rows[2]},"]) + "\n")
    assert "of which 1 have no decision" in swsdist("score", *options, cwd=here).out


def test_a_command_line_of_stdeval(swsdist, here: Path) -> None:
    """The one of MediaEval 2011."""
    line = "-A -o score.occ.txt -a score.ali.txt -d score.det -c score.cache -S 20 -F 20 -k 13.065 -K 1 -p 0.5"
    assert swsdist("score", "-number-trials-per-sec=1", *LISTS, *line.split(), cwd=here).out == ""
    assert "| Coefficient C:               13.0650" in (here / "score.occ.txt").read_text()
    assert (here / "score.ali.txt").read_text().startswith('"language","file"')
    assert (here / "score.det").read_text().startswith('"score","pmiss"')
    assert "plot 'score.det' every ::1 using" in (here / "score.det.plt").read_text()  # scripts loop over *.plt
    assert "not defined for protocol kwseval" in swsdist("score", *KLISTS, "-A", cwd=here, code=2).err


def test_kwseval(swsdist, here: Path) -> None:
    change(here, "kwslist.xml", "audio/F1.wav", "audio/F1.sph")
    ended = (swsdist("score", *KLISTS, "--json", *more, cwd=here) for more in ((), ("-inc",), ("-g",)))
    plain, kept, segments = (json.loads(one.out) for one in ended)
    assert plain["protocol"]["name"] == "kwseval"
    assert plain["measures"]["mtwv"] == pytest.approx(0.75, abs=1e-12)
    pfa = (0.5 * 2 / 598 + 1 / 600) / 3
    assert kept["measures"]["atwv"] == pytest.approx(1 - 0.25 - BETA * pfa, abs=1e-12)
    assert segments["trials"] == 4  # speech and silence of two files
    assert "[unsupported]" in swsdist("score", *LISTS, "-g", cwd=here, code=2).err


def test_files_that_are_written(swsdist, here: Path) -> None:
    swsdist("score", *LISTS, "--per-term", "t.csv", "--alignment", "a.csv", "--det", "det.svg", cwd=here)
    swsdist("score", *LISTS, "--det", "det.csv", "--bands", cwd=here)
    swsdist("score", *LISTS, "--det", "bands.svg", "--bands", "-P", cwd=here)
    terms, alignment, points = (list(csv.DictReader((here / name).open())) for name in ("t.csv", "a.csv", "det.csv"))
    assert [row["term"] for row in terms] == ["one", "two words", "never"]
    assert sorted(row["alignment"] for row in alignment) == ["CORR", "CORR", "FA", "FA", "MISS"]
    assert (here / "det.svg").read_text().startswith("<svg")
    assert (here / "bands.svg").read_text().count('stroke-dasharray="2 2"') == 2
    assert max(float(row["value"]) for row in points) == pytest.approx(0.75)
    # At the best point one of two terms misses half: a spread of sqrt(1/8), divided by sqrt(n - 1) = 1.
    best = next(row for row in points if float(row["score"]) == 0.8)
    assert float(best["pmiss_2se"]) == pytest.approx(2 * math.sqrt(1 / 8))


def test_the_prior_of_cnxe_by_hand(swsdist, here: Path) -> None:
    """Three trials, all submitted: a target at ln 3, others at 0 and -ln 3; targets cost log2(4/3) bits."""
    (here / "refs.csv").write_text("query_id,doc_id,start,end\nq,d,0,0.5\n")
    scores = ((0, math.log(3)), (9, 0), (20, -math.log(3)))
    rows = "".join(f"q,d,{start},{start + 0.5},{score},true\n" for start, score in scores)
    (here / "dets.csv").write_text("query_id,doc_id,start,end,score,decision\n" + rows)
    lists = ("--references", "refs.csv", "--seconds", "3", "-s", "dets.csv", "--protocol", "sws2013", "--all-measures")
    plain = json.loads(swsdist("score", *lists, "--json", cwd=here).out)["measures"]
    assert plain["effective_prior"] == pytest.approx(0.0148, abs=2e-5)
    found = json.loads(swsdist("score", *lists, "--json", "--cnxe-prior", "0.5", cwd=here).out)["measures"]
    assert found["cnxe"] == pytest.approx((math.log2(4 / 3) + (1 + math.log2(4 / 3)) / 2) / 2, rel=1e-12)
    assert (found["effective_prior"], found["atwv"]) == (0.5, plain["atwv"])
    assert "cnxe_prior is 1.0" in swsdist("score", *lists, "--cnxe-prior", "1", cwd=here, code=2).err


def test_a_run_has_the_prior_of_cnxe_that_its_config_names(swsdist, place: Path, tmp_path: Path) -> None:
    """`compare` takes it, too, and does not compare what was scored at different ones."""
    run = shutil.copytree(place / "run", tmp_path / "flat")
    swsdist("score", "config.yaml", "--set", f"run={run}", "--set", "score.cnxe_prior=0.5", cwd=place)
    flat, plain = (json.loads((one / "report.json").read_text())["measures"] for one in (run, place / "run"))
    assert flat["further"]["effective_prior"] == 0.5
    assert flat["further"]["cnxe"] != plain["further"]["cnxe"]
    assert flat["atwv"] == plain["atwv"]
    told = json.loads(swsdist("compare", run, f"same={run}", "--cnxe", "--json").out)["cross_entropies"]
    assert [row["value"] for row in told["systems"]] == [pytest.approx(flat["further"]["cnxe_min"])] * 2
    assert "at different priors of Cnxe" in swsdist("compare", run, place / "run", "--cnxe", code=2).err


def test_documents(swsdist, here: Path) -> None:
    """One trial a term and document, so where in the document does not matter."""
    change(here, "ecf.xml", "</ecf>", ECF.splitlines()[1].replace("F1", "F3") + "\n</ecf>")
    found = scored(swsdist, here, "--documents", "--beta", "1")
    assert found["trials"] == 3
    counts = {"ntrue": 3, "ncorr": 3, "nfa": 1, "nmiss": 0}
    assert found["totals"] == {"terms": 3, **counts, "detections": 4, "nontargets": 1}
    assert found["measures"]["atwv"] == 1.0


def test_what_the_originals_pass_over(swsdist, here: Path) -> None:
    """A warning with a count; with --strict an error, and exit code 4."""
    for name, old, new, warning in (
        ("tlist.xml", 'termid="T3"', 'termid="T2"', "[repeated-term]"),
        ("tlist.xml", "never", "One.", "[spelled-otherwise]"),
        ("stdlist.xml", 'termid="T3"', 'termid="T9"', "queries or detections are not of the term list"),
        ("stdlist.xml", 'termid="T3"', 'termid="T1"', "[repeated-query-list]"),
        ("ref.rttm", "LEXEME F2", "LEXEME F9", "references lie outside of the ECF and are scored"),
        ("stdlist.xml", 'file="F2"', 'file="F9"', "detections are in documents that the ECF lacks"),
        ("stdlist.xml", 'channel="1" tbeg="50"', 'channel="2" tbeg="50"', "detections lie outside of the ECF's"),
        ("stdlist.xml", '"0.2" decision="NO"', '"0.99" decision="NO"', "[inconsistent-decisions]"),
        ("ref.rttm", "LEXEME F1 1 10 ", "LEXEME F1 1 40 ", "[unsorted-words]"),
    ):
        with changed(here, name, old, new):
            told = swsdist("score", *LISTS, cwd=here).err
            assert warning in told
            assert any(line.startswith("warning: ") and line.split()[1].isdigit() for line in told.splitlines())
            swsdist("score", *LISTS, "--strict", cwd=here, code=4)


def test_what_is_broken(swsdist, here: Path) -> None:
    for name, old, new, error in (
        ("stdlist.xml", '"0.9"', '"nan"', "stdlist.xml, line 3: score is 'nan'"),
        ("ecf.xml", 'dur="300"', 'dur="-300"', "ecf.xml, line 2: dur is '-300'"),
        ("ref.rttm", "10 0.5 one", "10 -0.5 one", "ref.rttm, line 3: duration is '-0.5'"),
        ("tlist.xml", "<termlist", '<!DOCTYPE x [<!ENTITY a "b">]><termlist', "[malformed-xml]"),
    ):
        with changed(here, name, old, new):
            assert untold(swsdist, {shlex.join(["score", *LISTS]): error}, here, code=3) == {}
    change(here, "stdlist.xml", '"0.9"', '"1e308"')
    change(here, "stdlist.xml", '"0.7"', '"-1e308"')
    assert "[too-large]" in swsdist("score", *LISTS, cwd=here, code=3).err
    packed = gzip.compress(STDLIST.encode())
    (here / "stdlist.xml").write_bytes(packed)
    assert scored(swsdist, here)["totals"]["ncorr"] == 2
    (here / "stdlist.xml").write_bytes(packed[:-9])
    assert "[damaged-file]" in swsdist("score", *LISTS, cwd=here, code=3).err


def test_usage(swsdist, here: Path) -> None:
    lists = "score -e ecf.xml -r ref.rttm -t tlist.xml -s"
    cases = {
        f"{lists} gone.xml": "there is no such file",
        "score -e ecf.xml -t tlist.xml -s stdlist.xml": "[conflicting-options]",
        f"{lists} stdlist.xml --protocol sws2031": "unknown protocol 'sws2031'",
    }
    assert untold(swsdist, cases, here) == {}
    assert untold(swsdist, {f"{lists} ecf.xml": "the outermost element is <ecf>"}, here, code=3) == {}
    assert "Give a CONFIG, or a list" in swsdist("score", cwd=here, code=2).err
    assert "a list has --all-measures" in swsdist("score", "-s", "x.xml", "--all", code=2).err


def test_options_of_a_list_are_refused_with_a_config(swsdist, place: Path) -> None:
    """None of them is passed over in silence."""
    for options in (("--beta", "10"), ("--json",), ("--measures", "m.csv"), ("-e", "ecf.xml")):
        assert "CONFIG and --" in swsdist("score", "config.yaml", *options, cwd=place, code=2).err
