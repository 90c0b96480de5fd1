"""MkDocs hooks: add pages from the repository's root, and reject pages that load remote files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

HOME = Path(__file__).resolve().parents[1]
ABOVE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
SCRIPTS = ("mermaid.min.js", "iframe-worker.js")

# Matches HTML tags and CSS addresses that make a browser load something from another host.
_LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?\s(?:src|data)=[\"']?(?:https?:)?//"
    r"|<link\b(?=[^>]*rel=[\"']?(?:stylesheet|preload|preconnect|icon|modulepreload))"
    r"[^>]*?href=[\"']?(?:https?:)?//"
    r"|@import\s+[\"']?(?:url\()?[\"']?(?:https?:)?//|url\([\"']?(?:https?:)?//"
)


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages of `ABOVE`, and two scripts from build/, for diagrams and for search."""
    for name in ABOVE:
        files.append(File.generated(config, name, abs_src_path=str(HOME / name)))
    for name in SCRIPTS:
        script = HOME / "build" / "docs-venv" / name
        files.append(File.generated(config, name, abs_src_path=str(script)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrites links between docs/ and the pages of `ABOVE`, which the site puts in one folder."""
    if page.file.src_uri in ABOVE:
        markdown = re.sub(r"\]\(docs/", "](", markdown)
        markdown = re.sub(r"\]\(README\.md[^)]*\)", "](index.md)", markdown)
    depth = page.file.src_uri.count("/")
    up = "../" * (depth + 1)
    return re.sub(rf"\]\({re.escape(up)}([A-Z]+\.md)", "](" + "../" * depth + r"\1", markdown)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Raises PluginError if a page would load something from another host."""
    if found := _LOADED.search(output):
        raise PluginError(f"{page.file.src_uri} loads from another host: {found[0]}")
    return output


def on_post_build(config: Any, **_: Any) -> None:
    """Raises PluginError if a style sheet would load something from another host."""
    for sheet in Path(config.site_dir).rglob("*.css"):
        if found := _LOADED.search(sheet.read_text(encoding="utf-8")):
            raise PluginError(f"{sheet.name} loads from another host: {found[0]}")
