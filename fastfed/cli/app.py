"""The command line: options in, results on stdout, progress and errors on stderr.

Thin: each command checks nothing itself and imports what it uses when it runs, so that help needs
neither Numba nor Polars. Bad input is one line and exit status 2.
"""

from __future__ import annotations

import signal
import sys
import warnings
from contextlib import suppress
from functools import cache
from typing import Annotated, Any

import typer

from fastfed import console
from fastfed.cli import answers, compiling, instances, options, replay, reproduce, sweep, theory
from fastfed.display.table import FORMATS
from fastfed.errors import InputError, UncertainWarning
from fastfed.text import command
from fastfed.version import __version__

app = typer.Typer(
    name="fastfed",
    help="Exact simulation of federated best-arm identification.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

# Measured on 2 cores: a sweep ends well with 2.0 GB of address space; with 1.8 GB libraries crash
_LEAST_MEMORY = 2_000_000_000

# Click's error class, from wherever this version of Typer has its Click
_UsageError: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


def _version(asked: bool) -> None:
    if asked:
        print(f"fastfed {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


for _command in (
    sweep.sweep,
    answers.summary,
    answers.best,
    answers.compare,
    answers.plot,
    answers.check,
    answers.report,
    sweep.merge,
    sweep.missing,
    replay.replay,
    theory.bounds,
    theory.errors,
    reproduce.reproduce,
    compiling.compile,
    instances.instance,
    instances.instances,
):
    app.command(cls=options.Command, epilog=options.epilog(_command))(_command)
app.add_typer(instances.movielens, name="movielens")


def run_process(arguments: list[str]) -> int:
    """Run a command line as a whole process; open and flush the standard files around it."""
    console.open_standard_files()
    status = run(arguments)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is done: Ctrl-C may end it without a word
    lost = console.lost_output()
    console.lost_messages()
    return 2 if lost and status == 0 else status


@cache
def _program() -> Any:
    """Build the commands from their signatures, once in a process, because it takes 20 ms."""
    return typer.main.get_command(app)


def run(arguments: list[str]) -> int:
    """Run a command line in this process; its exit status."""
    try:
        if not {"-h", "--help", "--version"} & set(arguments):
            _refuse_little_memory()
        with warnings.catch_warnings():
            warnings.simplefilter("once", UncertainWarning)
            warnings.showwarning = _warn
            status = _program()(arguments, prog_name="fastfed", standalone_mode=False)
        sys.stdout.flush()
        return _interrupted(arguments) if status == 130 else int(status or 0)
    except (InputError, _UsageError) as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            return run([*arguments, "--help"])
        message = _usage(error) if isinstance(error, _UsageError) else str(error)
        console.say(_in_brief(" ".join(message.split())))
        return 2
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted(arguments)
    except SystemExit:  # Typer's way out when the reader of stdout has gone
        return 0
    except BrokenPipeError:  # the reader of stdout has gone, as in `| head`
        console.lost_output()
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        console.say(f"{where}{error.strerror or str(error) or type(error).__name__}")
        return 2
    except MemoryError:
        console.say("not enough memory; take fewer threads, or a smaller instance")
        return 2


def _usage(error: Any) -> str:
    """Describe a wrong command line; of an option that other commands have, name these."""
    option = error.option_name if type(error).__name__ == "NoSuchOption" else None
    commands = _program().commands if option else {}
    if option and option.removeprefix("--") in FORMATS:
        return f"No such option: {option}; write --format {option.removeprefix('--')}"
    having = [name for name, one in commands.items() if any(option in p.opts for p in one.params)]
    if not having:
        return str(error.format_message())
    own = error.ctx.command.name if error.ctx else "this command"
    return f"No such option: {own} has no {option}, which is one of {', '.join(having)}"


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    """Say a warning in one line."""
    console.say(f"warning: {message}")


def _refuse_little_memory() -> None:
    """Refuse a limit of the address space with which the libraries crash while they are loaded."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _LEAST_MEMORY:
        raise InputError(
            f"this process may address {limit / 1e9:.2g} GB of memory (ulimit -v): it needs "
            f"{_LEAST_MEMORY / 1e9:.2g} GB, and more with many cores; raise the limit"
        )


def _in_brief(line: str) -> str:
    """Shorten a line whose values are too long."""
    return line if len(line) <= 900 else f"{line[:500]} ... {line[-350:]}"


def _interrupted(arguments: list[str]) -> int:
    with suppress(OSError, ValueError):
        if sys.stderr.isatty():  # which has shown ^C
            print(file=sys.stderr)
    console.say(f"stopped; finished parts are kept, go on with: {command(*arguments)}")
    return 130
