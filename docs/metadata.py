"""Write CITATION.cff, codemeta.json and .zenodo.json: `make metadata`.

Sources are the section `project` of pyproject.toml and the papers of repro/batch/papers.csv.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import yaml

from repro.batch.papers import Paper, papers

ROOT = Path(__file__).resolve().parents[1]
MESSAGE = "If you use this package, please cite it and the papers whose figures you reproduce."


def project() -> dict[str, Any]:
    """Section `project` of pyproject.toml."""
    section = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return dict(section)


def title(about: dict[str, Any]) -> str:
    """Title of the software."""
    return f"repro: {about['description'].rstrip('.')}"


def code_licence(about: dict[str, Any]) -> str:
    """Licence of the code, the first of the licence expression; the others are of tables."""
    return str(about["license"].split(" AND ")[0])


def reference(paper: Paper) -> dict[str, Any]:
    """Paper as a reference of CITATION.cff."""
    venue = "collection-title" if paper.type == "conference-paper" else "journal"
    people = [{"family-names": family, "given-names": given} for family, given in paper.people]
    entry: dict[str, Any] = {"type": paper.type, "title": paper.title, "authors": people}
    entry[venue] = paper.venue
    for name in ("volume", "issue", "start", "end", "year"):
        if value := getattr(paper, name):
            entry[name] = int(value)
    for name in ("doi", "url"):
        if value := getattr(paper, name):
            entry[name] = value
    return entry


def citation() -> str:
    """Content of CITATION.cff."""
    about = project()
    content = {
        "cff-version": "1.2.0",
        "title": title(about),
        "message": MESSAGE,
        "type": "software",
        "version": about["version"],
        "license": code_licence(about),
        "authors": [{"name": author["name"]} for author in about["authors"]],
        "abstract": about["description"],
        "keywords": about["keywords"],
        "references": [reference(paper) for paper in papers()],
    }
    return str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100))


def article(paper: Paper) -> dict[str, Any]:
    """Paper as an article of schema.org."""
    people = [
        {"@type": "Person", "familyName": family, "givenName": given}
        for family, given in paper.people
    ]
    return {
        "@type": "ScholarlyArticle",
        "@id": paper.address,
        "name": paper.title,
        "author": people,
        "datePublished": paper.year,
        "isPartOf": {"@type": "CreativeWork", "name": paper.venue},
    }


def codemeta() -> str:
    """Content of codemeta.json."""
    about = project()
    content = {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": about["name"],
        "alternateName": "repro",
        "description": about["description"],
        "version": about["version"],
        "license": f"https://spdx.org/licenses/{code_licence(about)}",
        "author": [
            {"@type": "Organization", "name": author["name"]} for author in about["authors"]
        ],
        "keywords": about["keywords"],
        "programmingLanguage": "Python",
        "runtimePlatform": f"Python {about['requires-python']}",
        "softwareRequirements": about["dependencies"],
        "citation": [article(paper) for paper in papers()],
    }
    return _json(content)


def zenodo() -> str:
    """Content of .zenodo.json."""
    about = project()
    related = [
        {"identifier": paper.doi or paper.url, "relation": "references"} for paper in papers()
    ]
    content = {
        "title": title(about),
        "description": about["description"],
        "upload_type": "software",
        "version": about["version"],
        "license": code_licence(about),
        "creators": [{"name": author["name"]} for author in about["authors"]],
        "keywords": about["keywords"],
        "related_identifiers": related,
    }
    return _json(content)


def _json(content: dict[str, Any]) -> str:
    """Content as a JSON file."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


#: File -> its content.
FILES = {"CITATION.cff": citation, "codemeta.json": codemeta, ".zenodo.json": zenodo}


def main() -> int:
    """Write the three files."""
    for name, content in FILES.items():
        (ROOT / name).write_text(content())
        print(f"{name} written")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
