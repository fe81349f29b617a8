"""Commands for glossaries: projects of words and judged places."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from swsdist.cli.options import FOLDER, OutputCommand, write_data
from swsdist.core.codes import families
from swsdist.core.fingerprint import plain

if TYPE_CHECKING:
    from swsdist.glossary.project import Project
    from swsdist.io.notices import Notices
    from swsdist.store.reading import Store

_PROJECT = click.argument("project", metavar="PROJECT", type=click.Path(exists=True))
_STORE = click.option(
    "--store", "store_folder", metavar="STORE", help="Store of the recordings. [default: the project's]"
)


@click.group()
def glossary() -> None:
    """List, export and import the words of a glossary: PROJECT is its folder."""


@glossary.command("list")
@_PROJECT
@click.argument("text", required=False, default="")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all tokens.")
def list_entries(project: str, text: str, as_json: bool) -> None:
    """List entries, those with TEXT in form, gloss, variants or note, with numbers of places judged and own sounds."""
    with opened_project(project) as opened:
        entries = opened.entries(text)
        if as_json:
            write_data()
            rows = [entry._asdict() | {"tokens": plain(opened.tokens(entry.entry_id))} for entry in entries]
            print(json.dumps(rows, indent=1, ensure_ascii=False))
            return
    write_data()
    print("form\tgloss\tyes\tno\tunsure\tsounds\texamples")
    for entry in entries:
        print(f"{entry.form}\t{entry.gloss}\t{entry.yes}\t{entry.no}\t{entry.unsure}\t{entry.sounds}\t{entry.examples}")


@glossary.command("export", cls=OutputCommand)
@_PROJECT
@click.argument("kind", metavar="KIND")
@click.option("--out", "folder", required=True, type=FOLDER, help="Folder to write to.")
@_STORE
@click.option("--entry", "forms", multiple=True, metavar="FORM", help="Only this entry; repeatable.")
@click.option("--into", is_flag=True, help="eaf: add the tiers to a copy of the .eaf beside each recording.")
@click.option(
    "--template",
    type=click.Path(exists=True, dir_okay=False),
    help="eaf: .etf or .eaf with the tiers and types to use.",
)
@click.option(
    "--language", default="und", metavar="TAG", show_default=True, help="lift: language of the words (BCP 47)."
)
@click.option("--gloss-language", default="en", metavar="TAG", show_default=True, help="lift: language of the glosses.")
def export(
    project: str,
    kind: str,
    folder: str,
    store_folder: str | None,
    forms: tuple[str, ...],
    into: bool,
    template: str | None,
    language: str,
    gloss_language: str,
) -> None:
    """Write the glossary for other programs.

    \b
    eaf       ELAN, a file for each recording, which it links
    textgrid  Praat
    labels    Audacity
    lift      FLEx and other dictionary programs, with the sound of examples
    csv       tables of entries, tokens and corrections
    clips     WAV of places judged yes
    page      a page to print
    tables    queries and judgements that `swsdist run` evaluates
    project   everything, with all changes: `swsdist glossary import` reads it
    """
    from swsdist.cli.options import warn
    from swsdist.core.text import suggestion
    from swsdist.glossary.exports import Languages, write_export
    from swsdist.io.notices import Notices

    notices = Notices()
    with opened_project(project) as opened:
        ids = {entry.form: entry.entry_id for entry in opened.entries()}
        for form in forms:
            if form not in ids:
                raise families.UNKNOWN_NAME(
                    "the glossary has no entry {form!r}{close}",
                    "`swsdist glossary list` lists them",
                    where=project,
                    form=form,
                    close=suggestion(form, ids),
                )
        chosen = [ids[form] for form in forms] or None
        store = _store_or_none(opened, store_folder, notices)
        files = write_export(
            opened,
            kind,
            Path(folder),
            store=store,
            entry_ids=chosen,
            into=into,
            template=None if template is None else Path(template),
            languages=Languages(language, gloss_language),
            notices=notices,
        )
    warn(notices)
    print(f"{len(files)} file{'' if len(files) == 1 else 's'} in {folder}", file=sys.stderr)


@glossary.command("pack", cls=OutputCommand)
@_PROJECT
@click.argument("out", metavar="FOLDER|FILE.zip", type=click.Path())
@_STORE
def pack_for_others(project: str, out: str, store_folder: str | None) -> None:
    """Pack everything for a colleague: the words, the sound of their examples, and the store, in one folder.

    `swsdist serve FOLDER` opens it, on any machine, also without the recordings.
    """
    from swsdist.glossary.exports import pack

    with opened_project(project) as opened:
        if (store := _store(opened, store_folder)) is None:
            raise families.MISSING_INPUT(
                "the glossary is of no store, which a colleague needs",
                "name it: `--store FOLDER`; or write the words alone: `swsdist glossary export PROJECT project`",
                where=project,
            )
        files, size = pack(opened, Path(out), store)
    print(f"{files} files, {size / 1e6:.1f} MB, in {out}", file=sys.stderr)


@glossary.command("import")
@click.argument("project", metavar="PROJECT", type=click.Path())
@click.argument("files", metavar="FILE|FOLDER...", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--person", required=True, help="Who imports.")
@_STORE
@click.option("--tier", "tiers", multiple=True, metavar="NAME", help="Only this tier; repeatable.")
@click.option("--examples", is_flag=True, help="Search by what is imported, too.")
@click.option("--document", metavar="NAME[#CHANNEL]", help="Recording that the annotations are of.")
def import_files(
    project: str,
    files: tuple[str, ...],
    person: str,
    store_folder: str | None,
    tiers: tuple[str, ...],
    examples: bool,
    document: str | None,
) -> None:
    """Import annotations into PROJECT, which is made if missing.

    FILE is of ELAN or Praat, a table of annotations, or a glossary's `glossary.json`; a FOLDER brings all annotations in it.
    The text of an annotation is the form of its entry; one that ends in ? is unsure.
    """
    from swsdist.glossary.importing import import_file, import_files
    from swsdist.glossary.project import Project
    from swsdist.lattices.collection import files_in

    where = None
    if document is not None:
        name, _, channel = document.rpartition("#")
        where = (name, int(channel)) if name and channel.isdecimal() and int(channel) else (document, 1)
    with Project.open(project) as opened:
        store = _store(opened, store_folder)
        for file in files:
            if not Path(file).is_dir():
                counts = import_file(
                    opened, file, person=person, store=store, tiers=tiers or None, examples=examples, document=where
                )
            elif store is None or where is not None:
                raise families.UNSUPPORTED(
                    "files of a folder are taken in as annotations of the recordings beside them",
                    "name the store of the recordings (--store STORE), and leave --document out",
                    where=file,
                )
            else:
                counts = import_files(
                    opened,
                    files_in(file, {}),
                    where=file,
                    person=person,
                    store=store,
                    tiers=tiers or None,
                    examples=examples,
                )
            counted = (
                f"{counts.added} added, {counts.changed} changed, {counts.skipped} known; {counts.entries} new entries"
            )
            print(f"{file}: {counted}")
            if counts.unusable:
                print(f"rejected: {counts.unusable} annotations; the first: {counts.first}", file=sys.stderr)


def opened_project(project: str) -> Project:
    """A project that there is: this folder, or the one of words beside it."""
    from swsdist.glossary.project import Project
    from swsdist.io.project_file import project_file, words_beside

    if (file := project_file(project) or project_file(words_beside(project))) is None:
        raise families.MISSING_FILE(
            "there is no glossary here", "name the folder of a glossary, which has a project.sqlite", where=project
        )
    return Project.open(file.parent)


def _store_or_none(project: Project, folder: str | None, notices: Notices) -> Store | None:
    """As `_store`; that of the project may be gone."""
    from swsdist.core.codes import server as codes
    from swsdist.core.errors import StoreError

    try:
        return _store(project, folder)
    except StoreError as error:
        if folder is not None:
            raise
        notices.add(codes.STORE_GONE, where=error.where or str(project.folder), reason=error.message)
        return None


def _store(project: Project, folder: str | None) -> Store | None:
    """The named store, or the project's; None: no store is known."""
    from swsdist import api

    folder = project.store if folder is None else folder
    return None if folder is None else api.open_store(folder)
