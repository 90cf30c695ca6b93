"""Private interfaces of Numba: plain Numba compiles where one of them is gone."""

from __future__ import annotations

import gc
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from numba.core import codegen, compiler, options
from numba.core.errors import TypingError

from fastfed.kernels import compiling, numba_internals


def fresh(module: ModuleType) -> ModuleType:
    """Import a module once more, under another name."""
    spec = importlib.util.spec_from_file_location("fresh_" + module.__name__, str(module.__file__))
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_this_version_has_every_interface() -> None:
    """Otherwise fastfed is slow without a word, and nothing else would tell."""
    assert numba_internals.compilers() is not None
    assert numba_internals.CAN_CACHE
    wanted = {
        "_nrt": False,
        "no_cfunc_wrapper": True,
        "no_cpython_wrapper": True,
        "forceinline": True,
    }
    assert numba_internals.known_options(**wanted) == wanted


def test_an_option_that_is_gone_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(options.DefaultOptions, "_nrt")
    assert numba_internals.known_options(_nrt=False, forceinline=True) == {"forceinline": True}


GONE = [
    (codegen.JITCodeLibrary, "_finalize_final_module"),
    (codegen.JITCodeLibrary, "_optimize_functions"),
    (codegen.JITCodeLibrary, "_optimize_final_module"),
    (codegen.JITCodeLibrary, "add_linking_library"),
    (codegen.CPUCodegen, "_module_pass_manager"),
    (compiler.Compiler, "define_pipelines"),
    (codegen, "JITCodeLibrary"),
]


@pytest.mark.parametrize(("owner", "name"), GONE, ids=lambda one: getattr(one, "__name__", one))
def test_no_fragments_without_their_interfaces(
    owner: object, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cls in getattr(owner, "__mro__", (owner,)):
        if name in vars(cls):
            monkeypatch.delattr(cls, name)
    assert numba_internals.compilers() is None


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_is_collected_after_compiling_as_before(enabled: bool) -> None:
    @compiling.kernel
    def double(x: float) -> float:
        return 2.0 * x

    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        assert double(21.0) == 42.0
        assert gc.isenabled() == enabled
        with pytest.raises(TypingError):
            double("text")
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()


@pytest.fixture
def without_cache(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.delattr(compiler.CompileResult, "_rebuild")
    return fresh(numba_internals)


def test_no_cache_without_its_interfaces(
    without_cache: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is kept, and one line says so."""
    assert not without_cache.CAN_CACHE
    monkeypatch.setattr(compiling, "numba_internals", without_cache)
    monkeypatch.setattr(compiling, "_said", set())

    @compiling.entry_point
    def double(x: float) -> float:
        return 2.0 * x

    assert double(21.0) == 42.0
    said = capsys.readouterr().err
    assert said.startswith("fastfed: compiled code cannot be kept")
    assert said.count("\n") == 1


PLAIN = """
import sys
from numba.core import codegen, compiler, options
if sys.argv[1] == "plain":
    del codegen.JITCodeLibrary  # Numba itself holds on to the class
    del compiler.CompileResult._rebuild
    for name in ("_nrt", "no_cfunc_wrapper", "no_cpython_wrapper", "forceinline"):
        delattr(options.DefaultOptions, name)
import fastfed as ff
from fastfed.kernels import compiling
assert ("pipeline_class" in compiling.INLINED) == (sys.argv[1] != "plain")
found = ff.simulate("synthetic", ["fedelim", "fedelim0"], delta=0.01, trials=20, threads=1)
print(found.frame.hash_rows(seed=0).sum())
"""


@pytest.mark.slow
def test_plain_numba_gives_the_same_rows(tmp_path: Path) -> None:
    told = []
    for how in ("plain", "overridden"):
        own = {"NUMBA_CACHE_DIR": str(tmp_path)} if how == "plain" else {}
        done = subprocess.run(
            [sys.executable, "-c", PLAIN, how],
            check=True,
            env={**os.environ, **own},
            capture_output=True,
            text=True,
        )
        told.append(done.stdout)
        assert ("cannot be kept" in done.stderr) == (how == "plain")
    assert told[0] == told[1]
