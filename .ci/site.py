"""A hook of mkdocs: links that lead out of docs/ go to the repository, or become plain text if mkdocs.yml has no `repo_url`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((\.\./[^)\s]*)\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """The page's Markdown with such links replaced."""
    docs = Path(config["docs_dir"]).resolve()
    here = Path(page.file.abs_src_path).parent

    def replaced(link: re.Match[str]) -> str:
        text, target = link.groups()
        place = (here / target.partition("#")[0]).resolve()
        if place.is_relative_to(docs):
            return link[0]
        if not config["repo_url"]:
            return text
        return f"[{text}]({config['repo_url'].rstrip('/')}/blob/main/{place.relative_to(docs.parent).as_posix()})"

    return _LINK.sub(replaced, markdown)
