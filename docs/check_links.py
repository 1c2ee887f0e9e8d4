"""Checks the built site: every link inside it must resolve, and no page may load anything from the network.

python docs/check_links.py docs/_build/html

Prints what is wrong, one line each, and ends with status 1 if anything is. Links to other sites are checked for their
form alone: nothing is fetched.
"""

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src", "embed": "src",
    "object": "data", "image": "href", "use": "href",
}  # fmt: skip
LOADED_BY_LINK = {
    "stylesheet",
    "icon",
    "preload",
    "prefetch",
    "modulepreload",
    "preconnect",
    "dns-prefetch",
    "manifest",
}


@dataclass
class Page(HTMLParser):
    """What a page refers to, what it loads, and what in it can be referred to."""

    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def __hash__(self) -> int:
        return id(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and ("href" in found or "xlink:href" in found):
            self.links.append(found.get("href") or found.get("xlink:href", ""))
        elif tag == "link" and "href" in found:
            loads = LOADED_BY_LINK & set(found.get("rel", "").split())
            (self.loaded if loads else self.links).append(found["href"])
        elif tag in LOADED and LOADED[tag] in found:
            self.loaded.append(found[LOADED[tag]])
        self.loaded += [part.split()[0] for part in found.get("srcset", "").split(",") if part.strip()]


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def problems(root: Path) -> list[str]:
    """One line for everything that is wrong with the site in this folder."""
    pages = {path.resolve(): read(path) for path in sorted(root.rglob("*.html"))}
    if not pages:
        return [f"{root} has no pages: build the site first, with make docs."]
    wrong = []
    for path, page in pages.items():
        name = path.relative_to(root.resolve()).as_posix()
        for target in dict.fromkeys(page.loaded):
            if target.startswith("data:"):
                continue
            if urlsplit(target).scheme or target.startswith("//"):
                wrong.append(f"{name}: loads {target} from the network")
            else:
                wrong += unresolved(name, path, target, pages, root)
        for target in dict.fromkeys(page.links):
            parts = urlsplit(target)
            if parts.scheme in ("http", "https"):
                if "." not in parts.netloc or " " in target:
                    wrong.append(f"{name}: {target} is no address of a site")
            elif parts.scheme == "mailto":
                continue
            elif parts.scheme or target.startswith("//"):
                wrong.append(f"{name}: {target} is neither a page here nor an http(s) address")
            else:
                wrong += unresolved(name, path, target, pages, root)
    return wrong + loaded_by_styles(root)


def unresolved(name: str, path: Path, target: str, pages: dict[Path, Page], root: Path) -> list[str]:
    """Nothing, or what is wrong with a link from one page to a file of the site, and to a place in it."""
    parts = urlsplit(target)
    file, anchor = unquote(parts.path), unquote(parts.fragment)
    goal = (path.parent / file).resolve() if file else path
    if goal.is_dir():
        goal = goal / "index.html"
    if not goal.is_relative_to(root.resolve()):
        return [f"{name}: {target} leads out of the site"]
    if not goal.exists():
        return [f"{name}: {target} is not there"]
    if anchor and goal in pages and anchor not in pages[goal].anchors and anchor != "top":
        return [f"{name}: {target}: the page has no place of this name"]
    return []


def loaded_by_styles(root: Path) -> list[str]:
    """Style sheets that would fetch fonts, pictures or other sheets from the network."""
    wrong = []
    for path in sorted(root.rglob("*.css")):
        text = path.read_text(encoding="utf-8").replace('"', "").replace("'", "")
        for start in ("url(http", "url(//", "@import http", "@import //"):
            if start in text:
                wrong.append(f"{path.relative_to(root).as_posix()}: loads something from the network, {start}…")
    return wrong


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit("Name the folder of the built site: python docs/check_links.py docs/_build/html")
    wrong = problems(Path(sys.argv[1]))
    for line in wrong:
        print(line)
    if wrong:
        raise SystemExit(f"{len(wrong)} links or loaded files are wrong.")
    print("Every link inside the site resolves, and nothing is loaded from the network.")


if __name__ == "__main__":
    main()
