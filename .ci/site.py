"""What the site has beyond docs/: the README as its first page, and files that pages link to."""

from __future__ import annotations

from pathlib import Path

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]


def on_files(files: Files, config) -> Files:
    """Add the README as `index.md`, and the example configurations under `configs/`."""
    text = (ROOT / "README.md").read_text().replace("](docs/", "](")
    files.append(File.generated(config, "index.md", content=text))
    for path in sorted((ROOT / "configs").iterdir()):
        if path.is_file():
            files.append(File.generated(config, f"configs/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Links that lead out of docs/ in the repository lead to the copies on the site."""
    return markdown.replace("](../configs/", "](configs/")
