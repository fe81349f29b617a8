"""Everything for a colleague in one folder: the glossary, the sound of its examples, and the store that it is searched in.

words/       the project, with all changes; no tokens and passwords
store/       the current state of the store: it is searched without the recordings
README.txt   what to do with it

`swsdist serve FOLDER` opens it.
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from pathlib import Path

from swsdist.core.codes import glossary as codes
from swsdist.glossary.project import Project
from swsdist.io.filesystem import Folder
from swsdist.store.manifest import NAME, WORDS, load, require, state_name
from swsdist.store.reading import Store

#: Folders in a pack.
PROJECT, STORE = "words", "store"

_README = """\
A glossary with the sound of its examples, to be opened with swsdist.

    swsdist serve "{name}"

Words are heard and searched without the recordings. To hear whole recordings, copy them to this computer. The page asks for
their folder when it misses one.
"""


def pack(project: Project, out: Path, store: Store) -> tuple[int, int]:
    """Write a pack; gives the numbers of its files and bytes.

    Args:
        project: the glossary; the sounds of its examples are kept in it, too.
        out: a new folder, or a file `.zip` to be made.
        store: that it is searched in.

    Raises:
        UserError: something is there already.
    """
    if out.exists() and (out.is_file() or any(out.iterdir())):
        raise codes.PACK_EXISTS(where=str(out))
    project.keep_sounds(store)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".swsdist-") as place:
        folder = Path(place) / (out.stem if out.suffix.lower() == ".zip" else out.name)
        project.copy_to(folder / PROJECT)
        _copy(store.folder, folder / STORE)
        # Where the store lies from here; its path says nothing elsewhere.
        Project.open(folder / PROJECT, store=str(folder / STORE)).close()
        (folder / "README.txt").write_text(_README.format(name=folder.name), encoding="utf-8")
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        if out.suffix.lower() == ".zip":
            with zipfile.ZipFile(Path(place) / out.name, "w") as packed:  # sounds and frames are compressed
                for path in files:
                    packed.write(path, path.relative_to(place))
            (Path(place) / out.name).replace(out)
        else:
            if out.exists():
                out.rmdir()
            folder.replace(out)
    return len(files), size


def _copy(store: Folder, out: Path) -> None:
    """Copy the current state of a store, and of that of words in it."""
    manifest = require(store)
    shards = (file.name for shard in manifest.shards for file in shard.files.values())
    for name in (NAME, state_name(manifest.fingerprint), *manifest.tables, *shards):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        with store.open(name) as source, (out / name).open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
    inside = Folder(store.path(WORDS), store.storage)
    if load(inside) is not None:
        _copy(inside, out / WORDS)
