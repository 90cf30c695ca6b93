"""The files of a local Dask cluster: out of reach for the other users of a machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from dask_sweeps import left_sockets, only_new_garbage  # noqa: F401
from helpers import refused, rows

import fastfed as ff
from fastfed.cli import app as cli
from fastfed.sweeps import dask

pytestmark = pytest.mark.cluster

NOBODY = 65534
SWEEP = ["sweep", "--instance", "random:3,2,1", "--delta", "0.1", "--schedule", "fedelim"]

ATTACK = r"""
cd "$1"
while :; do
    for folder in dask-scratch-space/*/ fastfed-*/ fastfed-*/*/ fastfed-*/*/*/ tmp*/; do
        [ -e "$folder/.mine" ] && continue
        mv "$folder" "dask-scratch-space/taken-$(date +%N)" && mkdir -m 777 "$folder" &&
            cp "$2"/*.py "$folder" && : > "$folder/.mine"
    done
    for file in dask-scratch-space/*/*.py fastfed-*/*/*.py; do
        cmp -s "$file" "$2/pyarrow.py" || cp "$2/pyarrow.py" "$file"
    done
    find . -path ./dask-scratch-space -prune -o ! -name . \( -readable -o -writable \) \
        ! -type l -print >> "$3/reached"
done 2> /dev/null
"""
"""A second user who swaps the folders and modules that it can, and lists what it can read."""


@pytest.fixture
def shared() -> Iterator[Path]:
    """Make a folder for temporary files that every user can write to, as /tmp is."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        for name in ("tmp", "payload", "marks"):
            path = Path(folder, name)
            path.mkdir()
            path.chmod(0o755 if name == "payload" else 0o1777)
        yield Path(folder)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs a second user")
def test_another_user_who_owns_the_scratch_folder_runs_nothing(shared: Path, out: Path) -> None:
    ran, reached = shared / "marks" / "ran", shared / "marks" / "reached"
    scratch = shared / "tmp" / "dask-scratch-space"
    scratch.mkdir()
    for module in ("pyarrow", "polars", "numba", "numpy", "zict", "fastfed", "cryptography"):
        payload = f"import os\nopen({str(ran)!r}, 'a').write(f'{{os.getuid()}}\\n')\n"
        for folder in (shared / "payload", scratch):
            (folder / f"{module}.py").write_text(payload)
    os.chown(scratch, NOBODY, NOBODY)
    scratch.chmod(0o777)
    command = [*SWEEP, "--trials", "2000", "--dask", "local:2", "--quiet", "--out", str(out)]
    with subprocess.Popen(
        [
            "sh",
            "-c",
            ATTACK,
            "attack",
            *(str(shared / name) for name in ("tmp", "payload", "marks")),
        ],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        start_new_session=True,
    ) as attacker:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "fastfed", *command],
                env={**os.environ, "TMPDIR": str(shared / "tmp")},
                capture_output=True,
                text=True,
                check=False,
            )
            while not reached.exists():  # the attack has looked around at least once
                time.sleep(0.01)
        finally:
            os.killpg(attacker.pid, signal.SIGKILL)
    assert not ran.exists()
    assert (done.returncode, done.stderr) == (0, "")
    assert reached.read_text() == ""
    assert [path.name for path in (shared / "tmp").iterdir()] == ["dask-scratch-space"]
    assert rows(out).height == 2000


def test_workers_keep_their_files_in_a_private_folder_that_is_removed(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(shared / "tmp"))
    before = dict(os.environ)
    with dask._connected("local:1") as client:
        (found,) = (shared / "tmp").glob("fastfed-*")
        assert found.stat().st_mode & 0o777 == 0o700
        (answer,) = client.run(
            lambda dask_worker: (
                dask_worker.local_directory,
                tempfile.gettempdir(),
                sys.flags.safe_path,
            )
        ).values()
        assert Path(answer[0]).is_relative_to(found)
        assert answer[1:] == (str(found), True)
    assert list((shared / "tmp").iterdir()) == []
    assert {name: os.environ[name] for name in before} == before
    assert "TMPDIR" in before or "TMPDIR" not in os.environ


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs a second user")
@pytest.mark.parametrize(("mode", "owner"), [(0o777, 0), (0o755, NOBODY)])
def test_a_temporary_folder_in_which_others_can_replace_files_is_refused(
    mode: int,
    owner: int,
    shared: Path,
    out: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (shared / "tmp").chmod(mode)
    os.chown(shared / "tmp", owner, owner)
    monkeypatch.setattr(tempfile, "tempdir", str(shared / "tmp"))
    assert cli.run([*SWEEP, "--out", str(out), "--trials", "2", "--dask", "local:1"]) == 2
    error = capsys.readouterr().err
    assert f"folder {shared / 'tmp'} for temporary files: other users can replace" in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_a_cluster_that_does_not_start_says_why(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import distributed

    def fail(**options: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(distributed, "LocalCluster", fail)
    with pytest.raises(ff.InputError, match=r"'local:1': the cluster did not start \(TimeoutErr"):
        list(dask.Dask("local:1").run(None))  # type: ignore[arg-type]


def test_workers_that_cannot_be_started_again_end_the_sweep() -> None:
    """Dask starts a worker that died a few times again; then its list of workers is empty."""
    alive = SimpleNamespace(workers={0: "starting"})
    client = SimpleNamespace(cluster=alive, nthreads=dict)
    executor = dask.Dask("local:1")
    executor._look(client)  # no worker thread yet: it is waited for
    alive.workers.clear()
    refused(
        lambda: executor._look(client), "Dask address 'local:1': its worker processes have ended"
    )
