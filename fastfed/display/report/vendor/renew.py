"""Renew the scripts that draw a report: Vega, Vega-Lite and Vega-Embed, from npm.

    python fastfed/display/report/vendor/renew.py                  the newest versions
    python fastfed/display/report/vendor/renew.py vega@6.4.0 ...    these versions

Writes the minified scripts beside this file, ``versions.json`` with the version and the SHA-256 of
each, and ``LICENSES.txt`` with the licence of every package that went into them. A report holds
copies of the scripts, so nothing is ever loaded from a network.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SCRIPTS = {
    "vega": "build/vega.min.js",
    "vega-lite": "build/vega-lite.min.js",
    "vega-embed": "build/vega-embed.min.js",
}


def renew(wanted: list[str]) -> None:
    """Fetch the wanted packages and copy their scripts into this folder."""
    with tempfile.TemporaryDirectory() as folder:
        # no scripts of the packages are run, and their development tools are not fetched
        install = ["npm", "install", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund"]
        subprocess.run([*install, "--prefix", folder, *(wanted or SCRIPTS)], check=True)
        modules = Path(folder) / "node_modules"
        versions = {}
        for name, script in SCRIPTS.items():
            content = (modules / name / script).read_bytes()
            (HERE / f"{name}.min.js").write_bytes(content)
            versions[name] = {
                "version": _version(modules / name),
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        (HERE / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")
        (HERE / "LICENSES.txt").write_text(_licences(modules))


def _version(package: Path) -> str:
    return str(json.loads((package / "package.json").read_text())["version"])


def _licences(modules: Path) -> str:
    """List the packages below ``modules`` with their licences; equal texts appear once."""
    owners: dict[str, list[str]] = {}
    for manifest in sorted(modules.rglob("package.json")):
        package = manifest.parent
        about = json.loads(manifest.read_text())
        if package.parent.name != "node_modules" and not package.parent.name.startswith("@"):
            continue
        files = sorted(
            path
            for path in package.iterdir()
            if path.name.upper().startswith(("LICENSE", "LICENCE"))
        )
        text = (
            files[0].read_text().strip()
            if files
            else (f"(no licence file; package.json says {about.get('license', 'nothing')})")
        )
        owners.setdefault(text, []).append(f"{about.get('name')} {about.get('version')}")
    rule = "\n\n" + "-" * 80 + "\n\n"
    return rule.join(", ".join(names) + "\n\n" + text for text, names in owners.items()) + "\n"


if __name__ == "__main__":
    renew(sys.argv[1:])
