"""The command that serves a page to search an archive by text or voice."""

from __future__ import annotations

from pathlib import Path

import click

from swsdist.cli.options import ANY_FOLDER, FOLDER_CONFIG, MODELS, Integer, allow_commands


@click.command()
@click.argument("target", type=ANY_FOLDER, metavar="STORE|RUN|FOLDER")
@click.option(
    "--project", metavar="FOLDER", help="Folder of the words. [default: NAME-words beside NAME or NAME-swsdist]"
)
@click.option("--port", default=8765, type=Integer(0, 65535), show_default=True, help="0: any that is free.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--host-name", "names", multiple=True, metavar="NAME", help="Name by which browsers ask this server; repeatable."
)
@click.option("--public", is_flag=True, help="Let others in: by the password in SWSDIST_PASSWORD, or by --user-header.")
@click.option("--user-header", metavar="NAME", help="Header in which a proxy names the person.")
@click.option(
    "--proxy", "proxies", multiple=True, metavar="ADDRESS", help="Address of that proxy. [default: this host]"
)
@click.option("--open/--no-open", "browser", default=None, help="Open the page in a browser. [default: on a desktop]")
@MODELS
@click.option("--watch", is_flag=True, help="Of a FOLDER: look for new recordings, and search saved words in them.")
@click.option("--texts", metavar="STORE", help="Store of words elsewhere. [default: that in STORE]")
@click.option(
    "--speak",
    "voices",
    multiple=True,
    metavar="SYNTHESISER:VOICE",
    help="Search typed words by example, spoken by this voice (espeak-ng:en-us); repeatable. [default: as before]",
)
@click.option("--classes", metavar="RUN", help="Run of `discover` in the same recordings. [default: as before]")
@click.option("--address", metavar="ADDRESS", help="Search on this Ray cluster.")
@click.option("--set", "sets", multiple=True, metavar="search.KEY=VALUE", help="Set a key of the search; repeatable.")
@allow_commands
def serve(
    target: str,
    project: str | None,
    port: int,
    host: str,
    names: tuple[str, ...],
    public: bool,
    user_header: str | None,
    proxies: tuple[str, ...],
    browser: bool | None,
    models: tuple[str, ...],
    watch: bool,
    texts: str | None,
    voices: tuple[str, ...],
    classes: str | None,
    address: str | None,
    sets: tuple[str, ...],
) -> int:
    """Serve a page in the browser: search STORE by text or voice, judge what is found, and collect words.

    A FOLDER of recordings is indexed, and what is done can be searched already; one of `glossary pack` is opened as it is. The
    words, with all judgements, are kept in the project folder. Only who has the printed address may enter; it stays the same.
    On other hosts, see --public.

    \b
    swsdist serve archive/store
    swsdist serve recordings --watch
    swsdist serve recordings --model openai/whisper-base --model Systran/faster-whisper-base
    SWSDIST_PASSWORD=... swsdist serve archive --public --host 0.0.0.0 --host-name archive.example.org
    """
    from swsdist.cli.models import frames
    from swsdist.cli.run_folder import runs_of
    from swsdist.cli.running import demand_same, run_name
    from swsdist.config.loader import section_values
    from swsdist.registry.registries import METHODS
    from swsdist.server.running import Entrance, serve_until_ended, settings_for
    from swsdist.store.manifest import words_store

    options = section_values(list(sets), "search")
    runs = {
        run: METHODS[config.search.method].queries
        for run, config in runs_of(target).items()
        if config.chain != "discover"
    }
    # Runs of sound with other names are somebody's research: nothing is indexed into them.
    own = run_name(target, FOLDER_CONFIG)
    indexed = [run for run, kind in runs.items() if kind == "spoken" and Path(run).name == own]
    words = [run for run, kind in runs.items() if kind == "text"]
    if texts is None and len(words) == 1 and not any(words_store(f"{run}/store") for run in indexed):
        texts = words[0]
    settings = settings_for(
        target,
        project,
        run=indexed[0] if len(indexed) == 1 else None,
        watch=watch,
        texts=texts,
        speak=voices,
        classes=classes,
        models=models,
        address=address,
        options=options,
    )
    if settings.source is not None:
        demand_same(settings.target, settings.source)
    if models and settings.source is not None:
        frames(models, settings.target, settings.source, True)  # reports mistakes
    entrance = Entrance(host, port, names, public, user_header, proxies, browser)
    serve_until_ended(settings, entrance, lambda text: click.echo(text))
    return 0
