"""The command line of the alias: run a script or module with this project as torch, or print the coverage of a census."""
from __future__ import annotations

import argparse
import io
import runpy
import sys
import types
from collections.abc import Sequence
from pathlib import Path

import eager.as_torch
from eager.as_torch.coverage import measure, read_census, report
from eager.as_torch.finder import torch_modules
from eager.startup.bootstrap import refuse_shadows


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m eager.as_torch", description="Run code written for torch on framejit: `import torch` is eager."
    )
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--coverage", metavar="FILE.tsv", type=Path, help="print how much of a census of torch names resolves")
    target.add_argument("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help="run a module as a script")
    target.add_argument("script", nargs="?", help="run a script; what follows are its arguments")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def run_script(path: str, arguments: Sequence[str]) -> None:
    """Run a file as `__main__`, as `python path arguments...` does. Raises: OSError if the file cannot be read."""
    with io.open_code(path) as f:
        code = compile(f.read(), path, "exec", dont_inherit=True)
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=__builtins__, __spec__=None)
    sys.modules["__main__"] = main
    sys.argv[:] = [path, *arguments]
    sys.path[0] = str(Path(path).resolve().parent)
    refuse_shadows()
    exec(code, main.__dict__)


def _add_spawn_path() -> None:
    """Let spawned workers find the alias: they receive this process's `sys.path`."""
    sys.path.append(str(Path(__file__).with_name("spawn_path")))


def main(arguments: Sequence[str]) -> int:
    """Run the command line. Returns: the exit status."""
    # argparse would parse the script's options; arguments after the script or module belong to the script
    options = _parser().parse_args(arguments[:1] if arguments and not arguments[0].startswith("-") else arguments)
    if options.coverage is not None:
        print(report(measure(read_census(options.coverage))))
        return 0
    _add_spawn_path()
    if options.module is not None:
        if not options.module:
            _parser().error("argument -m: a module is expected")
        sys.argv[:] = options.module
        runpy.run_module(options.module[0], run_name="__main__", alter_sys=True)
        return 0
    run_script(options.script, arguments[1:])
    return 0


if __name__ == "__main__":
    assert eager.as_torch.is_installed() and any(torch_modules())
    sys.exit(main(sys.argv[1:]))
