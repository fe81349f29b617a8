"""compare and resources: what they print and write, that Python gives the same numbers, and what they refuse."""

import csv
import hashlib
import importlib.metadata
import json
import re
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from swsdist.cli.comparing import compare, resources
from swsdist.cli.scoring import score
from swsdist.core.codes import families
from swsdist.core.codes import score as score_codes
from swsdist.core.errors import UserError
from swsdist.evaluation.reading import read_task
from swsdist.evaluation.scoring_task import read_system
from swsdist.io.tables import write_csv
from swsdist.score.compare.paired import Settings
from swsdist.score.compare.paired import compare as compare_tables
from swsdist.score.measures.twv import PER_TERM
from tests.support.coded import raises

ECF = """<ecf source_signal_duration="3600" language="english" version="1">
<excerpt audio_filename="talk1.sph" channel="1" tbeg="0" dur="2000" source_type="bnews"/>
<excerpt audio_filename="talk2.sph" channel="1" tbeg="0" dur="1600" source_type="bnews"/>
</ecf>
"""
TERMS = """<termlist ecf_filename="ecf.xml" version="1" language="english">
<term termid="T1"><termtext>one</termtext><terminfo><attr><name>Origin</name><value>native</value></attr></terminfo></term>
<term termid="T2"><termtext>two words</termtext></term>
<term termid="T3"><termtext>three</termtext></term>
</termlist>
"""
REFERENCES = """query_id,doc_id,start,end
T1,talk1,10,10.5
T1,talk2,20,20.7
T2,talk1,30,31
T3,talk2,40,40.4
"""
ONE = [
    ("T1", "talk1", 10, 0.9, 1),
    ("T1", "talk2", 20, 0.8, 1),
    ("T2", "talk1", 30, 0.7, 1),
    ("T3", "talk1", 5, 0.6, 1),
]
TWO = [("T1", "talk1", 10, 0.9, 1), ("T1", "talk2", 99, 0.8, 1), ("T2", "talk1", 30, 0.2, 0)]


def listed(rows: list[tuple]) -> str:
    lines = ["query_id,doc_id,start,end,score,decision"]
    lines += [f"{q},{d},{start},{start + 0.5},{score},{'true' if yes else 'false'}" for q, d, start, score, yes in rows]
    return "\n".join(lines) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {"ecf.xml": ECF, "terms.xml": TERMS, "refs.csv": REFERENCES, "one.csv": listed(ONE), "two.csv": listed(TWO)}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def task(folder: Path) -> list[str]:
    files = ["--ecf", f"{folder}/ecf.xml", "--terms", f"{folder}/terms.xml", "--references", f"{folder}/refs.csv"]
    return [*files, "--protocol", "sws2013"]


def said(command: Callable, *arguments: str) -> str:
    done = CliRunner().invoke(command, arguments, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.output


def lists(folder: Path, *more: str) -> str:
    return said(compare, f"{folder}/one.csv", f"{folder}/two.csv", *task(folder), "--resamples", "200", *more)


def test_lists_are_scored_and_compared(folder: Path) -> None:
    found = json.loads(lists(folder, "--json"))
    assert (found["schema"], found["systems"]) == ("swsdist-comparison/1", ["one", "two"])
    atwv, mtwv = found["measures"]
    assert [block["measure"] for block in (atwv, mtwv)] == ["ATWV", "MTWV"]
    beta = (1 / 0.00015 - 1) / 100
    one = (1 + 1 + (0 - beta * 1 / 3599)) / 3
    two = ((0.5 - beta * 1 / 3598) + 0 + 0) / 3
    assert [row["mean"] for row in atwv["systems"]] == pytest.approx([one, two])
    pair = atwv["pairs"][0]
    assert pair["difference"] == pytest.approx(one - two)
    assert (pair["wins"], pair["losses"], pair["ties"]) == (2, 1, 0)
    assert pair["wilcoxon"]["exact"]
    assert pair["interval"]["low"] <= pair["difference"] <= pair["interval"]["high"]
    assert pair["over_documents"] is None
    # The best thresholds: 0.7 for the one, which leaves its false alarm out, and 0.2 for the two, which takes all.
    assert [row["mean"] for row in mtwv["systems"]] == pytest.approx([2 / 3, two + 1 / 3])


def test_the_table_of_a_paper(folder: Path) -> None:
    lists(folder, "--paper", f"{folder}/paper.md", "--columns", "mtwv,atwv_pfa,eer,mtwv_threshold")
    text = (folder / "paper.md").read_text()
    (head, _, one, two) = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    assert head == ["system", "MTWV ↑", "95% interval", "ATWV Pfa ↓", "EER ↓", "MTWV threshold"]
    blocks = {block["measure"]: block for block in json.loads(lists(folder, "--json"))["measures"]}
    interval = blocks["MTWV"]["systems"][0]["interval"]
    assert one[:3] == ["one", "0.6667", f"{interval['low']:.4f} to {interval['high']:.4f}"]
    assert (one[-1], two[0]) == ("0.70000", "two")
    lists(folder, "--paper", f"{folder}/paper.tex", "--columns", "mtwv,eer")
    assert r"system & MTWV $\uparrow$ & 95\% interval & EER $\downarrow$ \\" in (folder / "paper.tex").read_text()
    lists(folder, "--paper", f"{folder}/paper.csv")
    rows = list(csv.DictReader((folder / "paper.csv").read_text().splitlines()))
    over = [f"{name}{end}" for name in ("mtwv", "atwv") for end in ("", "_low", "_high")]
    assert list(rows[0]) == ["system", *over, "cnxe_min", "cnxe"]
    system = score_of(folder, "two.csv")
    names = ("mtwv", "atwv", "cnxe_min", "cnxe")
    assert {key: float(rows[1][key]) for key in names} == {key: system[key] for key in names}


def score_of(folder: Path, name: str) -> dict[str, float]:
    return json.loads(said(score, "-s", f"{folder}/{name}", *task(folder), "--all-measures", "--json"))["measures"]


def test_the_table_of_a_paper_of_one_system(folder: Path) -> None:
    said(compare, f"{folder}/one.csv", *task(folder), "--paper", f"{folder}/paper.csv", "--columns", "atwv")
    (row,) = csv.DictReader((folder / "paper.csv").read_text().splitlines())
    assert float(row["atwv"]) == score_of(folder, "one.csv")["atwv"]
    said(score, "-s", f"{folder}/one.csv", *task(folder), "--per-term", f"{folder}/terms.csv")
    said(compare, f"mine={folder}/terms.csv", "--paper", f"{folder}/table.csv", "--columns", "mtwv,atwv")
    (of_table,) = csv.DictReader((folder / "table.csv").read_text().splitlines())
    assert (of_table["system"], of_table["mtwv"]) == ("mine", "")
    assert float(of_table["atwv"]) == pytest.approx(float(row["atwv"]), abs=1e-15)
    with raises(families.UNKNOWN_NAME, where="--columns", key="mtvw", meant="; did you mean mtwv?"):
        lists(folder, "--paper", f"{folder}/paper.csv", "--columns", "mtvw")
    others = ("--paper", f"{folder}/p.csv", "--html", f"{folder}/p.html", "--json")
    with raises(families.TOO_FEW, where="--html, --json"):
        said(compare, f"{folder}/one.csv", *task(folder), *others)


def test_min_cnxe_has_a_test_of_its_own(folder: Path) -> None:
    assert json.loads(lists(folder, "--json"))["cross_entropies"] is None
    found = json.loads(lists(folder, "--json", "--cnxe", "--csv", f"{folder}/csv"))["cross_entropies"]
    assert (found["queries"], found["draws"]) == (3, 200)
    alone = json.loads(said(score, "-s", f"{folder}/one.csv", *task(folder), "--json", "--all-measures"))
    assert found["systems"][0]["value"] == alone["measures"]["cnxe_min"]
    (pair,) = found["pairs"]
    assert pair["difference"] == pytest.approx(found["systems"][0]["value"] - found["systems"][1]["value"])
    assert pair["interval"]["low"] <= pair["difference"] <= pair["interval"]["high"]
    assert 0 < pair["p"] <= pair["p_holm"] <= 1
    rows = list(csv.DictReader((folder / "csv/cnxe_pairs.csv").open(newline="")))
    assert float(rows[0]["interval_low"]) == pair["interval"]["low"]
    said(score, "-s", f"{folder}/one.csv", *task(folder), "--per-term", f"{folder}/terms.csv")
    with raises(families.UNSUPPORTED, purpose="min Cnxe"):
        said(compare, f"{folder}/terms.csv", f"again={folder}/terms.csv", "--cnxe")


def test_per_term_tables_give_the_same(folder: Path) -> None:
    from swsdist.evaluation.evaluate import evaluate

    asked = read_task(ecf=f"{folder}/ecf.xml", terms=f"{folder}/terms.xml", references=f"{folder}/refs.csv")
    tables = {}
    for name in ("one", "two"):
        tables[name] = evaluate(asked, read_system(f"{folder}/{name}.csv")).overall.per_term
        write_csv(tables[name], PER_TERM, folder / f"{name}-terms.csv")
    names = (f"one={folder}/one-terms.csv", f"two={folder}/two-terms.csv")
    found = json.loads(said(compare, *names, "--json", "--resamples", "200"))
    assert [block["measure"] for block in found["measures"]] == ["ATWV"]
    assert found["measures"][0] == json.loads(lists(folder, "--json"))["measures"][0]
    python = compare_tables(tables, Settings(resamples=200))
    assert found["measures"][0]["pairs"][0]["t"]["p"] == python.pairs[0].t.p
    alone = json.loads(said(compare, *names, "--json", "--resamples", "9", "--by", "ntrue"))
    assert alone["breakdowns"][0]["groups"][0]["mtwv"] is None
    with raises(families.UNSUPPORTED, purpose="an interval over documents"):
        said(compare, *names, "--over-documents")
    with raises(families.UNSUPPORTED, purpose="the duration of terms"):
        said(compare, *names, "--by", "duration")


def test_breakdowns(folder: Path) -> None:
    (folder / "queries.csv").write_text("query_id,language\nT1,es\nT2,en\n")
    by = ("ntrue", "words", "language", "duration:0.5,0.8", "posterior_sum:unit", "Origin")
    options = [word for column in by for word in ("--by", column)]
    found = json.loads(lists(folder, "--json", "--queries", f"{folder}/queries.csv", *options))
    assert len(found["breakdowns"]) == 3 * len(by)
    whole = [row["mean"] for row in found["measures"][0]["systems"]]
    groups = {}
    for part in found["breakdowns"]:
        expected = whole[0] - whole[1] if part["second"] else whole[part["first"] == "two"]
        assert sum(group["total"] for group in part["groups"]) == pytest.approx(expected)
        groups[part["column"]] = [group["group"] for group in part["groups"]]
    assert groups == {
        "ntrue": ["1", "2"],
        "words": ["1", "2"],
        "language": ["en", "es", None],
        "duration": ["< 0.5", "[0.5, 0.8)", ">= 0.8"],
        "posterior_sum": ["[0, 1)", "[1, 2)"],
        "Origin": ["native", None],
    }


def test_rows_of_one_query_agree_or_are_averaged(folder: Path) -> None:
    path = folder / "queries.csv"
    path.write_text("query_id,duration,language\nT1,0.5,es\nT1,0.75,es\nT2,0.5,en\nT2,0.5,\n")
    found = json.loads(lists(folder, "--json", "--queries", str(path), "--by", "duration", "--by", "language"))
    assert [group["group"] for group in found["breakdowns"][0]["groups"]] == ["0.5", "0.625", None]
    assert [group["group"] for group in found["breakdowns"][3]["groups"]] == ["en", "es", None]
    path.write_text("query_id,language\nT1,es\nT1,en\n")
    with raises(families.CONFLICTING_ROWS, name="T1", column="language", value="es"):
        lists(folder, "--queries", str(path), "--by", "language")


def test_documents(folder: Path) -> None:
    (folder / "documents.csv").write_text("doc_id,seconds,city\ntalk1,2000,Rome\ntalk2,1600,Oslo\n")
    options = ("--documents", f"{folder}/documents.csv", "--by", "city", "--over-documents", "--interval", "bca")
    found = json.loads(lists(folder, "--json", *options))
    names = ("group", "terms", "ntrue", "ncorr", "nfa", "mtwv", "mtwv_threshold")
    oslo, rome = ([group[name] for name in names] for group in found["breakdowns"][0]["groups"])
    assert oslo == ["Oslo", 2, 2, 1, 0, pytest.approx(0.5), 0.8]
    assert rome == ["Rome", 2, 2, 2, 1, 1.0, 0.7]
    row = found["measures"][0]["systems"][0]
    assert row["over_documents"]["low"] <= row["mean"] <= row["over_documents"]["high"]
    assert json.loads(lists(folder, "--json", "--over-documents"))["measures"][0]["systems"][0]["over_documents"]


def test_documents_are_looked_at_where_trials_are_seconds(swsdist, place: Path, tmp_path: Path) -> None:
    run = shutil.copytree(place / "run", tmp_path / "run")
    swsdist("score", "config.yaml", "--set", f"run={run}", "--set", "score.trials=document", cwd=place)
    (tmp_path / "city.csv").write_text("doc_id,city\nd001,Brno\n")
    for more in (["--over-documents"], ["--by", "city", "--documents", f"{tmp_path}/city.csv"]):
        with raises(families.UNSUPPORTED) as caught:
            said(compare, f"a={run}", f"b={run}", *more)
        assert more[0] in (caught.value.remedy or "")


def test_conditions(folder: Path) -> None:
    names = [f"{name}{k}={folder}/{name}.csv" for k in (1, 2, 3) for name in ("one", "two")]
    found = json.loads(said(compare, *names, *task(folder), "--conditions", "kst,sto", "--resamples", "9", "--json"))
    assert (found["systems"], found["units"]) == (["kst", "sto"], "systems")
    assert found["measures"][0]["pairs"][0]["wins"] == 3
    with raises(families.NOT_COMPARABLE, systems=5, conditions=2):
        said(compare, *names[:5], *task(folder), "--conditions", "kst,sto")


def test_one_page(folder: Path) -> None:
    """Data, versions and digests of what was compared are in it; names of others stay text."""
    name = "<b>&'one'"
    html = ("--html", f"{folder}/ab.html", "--by", "ntrue", "--cnxe", "--resamples", "200")
    said(compare, f"{name}={folder}/one.csv", f"{folder}/two.csv", *task(folder), *html)
    text = (folder / "ab.html").read_text(encoding="utf-8")
    assert text.index("Differences of ATWV") < text.index("<h2>DET curves") < text.index("<h2>What was compared")
    assert not re.search(r"(?:src|href)=", text)
    assert name not in text
    plots = [part.partition("</svg>")[0] for part in text.split("<svg")[1:]]
    assert len(plots) == 5
    for plot in plots:
        ElementTree.fromstring(f"<svg{plot}</svg>")
    digest = hashlib.sha256((folder / "one.csv").read_bytes()).hexdigest()
    version = importlib.metadata.version("numpy")
    told = ("Differences of MTWV", "<h2>min Cnxe</h2>", "Breakdowns", f"numpy {version}", "3600 trials", digest[:16])
    assert [words for words in told if words not in text] == []
    about = json.loads(lists(folder, "--json"))["about"][0]
    assert (about["digest"], about["point"]["true"], about["detections"]) == (digest, 4, 4)


def test_numbers_for_other_programs(folder: Path) -> None:
    files = ("--csv", f"{folder}/csv", "--table", f"{folder}/ab.tex", "--det", f"{folder}/det.csv")
    found = json.loads(lists(folder, "--json", "--by", "ntrue", *files))
    tables = {path.stem: list(csv.DictReader(path.open(newline=""))) for path in (folder / "csv").iterdir()}
    assert set(tables) == {"about", "systems", "pairs", "queries", "breakdowns", "breakdowns_of_differences"}
    pair = found["measures"][0]["pairs"][0]
    assert all(float(tables["pairs"][0][name]) == pair[name] for name in ("difference", "wilcoxon_holm"))
    assert float(tables["systems"][1]["interval_low"]) == found["measures"][0]["systems"][1]["interval"]["low"]
    assert [row["query_id"] for row in tables["queries"][:3]] == ["T1", "T2", "T3"]
    parts = [float(row["part_of_difference"]) for row in tables["breakdowns_of_differences"]]
    assert sum(parts) == pytest.approx(pair["difference"])
    assert f"one $-$ two & {pair['difference']:+.4f}" in (folder / "ab.tex").read_text(encoding="utf-8")
    points = list(csv.DictReader((folder / "det.csv").open(newline="")))
    assert len({(row["system"], row["score"]) for row in points}) == len(points)
    assert {row["system"] for row in points} == {"one", "two"}
    lists(folder, "--det", f"{folder}/det.svg", "--forest", f"{folder}/forest.svg", "--table", f"{folder}/ab.csv")
    assert "one − two" in (folder / "forest.svg").read_text(encoding="utf-8")
    shown = list(csv.DictReader((folder / "ab-differences-of-atwv.csv").open(newline="")))
    assert shown[0]["difference"] == f"{pair['difference']:+.4f}"
    assert "MTWV" in (folder / "det.svg").read_text(encoding="utf-8")


def test_what_is_refused(folder: Path) -> None:
    (folder / "queries.csv").write_text("query_id,speaker\nT1,a\n")
    for more, code in (
        (["--by", "colour"], families.UNKNOWN_NAME),
        (["--by", "Origin:q3"], families.INVALID_VALUE),
        (["--queries", f"{folder}/gone.csv", "--by", "x"], families.MISSING_FILE),
        (["--queries", f"{folder}/queries.csv", "--by", "speeker"], families.UNKNOWN_NAME),
        (["--level", "2"], families.INVALID_VALUE),
        (["--resamples", "0"], families.TOO_FEW),
        (["--protocol", "sws1066"], families.UNKNOWN_NAME),
        (["--rttm", "ref.rttm"], families.CONFLICTING_OPTIONS),
    ):
        with raises(code) as caught:
            lists(folder, *more)
        assert caught.value.remedy


def test_systems_that_cannot_be_compared(folder: Path) -> None:
    one, two, lists = f"{folder}/one.csv", f"{folder}/two.csv", task(folder)
    for code, arguments in (
        (score_codes.TOO_FEW_SYSTEMS, (one, *lists)),
        (score_codes.DUPLICATE_SYSTEM_NAME, (one, one, *lists)),
        (families.MISSING_FILE, (str(folder), one)),
        (families.WRONG_KIND, (one, two)),
    ):
        with raises(code):
            said(compare, *arguments)
    (folder / "undecided.csv").write_text("query_id,doc_id,start,end,score\nT1,talk1,10,10.5,0.5\n")
    found = json.loads(said(compare, one, f"{folder}/undecided.csv", *lists, "--json"))
    assert [block["measure"] for block in found["measures"]] == ["MTWV"]


def test_odd_inputs_are_told_or_refused(folder: Path) -> None:
    with (folder / "two.csv").open("a", newline="") as file:
        csv.writer(file).writerow(["T9", "talk1", 1, 2, 0.5, "true"])
    arguments = [f"{folder}/one.csv", f"{folder}/two.csv", *task(folder), "--json"]
    told = json.loads(CliRunner().invoke(compare, arguments, standalone_mode=False).stdout)
    assert "not of the term list" in told["notices"][0]
    with raises(families.UNLISTED):
        lists(folder, "--strict")


def test_runs(swsdist, place: Path, tmp_path: Path) -> None:
    oracle = shutil.copytree(place / "run", tmp_path / "oracle")
    swsdist("run", "config.yaml", "--set", f"run={oracle}", "--set", "calibrate.fit=oracle", cwd=place)
    found = json.loads(swsdist("compare", f"crossfit={place}/run", oracle, "--over-documents", "--json").out)
    atwv, mtwv = found["measures"]
    reports = [json.loads((folder / "report.json").read_text()) for folder in (place / "run", oracle)]
    for row, report in zip(atwv["systems"], reports, strict=True):
        assert row["mean"] == pytest.approx(report["measures"]["atwv"], abs=1e-12)
        assert mtwv["systems"][0]["mean"] == pytest.approx(report["measures"]["mtwv"], abs=1e-12)
    first = mtwv["systems"][0]
    assert first["interval"]["low"] == reports[0]["mtwv_interval"][0]
    assert first["over_documents"]["low"] <= first["mean"]
    assert (mtwv["pairs"][0]["difference"], mtwv["pairs"][0]["wilcoxon"]["p"]) == (0, 1.0)
    run, other = found["about"]
    assert (run["digest"], run["made"]) == (reports[0]["digest"], reports[0]["created"])
    assert (run["point"]["documents"], run["point"]["queries"]) == (8, 3)
    assert (run["settings"]["calibrate.fit"], other["settings"]["calibrate.fit"]) == ("crossfit", "oracle")
    assert "[0, " in swsdist("compare", f"a={place / 'run'}", f"b={place / 'run'}", "--by", "duration:0,1").out


def test_a_run_beside_a_list_that_is_not_scored(swsdist, place: Path) -> None:
    listed = f"a={place}/run/exports/detections.csv"
    told = swsdist("compare", place / "run", listed, cwd=place, code=2).err
    options = told.partition("give as run was: ")[2].partition(";")[0].split()
    assert options[::2] == ["--references", "--seconds", "--protocol"]
    found = json.loads(swsdist("compare", place / "run", listed, *options, "--json", "--resamples", "9", cwd=place).out)
    assert found["measures"][0]["pairs"][0]["difference"] == 0


def test_every_output_begins_with_the_protocol(swsdist, place: Path, first_run, tmp_path: Path) -> None:
    listed, run, rules = "run/exports/detections.csv", "a=run b=run", "protocol sws2013: beta 66.66, tolerance 0.5 s"
    lists, task = f"a={listed} b={listed}", f"--references {place}/corpus/refs.csv --seconds 60"
    told = {
        f"score -s {listed} {task}": f"{rules}, 60.0 s of audio, 60 trials a query",
        f"fuse {lists} {task} -o {tmp_path}/fused.csv": f"{rules}, 60.0 s of audio, 60 trials a query",
        f"calibrate -s {listed} {task} --method kst --out {tmp_path}/k.csv": f"{rules}, 60.0 s of audio, 60 trials a query",
        f"calibrate -s {listed} --method none --out {tmp_path}/same.csv": rules,
        f"fuse {lists} -o {tmp_path}/mean.csv": rules,
        f"sweep {tmp_path}/sweep.yaml": rules,
        f"compare {run} --resamples 9": f"{rules}, 52.2 s of audio, 52 trials a query",
        f"score -s {listed} {task} --table": "+----",  # STDEval's, to the blank
        f"compare a=run b={listed} {task[:-2]}52 --protocol sws2013": "a: protocol sws2013",
    }
    points = {"grid": {"calibrate.fit": ["crossfit", "oracle"]}}
    swept = shutil.copytree(place / "run", tmp_path / "swept")
    sweep = {"config": f"{place}/config.yaml", "run": str(swept), "points": points, "measures": ["atwv"]}
    (tmp_path / "sweep.yaml").write_text(json.dumps(sweep))
    for typed, first in told.items():
        shown = swsdist(*typed.split(), cwd=place).out.splitlines()[0]
        assert shown == first or (shown.startswith(first) and first[0] != "p"), typed
    first, *_ = first_run.out.splitlines()
    assert " ".join(first.split()) == "protocol sws2013 beta 66.66, tolerance 0.5 s, 52 trials a query"


def test_resources(place: Path, tmp_path: Path) -> None:
    """The source's example by hand, and figures of a run."""
    numbers = {"--indexing-cpu": 224 * 3600, "--searching-cpu": 48 * 3600, "--audio": 300 * 3600, "--queries": 900}
    memory = ["--indexing-gb", "1", "--indexing-gb", "4", "--searching-gb", "2"]
    found = json.loads(said(resources, *(str(word) for pair in numbers.items() for word in pair), *memory, "--json"))
    assert found["isf"] == pytest.approx(0.7467, abs=5e-5)
    assert found["ssf_hours"] == pytest.approx(0.64)
    assert (found["pmu_index_gb"], found["pl_lambda"]) == (4.0, 0.1)
    report = json.loads((place / "run" / "report.json").read_text())
    found = json.loads(said(resources, str(place / "run"), "--json"))
    more = ("--indexing-cpu", "9", "--audio", "90")
    for name in ("isf", "ssf", "ssf_hours", "pmu_index_gb", "pmu_search_gb", "pl", "pl_hours"):
        assert found[name] == report[name]
    said(resources, *more, "--table", f"{tmp_path}/r.md")
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "| ISF | CPU s per s of audio | 0.1 |" in text
    assert text.count("–") >= 5  # what is not known
    other = json.loads(said(resources, str(place / "run"), "--lambda", "1", "--indexing-gb", "3", "--json"))
    assert other["pl"] == pytest.approx(3 * report["isf"])
    with raises(families.EMPTY_INPUT):
        said(resources)
    with raises(families.MISSING_FILE):
        said(resources, str(tmp_path))
    for words in (["--audio", "-1"], ["--audio", "1", "--lambda", "2"]):
        with pytest.raises(UserError):
            said(resources, *words)
