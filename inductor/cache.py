"""`python -m inductor.cache list|explain|trim|clear|verify`: the compiled code on disk.

Owns the command line and the tables. The cache is the one of the settings (FRAMEJIT_CACHE_DIR), or the folder of --dir.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from eager.base import settings
from inductor.artifact import inventory
from inductor.artifact.cache import Cache, Removed
from inductor.artifact.inventory import Listed

__all__ = ["main"]

_SHOWN = 12  # characters of a digest
_WIDTH = 140  # of a table in a file
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _size(text: str) -> int:
    number = text.upper().removesuffix("B").removesuffix("I")
    unit = number[-1:] if number[-1:].isalpha() else ""
    try:
        return int(float(number.removesuffix(unit)) * _UNITS[unit])
    except (ValueError, KeyError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; allowed: bytes, or a unit as in 512M or 2G") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m inductor.cache", description="The compiled code on disk.")
    parser.add_argument("--dir", type=Path, help="the cache's folder (default: the one of the settings)")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="entries, the entry used last first")
    explain = commands.add_parser("explain", help="why an entry was compiled and not found: the parts of its key that differ")
    explain.add_argument("digest", nargs="?", default="", help="the beginning of an entry's name (default: every entry)")
    trim = commands.add_parser("trim", help="remove the entries used longest ago")
    trim.add_argument("--to", type=_size, metavar="SIZE", help="bytes that may stay (default: the limit in the settings)")
    commands.add_parser("clear", help="remove everything that no process uses")
    verify = commands.add_parser("verify", help="check the checksums of all files; status 1 if a file is damaged")
    verify.add_argument("--remove", action="store_true", help="remove the damaged files")
    return parser


def main(arguments: Sequence[str] | None = None, console: Console | None = None) -> int:
    """Run one command. Result: 0; 1 if `explain` finds no entry, or `verify` finds damage."""
    args = _parser().parse_args(arguments)
    chosen = settings.current().cache
    store = Cache(args.dir or chosen.dir, chosen.limit_bytes)
    out = console or Console(width=None if sys.stdout.isatty() else _WIDTH)
    if not store.dir.is_dir():
        out.print(f"{store.dir} does not exist: the cache is empty", highlight=False, soft_wrap=True)
        return 0
    if args.command == "list":
        return _list(store, out)
    if args.command == "explain":
        return _explain(store, args.digest, out)
    if args.command == "verify":
        return _verify(store, args.remove, out)
    if args.command == "trim":
        return _removed(store.trim(store.limit_bytes if args.to is None else args.to), out)
    return _removed(inventory.clear(store), out)


def _list(store: Cache, out: Console) -> int:
    found = inventory.listing(store)
    table = Table(title=str(store.dir), title_justify="left")
    for heading in ("entry", "size", "made", "used", "processes"):
        table.add_column(heading, justify="right" if heading in ("size", "processes") else "left", no_wrap=True)
    for heading in ("kind", "mode"):
        table.add_column(heading)
    table.add_column("inputs", overflow="ellipsis", no_wrap=True)
    for e in found:
        damaged = "[red]damaged[/red]" if e.key is None else e.part("kind")
        table.add_row(e.folder.name[:_SHOWN], _bytes(e.size_bytes), _ago(e.made), _ago(e.used), str(e.processes or ""), damaged,
                      e.part("mode"), e.part("inputs").replace("[", r"\["))  # fmt: skip
    out.print(table)
    objects = store.objects_by_use()
    total = f"{len(found)} entries, {len(objects)} object files, {_bytes(store.size_bytes())} of {_bytes(store.limit_bytes)}"
    out.print(total, highlight=False)
    return 0


def _explain(store: Cache, digest: str, out: Console) -> int:
    found = inventory.explain(store, digest)
    if not found:
        out.print(f"no entry's name begins with {digest!r}; `list` shows them", highlight=False)
        return 1
    for miss in found:
        out.print(_key_table(miss.entry) if digest else f"[bold]{miss.entry.folder.name[:_SHOWN]}[/bold], {_ago(miss.entry.made)}")
        if miss.nearest is None:
            out.print("compiled because the cache held no earlier entry\n", highlight=False)
            continue
        table = Table(title=f"compiled because the nearest earlier entry, {miss.nearest[:_SHOWN]}, differs in", title_justify="left")
        for heading in ("part", "here", "there"):
            table.add_column(heading, overflow="fold")
        for row in miss.differing:
            table.add_row(*(cell.replace("[", r"\[") for cell in row))
        out.print(table)
    return 0


def _key_table(entry: Listed) -> Table:
    table = Table(title=str(entry.folder), title_justify="left", show_header=False)
    table.add_column("part")
    table.add_column("value", overflow="fold")
    for name, value in entry.key.parts if entry.key is not None else ():
        table.add_row(name, value.replace("[", r"\["))
    for name, value in (("size", _bytes(entry.size_bytes)), ("made", _ago(entry.made)), ("used", _ago(entry.used))):
        table.add_row(name, value)
    return table


def _verify(store: Cache, remove: bool, out: Console) -> int:
    found = list(inventory.verify(store))
    table = Table(title=f"damaged files in {store.dir}", title_justify="left")
    table.add_column("file", overflow="fold")
    table.add_column("reason")
    for damage in found:
        table.add_row(str(damage.path.relative_to(store.dir)), damage.reason)
        if remove:
            store.remove(damage.path)
    if found:
        out.print(table)
    state = "removed" if remove else "not used, and made again when needed"
    out.print(f"{len(found)} damaged: {state}" if found else "every file has its checksum", highlight=False)
    return 1 if found and not remove else 0


def _removed(removed: Removed, out: Console) -> int:
    kept = f"; {removed.in_use} in use stay" if removed.in_use else ""
    out.print(f"removed {removed.count}{kept}; {_bytes(removed.left_bytes)} are left", highlight=False)
    return 0


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def _ago(when: float) -> str:
    seconds = max(0.0, time.time() - when)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


if __name__ == "__main__":
    raise SystemExit(main())
