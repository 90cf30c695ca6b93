"""The entry point: `python -m fastfed` is `fastfed`.

Next to nothing is imported before Ctrl-C can be caught: imports take the first quarter of a
second, and whoever changes their mind within it shall not see a traceback.
"""

import os
import sys


def main() -> None:
    """Run the command line of this process; end with its exit status."""
    # threads of OpenBLAS sleep when they are done; by default they spin, which took a second of CPU
    # time of a report
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    try:
        from fastfed.cli.app import run_process

        status = run_process(sys.argv[1:])
    except KeyboardInterrupt:
        try:
            os.write(2, b"fastfed: stopped\n")
        finally:
            os._exit(130)
    if status != 130:  # if interrupted, a kernel may be in a long trial: do not wait for it
        import atexit

        atexit._run_exitfuncs()
    # All is written. Python's own end would run destructors of libraries whose threads still run,
    # which aborted one process in eight on a busy machine ("terminate called without ...").
    os._exit(status)


if __name__ == "__main__":
    main()
