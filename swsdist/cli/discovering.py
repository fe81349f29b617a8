"""The command that scores term discovery."""

from __future__ import annotations

import click

from swsdist.cli.options import FILE, FILE_OR_FOLDER, warn


@click.command("score-discovery")
@click.argument("fragments", metavar="CLASSES", type=FILE)
@click.option("--phones", required=True, type=FILE_OR_FOLDER, help="Gold phones: ZeroSpeech, CTM, TextGrid, ELAN.")
@click.option("--words", type=FILE_OR_FOLDER, help="Gold words, for type, token and boundary; formats as --phones.")
@click.option("--talkers", type=FILE, help="Lines DOC TALKER: adds within, across, and a fold per talker.")
@click.option("--folds", metavar="FILE|N", help="Folds: a file of intervals, or N parts of equal time of speech.")
@click.option(
    "--mode", type=click.Choice(["seed", "tdev2", "tde1"]), default="seed", show_default=True, help="Whose numbers."
)
@click.option("--split", type=FILE, help="Stretches of speech, for tde1.")
@click.option("--gold-classes", type=FILE, help="Classes of equal phone strings, for tde1.")
@click.option("--pairs", "given", flag_value="pairs", help="CLASSES is a list of pairs: DOC ON OFF DOC ON OFF.")
@click.option("--parse", "given", flag_value="parse", help="CLASSES is a parse: DOC ON OFF.")
@click.option("--phone-tier", "phone_tiers", multiple=True, metavar="NAME", help="Tier of phones; repeatable.")
@click.option("--word-tier", "word_tiers", multiple=True, metavar="NAME", help="Tier of words; repeatable.")
@click.option("--strict", is_flag=True, help="Warnings end with exit code 4.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON with all counts.")
def score_discovery(
    fragments: str,
    phones: str,
    words: str | None,
    talkers: str | None,
    folds: str | None,
    mode: str,
    split: str | None,
    gold_classes: str | None,
    given: str | None,
    phone_tiers: tuple[str, ...],
    word_tiers: tuple[str, ...],
    strict: bool,
    as_json: bool,
) -> int:
    """Score CLASSES of fragments of speech against phones and words.

    \b
    swsdist score-discovery disc.class --phones gold.phn --words gold.wrd
    """
    import json

    from swsdist.discovery.evaluate import Files, score_files, table
    from swsdist.io.notices import Notices

    parts = int(folds) if folds and folds.isascii() and folds.isdigit() else None
    given_folds = {"given": folds} if folds and parts is None else {}
    files = Files(fragments, phones, words, talkers, given_folds, split, gold_classes, phone_tiers, word_tiers)
    notices = Notices(strict)
    result = score_files(files, mode, notices, given=given or "classes", parts=parts)  # type: ignore[arg-type]
    print(json.dumps(result, indent=1, allow_nan=False) if as_json else "\n".join(table(result)))
    warn(notices)
    return 0
